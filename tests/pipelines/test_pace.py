"""Row F2: how long an epoch reads, and how long the next one waits."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.driver import job
from penstock.driver.epoch_report import EpochReport
from penstock.errors import CheckpointUnwritableError
from penstock.storage.checkpoint_log import CheckpointLog


class Slow(Source):
    """Numbers, one at a time, each some milliseconds after the other."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count = count
        self.seconds = seconds

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("all", None, 0)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _SlowReader(self)


class _SlowReader(SourceReader):
    def __init__(self, source: Slow) -> None:
        self._source = source

    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        time.sleep(self._source.seconds)
        return ReadResult([position], position + 1, finished=position + 1 == self._source.count)


def records_by_epoch(env: Any, source: Source) -> list[int]:
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    found = list(env.from_source(source).uid("source").execute_and_collect())
    assert sorted(found) == list(range(len(found)))
    return [r.records_in["source"] for r in reports if r.records_in.get("source")]


def test_the_interval_is_how_long_an_epoch_reads(make_env: Any) -> None:
    env = make_env({"execution.checkpointing.interval": "100 ms"})
    epochs = records_by_epoch(env, Slow(20, 0.03))
    assert sum(epochs) == 20
    assert max(epochs) <= 4
    assert len(epochs) >= 5


def test_a_long_interval_is_not_waited_for(env: Any) -> None:
    env.enable_checkpointing(3_600_000)
    started = time.monotonic()
    assert records_by_epoch(env, Slow(20, 0.003)) == [20]
    assert time.monotonic() - started < 60


PAUSE = 0.4


def watched(env: Any) -> list[tuple[float, float]]:
    """When each epoch of the job begins and ends; the last one, which reads nothing, left out."""
    spans: list[tuple[float, float]] = []

    def watch(report: EpochReport) -> None:
        now = time.monotonic()
        if not report.final:
            spans.append((now - report.seconds, now))

    env.add_epoch_listener(watch)
    return spans


def gaps_of(spans: list[tuple[float, float]]) -> list[float]:
    return [start - end for (_, end), (start, _) in pairwise(spans)]


@pytest.mark.parametrize("pause", [PAUSE, 0])
def test_the_pause_begins_at_the_end_of_a_checkpoint(make_env: Any, pause: float) -> None:
    """Epochs last longer than the pause, so one from start to start would be over before."""
    env = make_env({"execution.checkpointing.interval": "10 ms"})
    env.get_checkpoint_config().set_min_pause_between_checkpoints(int(pause * 1000))
    spans = watched(env)
    assert sorted(env.from_source(Slow(4, 0.5)).execute_and_collect()) == [0, 1, 2, 3]
    gaps = gaps_of(spans)
    assert len(gaps) >= 3
    if pause:
        assert min(gaps) >= PAUSE - 0.02  # the listener is called a moment after the end
    else:
        assert min(gaps) < PAUSE


@pytest.mark.spark
def test_the_pause_between_batches_of_spark(spark: Any) -> None:
    """On Spark only: a frame of twelve files, of which an epoch reads four."""
    settings = {"execution.checkpointing.min-pause": "400 ms", "parallelism.default": "1"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    spans = watched(env)
    stream = env.from_spark(spark.range(0, 24, 1, 12), record_type=tuple)
    assert sorted(stream.execute_and_collect()) == [(n,) for n in range(24)]
    gaps = gaps_of(spans)
    assert len(gaps) >= 2
    assert min(gaps) >= PAUSE - 0.02


@pytest.mark.parametrize(
    "setting", ["execution.checkpointing.min-pause", "penstock.epoch.interval"]
)
def test_stopping_does_not_wait_for_the_next_epoch(make_env: Any, setting: str) -> None:
    env = make_env({setting: "10 min", "penstock.source.max-records-per-epoch": "10"})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    env.from_source(DataGeneratorSource(lambda i: i)).print()
    client = env.execute_async("waiting")
    deadline = time.monotonic() + 60
    while not reports and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)
    stopped = time.monotonic()
    client.cancel().result(60)
    assert time.monotonic() - stopped < 30
    assert len(reports) == 1


def test_the_end_does_not_wait_either(make_env: Any) -> None:
    started = time.monotonic()
    env = make_env({"execution.checkpointing.min-pause": "10 min"})
    assert sorted(env.from_sequence(1, 5).execute_and_collect()) == [1, 2, 3, 4, 5]
    assert time.monotonic() - started < 60


class _Unwritable:
    """A checkpoint directory that refuses some manifests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, epochs: list[int]) -> None:
        commit = CheckpointLog.commit

        def refused(log: CheckpointLog, manifest: Any) -> None:
            if manifest.epoch in epochs:
                epochs.remove(manifest.epoch)
                raise CheckpointUnwritableError.at("/full", OSError("no space left"))
            commit(log, manifest)

        monkeypatch.setattr(CheckpointLog, "commit", refused)
        monkeypatch.setattr(job, "_TOLERATED_DELAY_MILLIS", 10)


def _tolerating(make_env: Any, failures: int) -> Any:
    return make_env(
        {
            "restart-strategy.type": "none",
            "penstock.source.max-records-per-epoch": "5",
            "execution.checkpointing.tolerable-failed-checkpoints": str(failures),
        }
    )


def test_so_many_failed_checkpoints_in_a_row_are_tolerated(
    make_env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Unwritable(monkeypatch, [0, 0, 1, 1])
    env = _tolerating(make_env, 2)
    assert sorted(env.from_collection(range(20)).execute_and_collect()) == list(range(20))


def test_one_more_failed_checkpoint_is_not(make_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _Unwritable(monkeypatch, [1, 1, 1])
    env = _tolerating(make_env, 2)
    with pytest.raises(CheckpointUnwritableError, match="no space left"):
        list(env.from_collection(range(20)).execute_and_collect())


class Unequal(Source):
    """A split that always has more, slowly, before one that has everything at hand."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("slow", 30, 0), Split("quick", 3, 0)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return UnequalReader()


class UnequalReader(SourceReader):
    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        if split.split_id == "slow":
            time.sleep(0.02)
        return ReadResult([split.split_id], position + 1, finished=position + 1 == split.data)


def test_a_slow_split_does_not_starve_the_others(make_env: Any) -> None:
    env = make_env({"parallelism.default": "1", "execution.checkpointing.interval": "50 ms"})

    found = list(env.from_source(Unequal()).execute_and_collect())

    assert found.index("quick") < 10
    assert sorted(found) == ["quick"] * 3 + ["slow"] * 30
