"""Row E6: how much an epoch reads when there is more than it can work on at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.common import Time, WatermarkStrategy
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.driver.epoch_report import EpochReport
from penstock.errors import InvalidArgumentError


class Sluggish(Source):
    """Numbers, of which each takes its time to be read."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count = count
        self.seconds = seconds

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("all", (self.count, self.seconds), 0)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _SluggishReader()


class _SluggishReader(SourceReader):
    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        count, seconds = split.data
        time.sleep(seconds)
        return ReadResult([position], position + 1, finished=position + 1 == count)


def reports_of(env: Any, source: Source) -> list[EpochReport]:
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    numbers = env.from_source(source).uid("source").key_by(lambda n: n).map(lambda n: n)
    found = list(numbers.execute_and_collect())
    assert sorted(found) == list(range(len(found)))
    return [r for r in reports if r.records_in.get("source")]


def test_epochs_under_load_are_no_longer_than_may_be(make_env: Any) -> None:
    """All of it takes 600 ms to be read, of which an epoch is to take 100."""
    env = make_env({"penstock.epoch.adaptive.longest": "100 ms"})
    reports = reports_of(env, Sluggish(60, 0.01))
    assert sum(r.records_in["source"] for r in reports) == 60
    assert len(reports) >= 2
    first, last = reports[0], reports[-1]
    assert first.cost is not None
    assert first.cost.cut_off
    assert first.cost.records == first.records_in["source"]
    assert 0 < first.cost.working <= first.cost.seconds
    assert 0 <= first.cost.fixed_share < 1
    assert last.cost is not None
    assert not last.cost.cut_off


SPARSE_STEP, DENSE_STEP = 1000, 100
"""Milliseconds of event time between two records."""
BOTH = 600_000


def two_streams(env: Any) -> tuple[list[tuple[int, int]], list[EpochReport]]:
    """Windows over a sparse and a dense stream of ten minutes: their results, and the epochs."""
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)

    def stream(name: str, step: int) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda record, _: record[1]
        )
        source = DataGeneratorSource(lambda i: (0, i * step), BOTH // step)
        return env.from_source(source, strategy, name).uid(name)

    both = stream("sparse", SPARSE_STEP).union(stream("dense", DENSE_STEP))
    counts = (
        both.key_by(lambda record: record[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(60)))
        .reduce(lambda a, b: (a[0] + b[0] + 1, max(a[1], b[1])))
    )
    return list(counts.execute_and_collect()), reports


def furthest_apart(reports: list[EpochReport]) -> int:
    """Milliseconds of event time that one of the streams was ahead, at the end of an epoch."""
    ahead, sparse, dense = 0, 0, 0
    for report in reports:
        sparse += report.records_in.get("sparse", 0) * SPARSE_STEP
        dense += report.records_in.get("dense", 0) * DENSE_STEP
        ahead = max(ahead, abs(sparse - dense))
    return ahead


def test_sources_that_meet_keep_pace_in_event_time(make_env: Any) -> None:
    """With 100 records a subtask and epoch the sparse one would be at its end after three."""
    settings = {"penstock.source.max-records-per-epoch": "100"}
    results, reports = two_streams(make_env(settings))
    paced = furthest_apart(reports)

    settings["penstock.source.keep-pace"] = "false"
    same, reports = two_streams(make_env(settings))
    assert sorted(results) == sorted(same) == [(659, 60_000 * n + 59_900) for n in range(10)]
    assert furthest_apart(reports) == 600_000 - 3 * 2 * 100 * DENSE_STEP
    # Two epochs are read before it is known who is ahead.
    assert paced <= 2 * 2 * 100 * SPARSE_STEP


class TestLocally:
    """What the driver decides; the executor has no part in it."""

    @pytest.fixture
    def executor(self) -> str:
        return "local"

    def test_one_that_can_read_all_in_time_does(self, env: Any) -> None:
        (report,) = reports_of(env, Sluggish(20, 0.001))
        assert report.record_limit == 100_000
        assert report.cost is not None
        assert not report.cost.cut_off

    @pytest.mark.parametrize(
        "settings",
        [
            {"penstock.epoch.adaptive.enabled": "false"},
            {"execution.checkpointing.mode": "AT_MOST_ONCE"},
        ],
    )
    def test_not_adapted(self, make_env: Any, settings: dict[str, str]) -> None:
        env = make_env({"penstock.epoch.adaptive.longest": "10 ms", **settings})
        (report,) = reports_of(env, Sluggish(30, 0.002))
        assert report.record_limit is None

    def test_a_limit_of_the_users_holds(self, make_env: Any) -> None:
        env = make_env({"penstock.source.max-records-per-epoch": "7"})
        reports = reports_of(env, Sluggish(20, 0.0))
        assert [r.records_in["source"] for r in reports] == [7, 7, 6]
        assert {r.record_limit for r in reports} == {7}

    @pytest.mark.parametrize(
        ("setting", "value"),
        [("fixed-cost-share", "0"), ("fixed-cost-share", "1"), ("longest", "0")],
    )
    def test_bad_settings(self, make_env: Any, setting: str, value: str) -> None:
        key = f"penstock.epoch.adaptive.{setting}"
        env = make_env({key: value})
        with pytest.raises(InvalidArgumentError, match=key):
            list(env.from_collection([1]).execute_and_collect())
