"""Starts a user's program: to run it, beside this process too, or to see what it would run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any

from penstock import options
from penstock.cli.commands.detached import start_detached
from penstock.cli.exit_codes import FAILED, OK
from penstock.cli.output import print_error
from penstock.common.local_paths import local_path
from penstock.driver.profiles.files import check_writable
from penstock.errors import FileAccessError, InvalidArgumentError, InvalidProgramError
from penstock.launch import Launch, base_configuration, launched
from penstock.program import run_program

_PROFILE = "penstock.profile.enabled"
_PROFILE_DIR = "penstock.profile.dir"

# Flags that are another way to write a setting.
_SETTINGS = {
    "master": "penstock.spark.master",
    "parallelism": "parallelism.default",
    "name": "pipeline.name",
    "job_id": "penstock.job-id",
    "checkpoint_dir": "execution.checkpointing.dir",
    "savepoint_dir": "execution.checkpointing.savepoint-dir",
    "from_savepoint": "execution.state-recovery.path",
    "profile_dir": _PROFILE_DIR,
}
_SWITCHES = {
    "allow_non_restored_state": "execution.state-recovery.ignore-unclaimed-state",
    "anew": "penstock.state-recovery.anew",
    "trust_pickle": "penstock.trust-pickle",
    "profile": _PROFILE,
    "profile_dir": _PROFILE,
}
_RESET_SOURCES = "penstock.state-recovery.reset-sources"


def launch_settings(arguments: argparse.Namespace) -> dict[str, str]:
    """What -D and the flags say, the flags last."""
    settings = dict(arguments.settings)
    for flag, key in _SETTINGS.items():
        value = getattr(arguments, flag, None)
        if value is not None:
            settings[key] = value
    for flag, key in _SWITCHES.items():
        if getattr(arguments, flag, False):
            settings[key] = "true"
    if sources := getattr(arguments, "reset_source", []):
        settings[_RESET_SOURCES] = ",".join(sources)
    return settings


def _warn_of_misplaced_flags(arguments: argparse.Namespace) -> None:
    """A flag of ours behind the program would be missed in silence: a savepoint, for example."""
    given = [argument.partition("=")[0] for argument in arguments.arguments]
    misplaced = [flag for flag in dict.fromkeys(given) if flag in arguments.flags]
    if misplaced:
        print(
            f"penstock: {', '.join(misplaced)} behind {arguments.program} goes to the program; "
            "what is meant for penstock stands before it",
            file=sys.stderr,
        )


def run(arguments: argparse.Namespace) -> int:
    _warn_of_misplaced_flags(arguments)
    if arguments.json and not arguments.detached:
        raise InvalidArgumentError(
            "--json goes with --detached only: without it, what is printed is the program's own"
        )
    launch = Launch(arguments.config, launch_settings(arguments), profiled=_show_profile)
    with launched(launch):
        configuration = base_configuration()  # its faults are none of the program's
        if configuration.get(options.PROFILE):
            _check_profile_directory(configuration.get(options.PROFILE_DIR))
        if arguments.detached:
            ours = ["--detached", *(["--json"] if arguments.json else [])]
            return start_detached(_given_but(ours), arguments.program, arguments.json)
        return run_program(arguments.program, arguments.arguments, arguments.as_pyflink)


def _check_profile_directory(path: str) -> None:
    """Before the program has run for an hour."""
    try:
        check_writable(local_path(path, "profile directory"))
    except FileAccessError as error:
        raise InvalidArgumentError(f"no profile can be written: {error}") from None


def _show_profile(directory: str, text: str) -> None:
    """The program's standard output is its own."""
    flame = os.path.join(directory, "flame.svg")
    print(f"\n{text}\nAll of it is in {directory}; the flame graph: {flame}", file=sys.stderr)


def _given_but(flags: list[str]) -> list[str]:
    """The arguments of this process without some flags, which stand before the program's own."""
    given = list(sys.argv[1:])
    for flag in flags:
        given.remove(flag)
    return given


class _Captured(BaseException):
    """The program has built a job. No Exception, so that none of its handlers takes it."""


def plan(arguments: argparse.Namespace) -> int:
    _warn_of_misplaced_flags(arguments)
    if arguments.json:
        arguments.format = "json"
    found: list[Any] = []

    def capture(job: Any) -> None:
        found.append(job.plan)
        raise _Captured

    launch = Launch(arguments.config, launch_settings(arguments), capture)
    with launched(launch), _without_spark(), redirect_stdout(sys.stderr):
        base_configuration()
        try:
            code = run_program(arguments.program, arguments.arguments, arguments.as_pyflink)
        except _Captured:
            code = OK
    if code != OK:
        return code
    if not found:
        error = InvalidProgramError(
            f"{arguments.program} has ended without a job: it never called execute()"
        )
        print_error(error, FAILED, arguments.json)
        return FAILED
    _write(_rendered(found[0], arguments.format), arguments.output)
    return OK


@contextmanager
def _without_spark() -> Iterator[None]:
    """A plan is the same on either executor, but for the default parallelism."""
    before = os.environ.get("PENSTOCK_EXECUTOR")
    os.environ["PENSTOCK_EXECUTOR"] = "local"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PENSTOCK_EXECUTOR"]
        else:
            os.environ["PENSTOCK_EXECUTOR"] = before


def _rendered(plan: Any, format: str) -> str:
    module = "penstock.plan.svg" if format == "svg" else "penstock.plan.explain"
    text: str = getattr(import_module(module), f"explain_{format}")(plan)
    return text if text.endswith("\n") else f"{text}\n"


def _write(text: str, path: str | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidArgumentError(f"cannot write to {path}: {error.strerror}") from None
