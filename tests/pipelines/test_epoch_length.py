"""Row E6: how much an epoch reads when there is more than it can work on at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
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
