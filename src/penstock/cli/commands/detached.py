"""Starts a program as a process of its own, and waits until its job runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from penstock.cli.exit_codes import FAILED, OK
from penstock.cli.output import print_error, print_json, waiting
from penstock.common.user_directory import user_directory
from penstock.driver import registry
from penstock.driver.registry import JobEntry, make_private
from penstock.errors import PenstockError

_LOOK_SECONDS = 0.1
_LAST_LINES = 30


def start_detached(arguments: list[str], program: str, as_json: bool) -> int:
    """`arguments` are those of a `penstock run`; its output goes to a file."""
    log = _log_file(program)
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    with waiting(f"Starting {program} …", as_json):
        entry = _job_of(process)
    if entry is None:
        code = process.returncode
        said = f"{program} has ended, exit code {code}; from {log}:\n{_last_lines(log)}"
        print_error(PenstockError(said.rstrip()), code or FAILED, as_json)
        return code or FAILED
    if as_json:
        shown = {"run_id": entry.run_id, "job_id": entry.job_id, "name": entry.name}
        print_json({**shown, "pid": process.pid, "log": log})
    else:
        print(f"job {entry.name} runs: {entry.run_id}, process {process.pid}, output in {log}")
    return OK


def _job_of(process: subprocess.Popen[bytes]) -> JobEntry | None:
    """The process's first job, as soon as it runs or has run; None if it ends without one."""
    while True:
        over = process.poll() is not None
        for entry in [*registry.running(), *registry.ended()]:
            if entry.pid == process.pid and entry.outcome in (None, "FINISHED"):
                return entry
        if over:
            return None
        time.sleep(_LOOK_SECONDS)


def _log_file(program: str) -> str:
    directory = os.path.join(user_directory(), "logs")
    make_private(directory)
    stem = os.path.splitext(os.path.basename(program))[0]
    return os.path.join(directory, f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log")


def _last_lines(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-_LAST_LINES:])
