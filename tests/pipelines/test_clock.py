"""Rows B1, B6: processing time goes on while no records come, for every kind of source."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from silent_source import ThenSilent

from penstock.common import Duration
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TimeDomain
from penstock.datastream.connectors.datagen import DataGeneratorSource


class Reminder(KeyedProcessFunction):
    """Rings 300 ms after its one record, and again and again after as long."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 300)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        assert ctx.time_domain() is TimeDomain.PROCESSING_TIME
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 300)
        yield now - timestamp


def fires_soon(records: Any) -> bool:
    """Whether a timer fires within 700 ms of its time; one of ten, since tests share cores."""
    with records.key_by(lambda r: r[0]).process(Reminder()).execute_and_collect() as delays:
        return any(delay < 700 for delay in islice(delays, 10))


def test_timers_fire_while_a_python_source_is_silent(env: StreamExecutionEnvironment) -> None:
    assert fires_soon(env.from_source(ThenSilent(("a",))))


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_timers_fire_while_a_spark_source_is_silent(
    spark: Any, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    spark.createDataFrame([("a",)], "k string").write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema("k string").parquet(str(tmp_path / "in"))

    assert fires_soon(env.from_spark(frame, tuple))


class RingsLater(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + Duration.of_days(1).to_millis())
        yield "set"

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "rang"


def test_the_end_of_input_does_not_wait_for_processing_time(
    env: StreamExecutionEnvironment,
) -> None:
    """As in Flink: timers that are not due then never fire."""
    keyed = env.from_elements("a").key_by(lambda r: r)
    assert list(keyed.process(RingsLater()).execute_and_collect()) == ["set"]


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_epochs_without_records_only_if_something_waits_for_the_clock(
    spark: Any, make_env: Any, tmp_path: Path
) -> None:
    """A job of Spark's sources whose functions have no timers runs no batch while there is none."""
    spark.createDataFrame([("a",)], "k string").write.parquet(str(tmp_path / "in"))
    epochs: list[Any] = []
    env = make_env()
    env.add_epoch_listener(epochs.append)
    frame = spark.readStream.schema("k string").parquet(str(tmp_path / "in"))
    with env.from_spark(frame, tuple).map(lambda r: r[0]).execute_and_collect() as results:
        assert next(results) == "a"
        time.sleep(1)
    assert len(epochs) == 1


def test_processing_time_is_one_instant_within_an_epoch(make_env: Any) -> None:
    class Now(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            time.sleep(0.005)
            yield ctx.timer_service().current_processing_time()

    before = time.time() * 1000
    keyed = make_env().from_source(DataGeneratorSource(lambda i: i, 10)).key_by(lambda r: "all")
    times = set(keyed.process(Now()).execute_and_collect())
    assert len(times) == 1
    assert before - 1 <= times.pop() <= time.time() * 1000
