"""Which jobs run, as other processes of the user see it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.driver import registry
from penstock.driver.processes import is_alive, start_mark
from penstock.driver.registry import LOST, JobEntry


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def _entry(run_id: str = "aa11", pid: int | None = None, mark: str | None = None) -> JobEntry:
    pid = os.getpid() if pid is None else pid
    return JobEntry(
        run_id=run_id,
        job_id="alerts",
        name="Alerts",
        program="/jobs/alerts.py",
        arguments=["--fast"],
        pid=pid,
        process_mark=mark or start_mark(pid) or "",
        host=socket.gethostname(),
        executor="local",
        parallelism=2,
        root="/data/checkpoints/alerts",
        savepoint_dir=None,
        started=1_700_000_000_000,
        socket=None,
    )


def test_a_job_enters_and_leaves() -> None:
    entry = _entry()
    registry.enter(entry)
    assert registry.running() == [entry]

    left = registry.leave(entry, "FINISHED")

    assert registry.running() == []
    assert registry.ended() == [left]
    assert left.outcome == "FINISHED"


def test_only_the_user_may_look(state: Path) -> None:
    registry.enter(_entry())
    assert (state / "jobs").stat().st_mode & 0o777 == 0o700


def test_a_dead_process_is_noticed_once() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    entry = _entry(pid=process.pid)
    registry.enter(entry)
    assert registry.running() == [entry]
    assert registry.bury_dead() == []

    process.kill()
    # Dead, though nobody has asked for its exit code: still in the kernel's table.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert registry.running() == []
    (dead,) = registry.bury_dead()
    process.communicate()

    assert (dead.run_id, dead.outcome) == ("aa11", LOST)
    assert registry.bury_dead() == []
    assert registry.ended() == [dead]


def test_another_process_with_its_number_is_not_taken_for_it() -> None:
    registry.enter(_entry(mark="1"))
    assert registry.running() == []
    assert [entry.outcome for entry in registry.bury_dead()] == [LOST]


def test_what_runs_on_another_host_is_not_judged() -> None:
    elsewhere = replace(_entry(pid=1, mark="1"), host="elsewhere.example")
    registry.enter(elsewhere)
    assert registry.running() == [elsewhere]
    assert registry.bury_dead() == []
    assert not registry.running()[0].is_here


def test_one_that_ended_in_order_is_not_called_lost(state: Path) -> None:
    """Its process ended between a look at the file and a look at the process."""
    entry = _entry(mark="1")
    registry.leave(entry, "FINISHED")
    registry.enter(entry)
    assert registry.bury_dead() == []
    assert [ended.outcome for ended in registry.ended()] == ["FINISHED"]


def test_a_few_ended_ones_are_kept(state: Path) -> None:
    for number in range(53):
        entry = _entry(f"{number:04}")
        registry.leave(entry, "FINISHED")
        os.utime(state / "ended" / f"{number:04}.json", ns=(number, number))
    registry.leave(_entry("last"), "FINISHED")
    kept = {entry.run_id for entry in registry.ended()}
    assert len(kept) == 50
    assert "last" in kept
    assert "0000" not in kept


def test_files_of_others_are_skipped(state: Path) -> None:
    registry.enter(_entry())
    (state / "jobs" / "half.json").write_text('{"run_id": "x"')
    (state / "jobs" / "old.json").write_text('{"run_id": "x"}')
    (state / "jobs" / "odd.json").write_text("[1]")
    (state / "jobs" / "aa11.json.77.tmp").write_text("")
    assert [entry.run_id for entry in registry.running()] == ["aa11"]


def test_fields_of_a_later_version_are_skipped(state: Path) -> None:
    registry.enter(_entry())
    path = state / "jobs" / "aa11.json"
    path.write_text(path.read_text().replace("{", '{"novelty": 1, ', 1))
    assert [entry.run_id for entry in registry.running()] == ["aa11"]


def test_a_process_is_known_by_when_it_started() -> None:
    mark = start_mark(os.getpid())
    assert mark is not None
    assert is_alive(os.getpid(), mark)
    assert not is_alive(os.getpid(), mark + "0")
    assert start_mark(2**22 + 1) is None
