"""Row B4: Spark's sources that are silent, that are idle, and any sources that have ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from silent_source import ThenSilent

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction
from penstock.testing import ScriptedSource

MAX = (1 << 63) - 1
on_spark = pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)

STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1]
)


class Alarm(KeyedProcessFunction):
    """Tells how far time was when its time, 10, had come."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark()


def alarm(stream: Any) -> Any:
    return stream.key_by(lambda r: "all").process(Alarm()).uid("alarm")


def first_alarm(stream: Any) -> int:
    """How far time was when the alarm rang first; the job then ends."""
    with alarm(stream).execute_and_collect() as results:
        found: int = next(results)
        return found


def watermarks(env: Any, stream: Any, enough: Callable[[list[Any]], bool]) -> list[Any]:
    """The alarm's watermarks by epoch, until there are enough; the job is then cancelled."""
    found: list[Any] = []
    env.add_epoch_listener(lambda report: found.append(report.watermarks.get("alarm")))
    alarm(stream).print()
    client = env.execute_async()
    deadline = time.monotonic() + 60
    while not enough(found):
        assert time.monotonic() < deadline, found
        assert not client.get_job_execution_result().done()
        time.sleep(0.02)
    client.cancel().result(60)
    return found


def rows(spark: Any, path: Path, *times: int) -> str:
    spark.createDataFrame([("s", t) for t in times], "k string, t long").write.parquet(str(path))
    return str(path)


def silent_and_lively(spark: Any, env: Any, path: Path, strategy: WatermarkStrategy) -> Any:
    """One of Spark's sources gives a row and then no more, the other goes on."""
    directory = rows(spark, path, 1)
    silent = spark.readStream.schema("k string, t long").parquet(directory)
    lively = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    first = env.from_spark(silent, tuple, watermark_strategy=strategy)
    second = env.from_spark(lively, tuple).map(lambda row: ("l", row[1]))
    return first.union(second.assign_timestamps_and_watermarks(STRATEGY))


@on_spark
def test_a_silent_spark_source_holds_time_back(spark: Any, make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    stream = silent_and_lively(spark, env, tmp_path / "in", STRATEGY)
    found = watermarks(env, stream, lambda found: len(found) >= 12)
    assert set(found[1:]) == {0}


@on_spark
def test_an_idle_spark_source_holds_nobody_back(spark: Any, make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    idle = STRATEGY.with_idleness(Duration.of_millis(300))
    stream = silent_and_lively(spark, env, tmp_path / "in", idle)
    found = watermarks(env, stream, lambda found: bool(found) and (found[-1] or 0) > 10)
    assert 0 in found  # while it was not known to be idle


@on_spark
def test_spark_source_and_nothing_else_goes_idle(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """With no records of any source, epochs go on for the clock's sake."""
    env = make_env()
    path = rows(spark, tmp_path / "in", 1)
    frame = spark.readStream.schema("k string, t long").parquet(path)
    idle = STRATEGY.with_idleness(Duration.of_millis(100))
    silent = env.from_spark(frame, tuple, watermark_strategy=idle)
    other = env.from_source(ThenSilent(("o", 50)), STRATEGY, "other")
    found = watermarks(env, silent.union(other), lambda found: bool(found) and found[-1] == 49)
    assert 0 in found


@on_spark
def test_ingestion_time_goes_on_while_a_spark_source_is_silent(
    spark: Any, make_env: Any, tmp_path: Path
) -> None:
    env = make_env()
    path = rows(spark, tmp_path / "in", 1)
    frame = spark.readStream.schema("k string, t long").parquet(path)
    strategy = WatermarkStrategy.for_ingestion_time()
    stream = env.from_spark(frame, tuple, watermark_strategy=strategy)
    started = time.time() * 1000
    found = watermarks(env, stream, lambda found: len(found) >= 4)
    assert found == sorted(set(found))
    assert started - 1 <= found[0]
    assert found[-1] <= time.time() * 1000


GOES_ON = [[("g", n * 10)] for n in range(1, 31)]


@on_spark
def test_a_frame_that_ends_before_a_python_source(spark: Any, make_env: Any) -> None:
    env = make_env()
    frame = spark.createDataFrame([("s", 1)], "k string, t long")
    ends = env.from_spark(frame, tuple, watermark_strategy=STRATEGY)
    goes_on = env.from_source(ScriptedSource(GOES_ON), STRATEGY, "goes on")
    assert 10 <= first_alarm(ends.union(goes_on)) < 300


@on_spark
def test_a_frame_that_ends_beside_a_python_source_that_does_not(spark: Any, make_env: Any) -> None:
    env = make_env()
    frame = spark.createDataFrame([("s", 1)], "k string, t long")
    ends = env.from_spark(frame, tuple, watermark_strategy=STRATEGY)
    goes_on = env.from_source(ThenSilent(("g", 5), ("g", 20)), STRATEGY, "goes on")
    assert first_alarm(ends.union(goes_on)) == 19


def ends_early(env: Any, kind: str) -> Any:
    ends = env.from_collection([("e", 1)])
    if kind == "stamped":
        return ends.assign_timestamps_and_watermarks(STRATEGY)
    if kind == "exchanged":
        return ends.rebalance().map(lambda r: r).rebalance().map(lambda r: r)
    return ends


@pytest.mark.parametrize("kind", ["stamped", "without timestamps", "exchanged"])
def test_a_source_that_ends_holds_nobody_back(make_env: Any, kind: str) -> None:
    """Without timestamps it has no event time, and holds back the rest until it ends."""
    env = make_env()
    goes_on = env.from_source(ScriptedSource(GOES_ON), STRATEGY, "goes on")
    assert 10 <= first_alarm(ends_early(env, kind).union(goes_on)) < 300


def test_what_ends_early_has_all_its_timers_fired(make_env: Any) -> None:
    """Not only at the end of the job, which may never come."""
    env = make_env()
    never_ends = env.from_source(ThenSilent(("n", 1)), STRATEGY, "never ends")
    never_ends.map(lambda r: r).print()
    ends = env.from_collection([("e", 1)]).assign_timestamps_and_watermarks(STRATEGY)
    assert first_alarm(ends) == MAX


def test_watermarks_reach_subtasks_that_get_no_records(make_env: Any) -> None:
    """Only the first of two gets records; what follows waits for neither."""
    env = make_env()
    goes_on = env.from_source(ScriptedSource(GOES_ON), STRATEGY, "goes on")
    assert first_alarm(goes_on.global_().map(lambda r: r)) == 19


def test_chaining_does_not_matter(make_env: Any) -> None:
    env = make_env().disable_operator_chaining()
    goes_on = env.from_source(ScriptedSource(GOES_ON), STRATEGY, "goes on")
    assert first_alarm(goes_on.map(lambda r: r)) == 19
