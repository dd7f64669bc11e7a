"""Runs a user's program as Python would if it were started by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

from penstock import compat
from penstock.cli.exit_codes import CANCELLED, code_of_program
from penstock.errors import InvalidArgumentError, JobCancelledError

_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep


def run_program(path: str, arguments: Sequence[str] = (), as_pyflink: bool = False) -> int:
    """Run the file as `__main__`, with its directory to import from; the exit code.

    What it raises is shown as Python shows it; its `sys.exit` passes.
    """
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise InvalidArgumentError(f"cannot read the program {path}: {error.strerror}") from None
    if as_pyflink:
        compat.install()
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(path)
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv[:] = [path, *arguments]
    # In the place of what `python -m penstock` has put there: the working directory.
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    try:
        exec(compile(source, main.__file__, "exec"), main.__dict__)
    except JobCancelledError as error:
        # Somebody has asked for it, and knows why: where the program waited is no news.
        print(f"penstock: {error}", file=sys.stderr)
        return CANCELLED
    except Exception as error:
        shown = error.with_traceback(_without_us(error.__traceback__))
        sys.excepthook(type(error), shown, shown.__traceback__)
        return code_of_program(error)
    return 0


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """From the program's first line on."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE_DIR):
        trace = trace.tb_next
    return trace
