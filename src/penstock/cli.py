"""The command line: reads the arguments, calls what does the work, turns errors into sentences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from penstock import __version__
from penstock.demo.run import DemoSettings, default_directory, run_demo
from penstock.errors import CheckpointError, PenstockError
from penstock.program import run_program

Command = Callable[[argparse.Namespace], int]

_FAILED = 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    command: Command | None = parsed.command
    if command is None:
        parser.print_help()
        return 0
    try:
        return command(parsed)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock", description="Flink's DataStream API in Python, with Spark as the engine."
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_run(commands)
    _add_demo(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_version)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run a program",
        description="Run a program as `python PROGRAM ARGUMENT...` would.",
    )
    run.add_argument(
        "--as-pyflink",
        action="store_true",
        help="let `import pyflink` mean Penstock, so that a PyFlink program runs unchanged",
    )
    run.add_argument("program", metavar="PROGRAM", help="the program's file")
    run.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="the program's own"
    )
    run.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    return run_program(arguments.program, arguments.arguments, arguments.as_pyflink)


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="run a sensor job on local Spark, live in the terminal",
        description=(
            "Generated readings of twenty sensors; running averages and alerts in keyed state; "
            "every epoch a checkpoint. Ends when all readings are read, or on Ctrl-C. Started "
            "again after Ctrl-C or kill -9, it goes on from its last checkpoint."
        ),
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument(
        "--seconds", type=_positive, default=30.0, help="how many seconds of readings"
    )
    demo.add_argument("--rate", type=_positive, default=5000.0, help="readings per second")
    demo.add_argument(
        "--checkpoint-dir", default=default_directory(), help="where checkpoints are kept"
    )
    demo.add_argument(
        "--fresh",
        action="store_true",
        help="forget the checkpoints of an earlier start",
    )
    demo.set_defaults(command=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    settings = DemoSettings(
        arguments.seconds, arguments.rate, arguments.checkpoint_dir, arguments.fresh
    )
    try:
        return run_demo(settings, Console(highlight=False))
    except CheckpointError as error:
        print(f"penstock: {error}\n(or start anew: penstock demo --fresh)", file=sys.stderr)
        return _FAILED


def _version(arguments: argparse.Namespace) -> int:
    print(f"penstock {__version__}")
    return 0


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text}")
    return number
