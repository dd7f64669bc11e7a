"""Reads the arguments, calls the command, turns errors into sentences and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from penstock.cli.exit_codes import FAILED, INTERRUPTED, OK, code_of
from penstock.cli.output import print_error
from penstock.cli.parsers import command_parser
from penstock.errors import PenstockError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = command_parser()
    if "_ARGCOMPLETE" in os.environ:
        # Asked by a shell, which wants to know what may come next. It does not return.
        import_module("argcomplete").autocomplete(parser)
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parsed.help()
        return OK
    try:
        return _command(parsed.command)(parsed)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads has seen enough. Python would complain of it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except PenstockError as error:
        print_error(error, code_of(error), getattr(parsed, "json", False))
        return code_of(error)
    except OSError as error:
        print_error(error, FAILED, getattr(parsed, "json", False))
        return FAILED


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """Commands are named by parsers and loaded here, one at a time, so that others stay quick."""
    module, _, function = name.partition(":")
    command: Any = getattr(import_module(f"penstock.cli.commands.{module}"), function)
    return command  # type: ignore[no-any-return]
