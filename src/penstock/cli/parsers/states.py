"""`state`: commands that look into the state of a savepoint or checkpoint."""

from __future__ import annotations

from penstock.cli.parser import Commands, Parser, add_command, group_of


def add_commands(commands: Commands) -> None:
    state = add_command(
        commands, "state", "look into the state of a savepoint or checkpoint", None, json=False
    )
    group = group_of(state)
    listing = add_command(
        group,
        "ls",
        "list the states in a savepoint or checkpoint",
        "states:list_states",
        examples="penstock state ls /data/savepoints/savepoint-1",
    )
    _add_path(listing)
    show = add_command(
        group,
        "show",
        "print the entries of a state",
        "states:show",
        "Print the entries of a state, those of one key or the first ones.",
        """
        penstock state show /data/savepoints/savepoint-1 counter count
        penstock state show /data/savepoints/savepoint-1 counter count --key '"alice"'
        """,
    )
    _add_path(show)
    _add_state(show)
    show.add_argument("--key", help="of this key only; as JSON, or as plain text")
    _add_limit(show)
    export = add_command(
        group,
        "export",
        "write the entries of a state to a file",
        "states:export",
        "Write the entries of a state to a file: Parquet, CSV or JSON lines, by its ending.",
        "penstock state export /data/savepoints/savepoint-1 counter count -o counts.parquet",
    )
    _add_path(export)
    _add_state(export)
    export.add_argument("-o", "--output", metavar="FILE", required=True)
    diff = add_command(
        group,
        "diff",
        "compare the state of two savepoints or checkpoints",
        "states:diff",
        "Compare the state of two savepoints or checkpoints: how many entries of each state were "
        "added, removed and changed; of one state, which.",
        """
        penstock state diff /data/savepoints/savepoint-1 /data/savepoints/savepoint-2
        penstock state diff OLD NEW counter count
        """,
    )
    diff.add_argument("old", metavar="OLD", help="a savepoint or checkpoint")
    diff.add_argument("new", metavar="NEW", help="another")
    diff.add_argument("operator", metavar="OPERATOR", nargs="?", help="uid of an operator")
    diff.add_argument("state", metavar="STATE", nargs="?", help="name of one of its states")
    _add_limit(diff)
    _add_trust(diff)


def _add_path(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="a savepoint or checkpoint")
    _add_trust(parser)


def _add_state(parser: Parser) -> None:
    parser.add_argument("operator", metavar="OPERATOR", help="the operator's uid")
    parser.add_argument("state", metavar="STATE", help="the state's name")


def _add_limit(parser: Parser) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=int, default=100, help="at most so many (100), 0 for all"
    )


def _add_trust(parser: Parser) -> None:
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="open pickled values though others may have written them: that runs code from there",
    )
