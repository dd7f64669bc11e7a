"""Jobs are listed while they run, whatever becomes of them, and none fails by that."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.driver import announcement, registry
from penstock.driver.control_client import ask
from penstock.driver.registry import JobEntry
from penstock.errors import JobCancelledError, UserFunctionError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(announcement, "_warned", False)
    return tmp_path / "state"


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> StreamExecutionEnvironment:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    settings = Configuration().set_string("penstock.job-id", "numbers-1")
    return StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(1)


def _seen_while_running(env: StreamExecutionEnvironment) -> list[JobEntry]:
    seen: list[JobEntry] = []
    env.add_epoch_listener(lambda report: seen.extend(registry.running()))
    return seen


def test_a_finished_job(env: StreamExecutionEnvironment, state: Path) -> None:
    seen = _seen_while_running(env)
    env.from_collection([1, 2]).print()
    env.execute("numbers")

    entry = seen[0]
    assert (entry.job_id, entry.name, entry.pid) == ("numbers-1", "numbers", os.getpid())
    assert (entry.executor, entry.parallelism, entry.root) == ("local", 1, None)
    assert registry.running() == []
    (ended,) = registry.ended()
    assert (ended.run_id, ended.outcome, ended.error) == (entry.run_id, "FINISHED", None)
    assert os.listdir(state / "jobs") == []


def test_a_failed_job(env: StreamExecutionEnvironment) -> None:
    env.from_collection([0]).map(lambda n: 1 / n).print()
    with pytest.raises(UserFunctionError):
        env.execute("numbers")
    (ended,) = registry.ended()
    assert ended.outcome == "FAILED"
    assert "ZeroDivisionError" in str(ended.error)


def test_one_that_is_cancelled_from_outside(env: StreamExecutionEnvironment) -> None:
    begun = threading.Event()
    env.add_epoch_listener(lambda report: begun.set())
    env.from_source(DataGeneratorSource(lambda i: i, rate=100)).print()
    client = env.execute_async("numbers")
    assert begun.wait(60)

    (entry,) = registry.running()
    status = ask(entry, "status")
    assert status["status"] == "RUNNING"
    assert status["epoch"] is not None
    assert ask(entry, "cancel") == {"outcome": "CANCELED"}

    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(60)
    assert [ended.outcome for ended in registry.ended()] == ["CANCELED"]


def test_who_hears_of_the_end_can_start_it_again(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """The lease is free by then."""
    settings = Configuration().set_string("execution.checkpointing.dir", str(tmp_path / "c"))
    env.configure(settings)
    begun = threading.Event()
    env.add_epoch_listener(lambda report: begun.set())
    for _ in range(3):
        begun.clear()
        env.from_source(DataGeneratorSource(lambda i: i, rate=100)).print()
        env.execute_async("numbers")
        assert begun.wait(60)
        (entry,) = registry.running()
        assert entry.root == str(tmp_path / "c" / "numbers-1")
        assert ask(entry, "cancel") == {"outcome": "CANCELED"}


def _no_directory(state: Path) -> None:
    state.write_text("not a directory")


def _no_directory_in_it(state: Path) -> None:
    state.mkdir()
    (state / "jobs").write_text("not a directory")


@pytest.mark.parametrize("spoil", [_no_directory, _no_directory_in_it])
def test_a_home_that_cannot_be_written(
    spoil: Callable[[Path], Any],
    env: StreamExecutionEnvironment,
    state: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(state)
    for number in (1, 2):
        env.from_collection([number]).print()
        with caplog.at_level(logging.WARNING, "penstock"):
            env.execute("numbers")
    assert capsys.readouterr().out == "1\n2\n"
    assert len(caplog.records) == 1
    assert "numbers" in caplog.text
