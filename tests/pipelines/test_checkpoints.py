"""Rows F2 and E6: what checkpoints are made of, how long they stay, what an epoch writes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import options
from penstock.common import Configuration
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.driver.epoch_report import EpochReport
from penstock.errors import EngineError, UserFunctionError
from penstock.testing import ScriptedSource


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value == "fail":
            raise RuntimeError("on cue")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def counted(env: Any, epochs: list[list[Any]]) -> Any:
    source = ScriptedSource(epochs)
    return env.from_source(source, source_name="script").key_by(lambda v: v).process(Count())


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_an_epoch_writes_what_changed_and_not_the_state(make_env: Any, backend: str) -> None:
    env = make_env({"state.backend.type": backend})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    keys, touched = list(range(20_000)), list(range(0, 20_000, 1000))
    found = dict(counted(env, [keys, touched, touched]).execute_and_collect())
    assert found == {key: 3 if key % 1000 == 0 else 1 for key in keys}
    first, second, third = [r for r in reports if r.state_bytes]
    assert (first.state_rows, second.state_rows, third.state_rows) == (20_000, 20, 20)
    # A file has some two kilobytes of its own.
    assert max(second.state_bytes, third.state_bytes) < first.state_bytes / 20


@pytest.mark.parametrize(
    ("backend", "files"), [("hashmap", {"data.mdb"}), ("rocksdb", {"CURRENT", "IDENTITY"})]
)
def test_the_backend_is_the_one_asked_for(
    restartable_env: Any, tmp_path: Path, backend: str, files: set[str]
) -> None:
    """Row E5: what lies in the local directory was written by that store."""
    settings = {"state.backend.type": backend, "penstock.state.cache-entries": "1"}
    env = restartable_env(settings)
    made: set[str] = set()
    stores = tmp_path / "stores"
    # Looked at while the job runs: it takes them away when it has finished.
    env.add_epoch_listener(lambda report: made.update(path.name for path in stores.rglob("*")))
    stream = counted(env, [["a", "b"], ["a", "c"], ["a", "b"]])
    found = [dict([item]) for item in stream.execute_and_collect()]
    assert max(item.get("a", 0) for item in found) == 3
    assert files <= made
    assert not [path for path in stores.rglob("*") if path.is_file()]
    assert not made & ({"data.mdb", "CURRENT"} - files)


def test_changes_beyond_memory_are_spilled(make_env: Any) -> None:
    """More keys change in an epoch than are held; each is met again after it was spilled."""
    env = make_env({"penstock.state.cache-entries": "50"})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    keys = [f"key-{i}" for i in range(3000)]
    found = dict(counted(env, [keys * 3, keys]).execute_and_collect())
    assert found == dict.fromkeys(keys, 4)
    assert reports[0].state_rows > 3000  # written in several parts, some keys more than once


@pytest.mark.parametrize(("memory", "spills"), [("8g", False), ("1k", True)])
def test_a_worker_that_has_memory_spills_nothing(
    make_env: Any, memory: str, spills: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But if it has not, no more are held than is usual, here 50."""
    usual = replace(options.STATE_CACHE_ENTRIES, default=50)
    monkeypatch.setattr("penstock.options.STATE_CACHE_ENTRIES", usual)
    env = make_env({"penstock.state.cache-memory": memory})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    keys = [f"key-{i}" for i in range(3000)]
    found = dict(counted(env, [keys * 3]).execute_and_collect())
    assert found == dict.fromkeys(keys, 3)
    assert (reports[0].state_rows > 3000) == spills


@pytest.mark.parametrize("retained", [1, 12])
def test_as_many_are_retained_as_asked_for(
    restartable_env: Any, tmp_path: Path, retained: int
) -> None:
    env = restartable_env({"execution.checkpointing.num-retained": str(retained)})
    with pytest.raises(UserFunctionError, match="on cue"):
        list(counted(env, [[i] for i in range(20)] + [["fail"]]).execute_and_collect())
    epochs = sorted(int(p.stem) for p in (tmp_path / "checkpoints/job/epochs").glob("*.json"))
    # Clean-up runs every eight epochs, so up to seven more are there.
    assert retained <= len(epochs) <= retained + 7
    assert epochs == list(range(20 - len(epochs), 20))


def test_a_finished_job_leaves_no_files(restartable_env: Any, tmp_path: Path) -> None:
    list(counted(restartable_env(), [[1], [2]]).execute_and_collect())
    left = [p.name for p in (tmp_path / "checkpoints").iterdir()]
    assert left == []


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        ("RETAIN_ON_CANCELLATION", True),
        ("DELETE_ON_CANCELLATION", False),
        ("NO_EXTERNALIZED_CHECKPOINTS", False),
        (None, False),
    ],
)
def test_a_cancelled_job_keeps_its_checkpoint_if_asked_to(
    restartable_env: Any, tmp_path: Path, retention: str | None, kept: bool
) -> None:
    key = "execution.checkpointing.externalized-checkpoint-retention"
    env = restartable_env({key: retention} if retention else {})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    counted(env, [[i] for i in range(5000)]).print()
    client = env.execute_async("endless")
    deadline = time.monotonic() + 60
    while len(reports) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    client.cancel().result()
    assert len(reports) >= 2
    assert bool(list((tmp_path / "checkpoints/job/epochs").glob("*.json"))) is kept


@pytest.mark.spark
def test_an_epoch_that_takes_too_long_is_cancelled(spark: Any) -> None:
    """On Spark only: the local executor has one thread, and nothing could cancel it."""
    settings = {"execution.checkpointing.timeout": "1 s", "parallelism.default": "2"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    stream = env.from_collection([1]).map(lambda v: time.sleep(20) or v)
    with pytest.raises(EngineError, match="longer than 1 s"):
        list(stream.execute_and_collect())
