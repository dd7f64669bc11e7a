"""Savepoints asked for at odd times: every answer comes, and the job does what was asked last."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from gated import (
    SAVEPOINTS,
    START,
    Count,
    GatedSource,
    StartJob,
    await_lines,
    await_true,
    expected,
    written,
)

from penstock.common import JobStatus
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.driver import savepoints
from penstock.errors import JobCancelledError, SavepointError
from penstock.storage.snapshot import open_snapshot

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"


@pytest.fixture(scope="module")
def executor() -> str:
    """What is tested is in the driver, above any executor."""
    return "local"


def goes_on_from(job: StartJob, path: str, tmp_path: Path) -> None:
    """What was written before the savepoint is there; ten numbers more."""
    count = len(written(tmp_path / "out")) + 10
    running = job(count, {START: path})
    await_lines(tmp_path, count)
    running.cancel().result(60)


class _Held:
    """A savepoint that is being written until it is let go, with an error if there is one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        write = savepoints.write_savepoint

        def held(*arguments: Any) -> str:
            self.begun.set()
            assert self.go_on.wait(60)
            if error is not None:
                raise error
            return write(*arguments)

        monkeypatch.setattr(savepoints, "write_savepoint", held)


def test_stopped_twice(job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = job(10)
    await_lines(tmp_path, 10)
    held = _Held(monkeypatch)
    first = running.stop_with_savepoint(False)
    assert held.begun.wait(60)
    again = running.stop_with_savepoint(False)
    for otherwise in (
        running.stop_with_savepoint(True),
        running.stop_with_savepoint(False, str(tmp_path / "elsewhere")),
        running.cancel_with_savepoint(),
    ):
        with pytest.raises(SavepointError, match="being stopped with a savepoint already"):
            otherwise.result(60)
    held.go_on.set()
    assert first.result(60) == again.result(60)
    assert running.get_job_status().result() is JobStatus.FINISHED
    for late in (running.stop_with_savepoint(False), running.trigger_savepoint()):
        with pytest.raises(SavepointError, match=r"has ended \(FINISHED\)"):
            late.result(60)
    goes_on_from(job, first.result(), tmp_path)


@pytest.mark.parametrize("error", [None, OSError("the disk is gone")], ids=["made", "not made"])
def test_cancelled_while_the_savepoint_is_made(
    job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    running = job(10)
    await_lines(tmp_path, 10)
    held = _Held(monkeypatch, error)
    stopped = running.stop_with_savepoint(False)
    assert held.begun.wait(60)
    cancelled = running.cancel()
    held.go_on.set()
    cancelled.result(60)
    assert running.get_job_status().result() is JobStatus.CANCELED
    assert not (tmp_path / "checkpoints" / "job").exists()
    with pytest.raises(JobCancelledError):
        running.get_job_execution_result().result(60)
    if error is not None:
        with pytest.raises(OSError, match="the disk is gone"):
            stopped.result(60)
    else:
        path = stopped.result(60)
        monkeypatch.undo()
        goes_on_from(job, path, tmp_path)


class Waits(Count):
    """Waits at a count of key 0 until a file says what to do: go on, or fail."""

    def __init__(self, waiting: Path, told: Path, at: int) -> None:
        self._waiting, self._told, self._at = waiting, told, at

    def process_element(self, value: Any, context: Any) -> Any:
        for line in super().process_element(value, context):
            if line == f"0 {self._at}":
                self._waiting.write_text("")
                await_true(lambda: self._told.exists() and bool(self._told.read_text()))
                if self._told.read_text() == "fail":
                    raise ValueError("as told")
            yield line


@pytest.fixture
def waits(tmp_path: Path) -> Waits:
    return Waits(tmp_path / "waiting", tmp_path / "told", at=3)


def test_cancelled_before_the_savepoint_is_begun(
    job: StartJob, tmp_path: Path, waits: Waits
) -> None:
    running = job(10, function=waits)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_true((tmp_path / "waiting").exists)
    stopped = running.stop_with_savepoint(False)
    cancelled = running.cancel()
    with pytest.raises(SavepointError, match="has ended"):
        running.stop_with_savepoint(False, str(tmp_path / "elsewhere")).result(60)
    (tmp_path / "told").write_text("go on")
    cancelled.result(60)
    with pytest.raises(SavepointError, match=r"has ended \(CANCELED\)"):
        stopped.result(60)
    assert not (tmp_path / "savepoints").exists()


@pytest.mark.parametrize("told", ["go on", "fail"])
def test_the_epoch_under_way_when_a_job_is_stopped(
    job: StartJob, tmp_path: Path, waits: Waits, told: str
) -> None:
    """It is in the savepoint or fails, and then it is as if it had never begun."""
    running = job(10, function=waits)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_true((tmp_path / "waiting").exists)
    stopped = running.stop_with_savepoint(False)
    (tmp_path / "told").write_text(told)
    path = stopped.result(60)
    assert written(tmp_path / "out") == expected(range(20 if told == "go on" else 10))
    goes_on_from(job, path, tmp_path)


def test_stopped_while_it_waits_for_a_restart(job: StartJob, tmp_path: Path, waits: Waits) -> None:
    (tmp_path / "told").write_text("fail")
    delayed = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 h",
        "restart-strategy.fixed-delay.attempts": "9",
    }
    running = job(10, delayed, waits)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_true(lambda: running.get_job_status().result() is JobStatus.RESTARTING)
    triggered = running.trigger_savepoint().result(60)
    stopped = running.stop_with_savepoint(False).result(60)
    assert running.get_job_status().result() is JobStatus.FINISHED
    assert open_snapshot(triggered).manifest.epoch == open_snapshot(stopped).manifest.epoch
    goes_on_from(job, stopped, tmp_path)


def test_interrupted_while_it_is_stopped(job: StartJob, tmp_path: Path, waits: Waits) -> None:
    """Ctrl-C: the checkpoints stay, and the program goes on from them."""
    running = job(10, function=waits)
    await_lines(tmp_path, 10)
    (tmp_path / "gate").write_text("20")
    await_true((tmp_path / "waiting").exists)
    stopped = running.stop_with_savepoint(False)
    running.job.interrupt()
    (tmp_path / "told").write_text("go on")
    with pytest.raises(SavepointError, match="has ended"):
        stopped.result(60)
    await_true(lambda: running.get_job_execution_result().done())
    running = job(30)
    await_lines(tmp_path, 30)
    running.cancel().result(60)


def test_before_the_first_epoch(job: StartJob, tmp_path: Path) -> None:
    """While it is under way, it is waited for."""
    (tmp_path / "told").unlink(missing_ok=True)
    running = job(10, function=Waits(tmp_path / "waiting", tmp_path / "told", at=1))
    await_true((tmp_path / "waiting").exists)
    asked = running.trigger_savepoint()
    assert not asked.done()
    (tmp_path / "told").write_text("go on")
    path = asked.result(60)
    assert open_snapshot(path).manifest.state_types["counts"]
    running.cancel().result(60)
    running = job(20, {START: path})
    await_lines(tmp_path, 20)
    running.cancel().result(60)


def test_whoever_asked_cannot_take_it_back(
    job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait for what comes after it, and for the job itself."""
    running = job(10)
    await_lines(tmp_path, 10)
    held = _Held(monkeypatch)
    one, other = running.trigger_savepoint(), running.trigger_savepoint()
    assert held.begun.wait(60)
    assert not one.cancel()
    assert not running.get_job_execution_result().cancel()
    held.go_on.set()
    assert one.result(60) != other.result(60)
    running.cancel().result(60)


class _Unwilling(Sink):
    """Commits nothing."""

    def create_writer(self, context: Any) -> SinkWriter:
        return _Nothing()

    def create_committer(self) -> Committer:
        return _Refuses()


class _Nothing(SinkWriter):
    def write(self, value: Any, context: Any) -> None:
        pass

    def prepare_commit(self) -> list[Any]:
        return ["something"]


class _Refuses(Committer):
    def commit(self, committables: Any) -> None:
        raise OSError("no")


def test_asked_of_a_job_whose_output_cannot_be_committed(
    restartable_env: Any, tmp_path: Path
) -> None:
    """There is an epoch, but none that a savepoint may be made of; and the job waits for none."""
    (tmp_path / "gate").write_text("10")
    settings = {
        SAVEPOINTS: str(tmp_path / "savepoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 h",
        "restart-strategy.fixed-delay.attempts": "9",
    }
    env = restartable_env(settings)
    env.from_source(GatedSource(tmp_path / "gate")).uid("n").sink_to(_Unwilling()).uid("sink")
    running = env.execute_async("unwilling")
    await_true(lambda: running.get_job_status().result() is JobStatus.RESTARTING)
    triggered = running.trigger_savepoint()
    running.cancel().result(60)
    with pytest.raises(SavepointError, match="has ended"):
        triggered.result(60)
    assert not (tmp_path / "savepoints").exists()
