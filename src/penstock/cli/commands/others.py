"""The demo, the version, completion in shells."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from penstock import __version__
from penstock.cli.exit_codes import OK, code_of
from penstock.cli.output import print_json
from penstock.errors import CheckpointError

_SHOWN = ("pyspark", "pyarrow")


def demo(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    run = import_module("penstock.demo.run")
    settings = run.DemoSettings(
        arguments.seconds, arguments.rate, arguments.checkpoint_dir, arguments.fresh
    )
    try:
        code: int = run.run_demo(settings, Console(highlight=False))
        return code
    except CheckpointError as error:
        print(f"penstock: {error}\n(or start anew: penstock demo --fresh)", file=sys.stderr)
        return code_of(error)


def version(arguments: argparse.Namespace) -> int:
    if arguments.json:
        others = {name: _installed(name) for name in _SHOWN}
        print_json({"penstock": __version__, "python": platform.python_version(), **others})
    else:
        print(f"penstock {__version__}")
    return OK


def _installed(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None


def completion(arguments: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["penstock"], shell=arguments.shell))
    return OK
