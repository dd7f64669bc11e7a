"""All arguments of all commands. Light: a shell that completes a word loads this and no more."""

from __future__ import annotations

from penstock import __version__
from penstock.cli.parser import Parser, group_of
from penstock.cli.parsers import jobs, others, programs, snapshots, states


def command_parser() -> Parser:
    parser = Parser(
        prog="penstock",
        description="Flink's DataStream API in Python, with Spark as the engine.",
        epilog="`penstock COMMAND --help` says more; exit codes are in docs/guide/command-line.md.",
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = group_of(parser)
    for group in (programs, jobs, snapshots, states, others):
        group.add_commands(commands)
    return parser
