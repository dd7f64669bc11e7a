"""NEXMark: every query gives what a direct computation over the same events gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench.nexmark as nexmark
import cloudpickle
import pytest
from bench.nexmark.direct import Events, answer
from bench.nexmark.files import event_files
from bench.nexmark.generator import Settings
from bench.nexmark.queries import QUERIES, q12
from bench.nexmark.streams import Streams

from penstock.common import Duration

# Windows end all the time at this rate: 40 seconds of events, out of order by up to three.
_SETTINGS = Settings(events=4_000, rate=100, block=500)


@pytest.fixture(scope="module", autouse=True)
def queries_travel_by_value() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(nexmark)
    yield
    cloudpickle.unregister_pickle_by_value(nexmark)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return event_files(_SETTINGS, tmp_path_factory.mktemp("nexmark"))


@pytest.fixture
def several_epochs(make_env: Any) -> Any:
    return make_env({"penstock.source.max-records-per-epoch": "600"})


@pytest.mark.parametrize("executor", ["local"], indirect=True)
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "q12"])
def test_query(name: str, several_epochs: Any, events: Path) -> None:
    query = QUERIES[name]
    stream = query.build(Streams(several_epochs, str(events)))
    given = query.settled(stream.execute_and_collect())
    assert given == answer(name, Events.of(events))
    assert given


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_windows_of_the_clock(several_epochs: Any, events: Path) -> None:
    """q12 with windows so short that several end while it runs, and the last before the input."""
    streams = Streams(several_epochs, str(events), linger=0.2)
    stream = q12.build(streams, Duration.of_millis(100))
    assert q12.settled(stream.execute_and_collect()) == answer("q12", Events.of(events))


def on_spark(name: str, spark: Any, make_env: Any, events: Path) -> Any:
    query = QUERIES[name]
    stream = query.build(Streams(make_env(), str(events), spark, files_per_epoch=4))
    return query.settled(stream.execute_and_collect())


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_hot_items_on_spark(spark: Any, make_env: Any, events: Path) -> None:
    assert on_spark("q5", spark, make_env, events) == answer("q5", Events.of(events))


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_new_users_on_spark(spark: Any, make_env: Any, events: Path) -> None:
    assert on_spark("q8", spark, make_env, events) == answer("q8", Events.of(events))
