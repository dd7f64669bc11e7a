"""Rows B2, B4, B5: timestamps and watermarks, from their source through exchanges and unions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

MIN = -(1 << 63)


class Shown(ProcessFunction):
    """Each record with its timestamp and the watermark that it met."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def by_second(record: Any, _: int) -> int:
    time: int = record[1]
    return time


def bounded(millis: int = 0) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(millis)
    ).with_timestamp_assigner(by_second)


RECORDS = [("a", 100), ("b", 50), ("c", 300), ("d", 200)]


def test_a_watermark_lags_the_newest_timestamp(make_env: Any) -> None:
    env = make_env({"penstock.source.max-records-per-epoch": "1"})
    stream = env.from_collection(RECORDS).assign_timestamps_and_watermarks(bounded(20))

    found = stream.global_().process(Shown()).execute_and_collect()

    assert sorted(found) == [
        (("a", 100), 100, MIN),
        (("b", 50), 50, 79),
        (("c", 300), 300, 79),
        (("d", 200), 200, 279),
    ]


class AfterMarks(WatermarkGenerator):
    """Punctuated: a record called "mark" says that time has come so far."""

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        if event[0] == "mark":
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


@pytest.mark.parametrize("exchange", ["chained", "exchanged"])
def test_a_punctuated_watermark_acts_between_two_records(
    env: StreamExecutionEnvironment, exchange: str
) -> None:
    strategy = WatermarkStrategy.for_generator(AfterMarks).with_timestamp_assigner(by_second)
    records = [("a", 1), ("mark", 5), ("b", 3), ("mark", 4), ("c", 9)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    if exchange == "exchanged":
        stream = stream.global_()

    shown = stream.process(Shown()).set_parallelism(1)
    found = {value: met for value, _, met in shown.execute_and_collect()}

    assert found == {
        ("a", 1): MIN,
        ("mark", 5): MIN,
        ("b", 3): 5,
        ("mark", 4): 5,
        ("c", 9): 5,
    }


class Alarm(KeyedProcessFunction):
    """Tells when its time has come, and how far time was then."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.timer_service().current_watermark()


def test_the_slower_of_two_united_streams_decides(make_env: Any) -> None:
    env = make_env({"penstock.source.max-records-per-epoch": "1"})
    fast = env.from_collection([("x", 5), ("x", 1000), ("x", 2000)])
    slow = env.from_collection([("x", 1), ("x", 8), ("x", 12), ("x", 13)])
    fast = fast.assign_timestamps_and_watermarks(bounded())
    slow = slow.assign_timestamps_and_watermarks(bounded())

    alarm = fast.union(slow).key_by(lambda r: r[0]).process(Alarm())

    assert next(iter(alarm.execute_and_collect())) == 11


def test_an_idle_stream_holds_nobody_back(make_env: Any) -> None:
    env = make_env({"penstock.source.max-records-per-epoch": "1"})
    ends = env.from_collection([("x", 1)])
    goes_on = env.from_sequence(1, 40).map(lambda n: ("x", n * 10))
    ends = ends.assign_timestamps_and_watermarks(bounded().with_idleness(Duration.of_millis(1)))
    goes_on = goes_on.assign_timestamps_and_watermarks(bounded())

    alarm = ends.union(goes_on).key_by(lambda r: r[0]).process(Alarm())

    assert min(alarm.execute_and_collect()) < 400


@pytest.mark.parametrize("stamp", [None, "1", 1.5])
def test_a_timestamp_that_is_none(env: StreamExecutionEnvironment, stamp: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: stamp
    )
    stream = env.from_elements(1).assign_timestamps_and_watermarks(strategy)
    message = r"'Timestamps/Watermarks' \(.*test_watermarks.py.*an int, in milliseconds"
    with pytest.raises(InvalidArgumentError, match=message):
        list(stream.execute_and_collect())


def test_records_without_timestamps(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_elements(1).assign_timestamps_and_watermarks(strategy)
    with pytest.raises(InvalidArgumentError, match="with_timestamp_assigner"):
        list(stream.execute_and_collect())


def test_alignment_is_refused(env: StreamExecutionEnvironment) -> None:
    aligned = bounded().with_watermark_alignment("group", Duration.of_seconds(1))
    with pytest.raises(UnsupportedFeatureError, match="alignment"):
        env.from_elements(1).assign_timestamps_and_watermarks(aligned)


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_the_time_of_a_spark_source_moves_with_its_epochs(
    spark: Any, make_env: Any, tmp_path: Path
) -> None:
    """One file an epoch: an alarm set in the first rings in the second."""
    for number, times in enumerate([[1, 2], [20, 30], [40, 50]]):
        rows = spark.createDataFrame([("x", time) for time in times], "k string, t long")
        rows.coalesce(1).write.parquet(str(tmp_path / "in" / str(number)))
    frame = (
        spark.readStream.schema("k string, t long")
        .option("maxFilesPerTrigger", 1)
        .option("recursiveFileLookup", "true")
        .parquet(str(tmp_path / "in"))
    )
    env = make_env()
    stream = env.from_spark(frame, tuple, bounded=True).assign_timestamps_and_watermarks(bounded())

    rung = list(stream.key_by(lambda r: r[0]).process(Alarm()).execute_and_collect())

    assert rung[0] == 29
