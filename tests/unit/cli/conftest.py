"""Commands run in this process, with a state directory of their own."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.driver.processes import start_mark
from penstock.driver.registry import JobEntry


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(autouse=True)
def _leave_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that commands run change these."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command: what it prints, on standard error too."""

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == code
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


@pytest.fixture
def told(said: Callable[..., str]) -> Callable[..., Any]:
    """The same with --json: the document."""

    def run(*arguments: str, code: int = 0) -> Any:
        return json.loads(said(*arguments, "--json", code=code))

    return run


@pytest.fixture
def entry() -> Callable[..., JobEntry]:
    def make(run_id: str = "aa11", **fields: Any) -> JobEntry:
        known: dict[str, Any] = {
            "job_id": "alerts",
            "name": "Alerts",
            "program": "/jobs/alerts.py",
            "arguments": ["--fast", "two words"],
            "pid": os.getpid(),
            "process_mark": start_mark(os.getpid()) or "",
            "host": socket.gethostname(),
            "executor": "local",
            "parallelism": 2,
            "root": None,
            "savepoint_dir": None,
            "started": 1_700_000_000_000,
            "socket": None,
        }
        return JobEntry(run_id, **{**known, **fields})

    return make
