"""`run` and `plan`: commands that start a user's program."""

from __future__ import annotations

import argparse

from penstock.cli.completers import completed_by, option_keys
from penstock.cli.parser import Commands, Parser, add_command

PLAN_FORMATS = ("text", "mermaid", "svg", "json")


def add_commands(commands: Commands) -> None:
    _add_run(commands)
    _add_plan(commands)


def _add_run(commands: Commands) -> None:
    run = add_command(
        commands,
        "run",
        "run a program",
        "programs:run",
        "Run a program as `python PROGRAM ARGUMENT...` would, with settings from a file, from -D "
        "and from the flags below, each above the one before. What the program sets itself stands "
        "above them all. Flags behind PROGRAM are the program's own.",
        """
        penstock run job.py --its-own flag
        penstock run --master spark://host:7077 -p 8 --checkpoint-dir /data/checkpoints job.py
        penstock run -s /data/savepoints/savepoint-1 --allow-non-restored-state job.py
        penstock run -D penstock.executor=local -D restart-strategy.type=none job.py
        penstock run --detached job.py
        penstock run --profile-dir /tmp/profiles job.py
        """,
    )
    _add_launch_settings(run)
    run.add_argument("--master", metavar="URL", help="Spark's master, as local[4] or spark://…")
    run.add_argument("--checkpoint-dir", metavar="DIR", help="where the job's checkpoints are kept")
    run.add_argument(
        "--savepoint-dir", metavar="DIR", help="where savepoints go for which no path is given"
    )
    start = run.add_argument_group("where the job's state comes from")
    start.add_argument(
        "-s",
        "--from-savepoint",
        metavar="PATH",
        help="a savepoint, or a retained checkpoint as `penstock checkpoints` shows it",
    )
    start.add_argument(
        "--allow-non-restored-state",
        action="store_true",
        help="drop state of operators that the program has no more",
    )
    start.add_argument(
        "--anew",
        action="store_true",
        help="start from the given savepoint again, though the job has gone on from there since",
    )
    start.add_argument(
        "--reset-source",
        metavar="UID",
        action="append",
        default=[],
        help="let this source begin anew, though its position is in the savepoint (repeatable)",
    )
    start.add_argument(
        "--trust-pickle",
        action="store_true",
        help="open pickled state though others may have written it: that runs code from there",
    )
    profile = run.add_argument_group("where the job's time goes")
    profile.add_argument(
        "--profile",
        action="store_true",
        help="note what tasks spend their time on; when a job ends, show it by operator and write "
        "it, with a flame graph, to penstock-profile/",
    )
    profile.add_argument(
        "--profile-dir", metavar="DIR", help="the same, and write it to this directory"
    )
    run.add_argument(
        "--detached",
        action="store_true",
        help="start it as a process of its own, and return when its job runs",
    )
    _add_program(run)


def _add_plan(commands: Commands) -> None:
    plan = add_command(
        commands,
        "plan",
        "show what a program would run",
        "programs:plan",
        "Start a program up to its first execute(), and show the job that it would run then: its "
        "stages, chains, operators and exchanges. Nothing is run, and Spark is not started unless "
        "the program does it itself. Where no parallelism is set, it is that of this machine. What "
        "the program prints goes to standard error.",
        """
        penstock plan job.py
        penstock plan --format svg -o plan.svg job.py --its-own flag
        penstock plan --format mermaid job.py
        """,
    )
    _add_launch_settings(plan)
    plan.add_argument(
        "--format", choices=PLAN_FORMATS, default="text", help="text unless said otherwise"
    )
    plan.add_argument("-o", "--output", metavar="FILE", help="write it to a file")
    _add_program(plan)


def _add_launch_settings(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", help="YAML, instead of $PENSTOCK_CONF")
    setting = parser.add_argument(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_setting,
        help="a setting, as in docs/guide/configuration.md (repeatable)",
    )
    completed_by(setting, option_keys)
    parser.add_argument("-p", "--parallelism", metavar="N", help="subtasks per operator")
    parser.add_argument("--name", help="the job's name, if the program gives none")
    parser.add_argument("--job-id", metavar="ID", help="which job it is, in the directory")
    parser.add_argument(
        "--as-pyflink",
        action="store_true",
        help="let `import pyflink` mean Penstock, so that a PyFlink program runs unchanged",
    )


def _add_program(parser: Parser) -> None:
    parser.add_argument("program", metavar="PROGRAM", help="the program's file")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the program's own"
    )
    flags = (flag for action in parser._actions for flag in action.option_strings)
    parser.set_defaults(flags=frozenset(flag for flag in flags if flag not in ("-h", "--help")))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    return key.strip(), value
