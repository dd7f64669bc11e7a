"""Rows B1 to B5: timestamps and watermarks, from their source through exchanges and unions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pipeline_records import Point, Reading

from penstock.common import Duration, Row, Types, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from penstock.errors import InvalidArgumentError
from penstock.testing import ScriptedSource

MIN, MAX = -(1 << 63), (1 << 63) - 1


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


def test_a_timestamp_may_be_a_field(env: StreamExecutionEnvironment) -> None:
    """Of records of any kind, also in one stream."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    records: dict[str | int, list[Any]] = {
        "x": [{"x": 1}, Point(2, 0), Row(x=3), {"y": 0, "x": 4}],
        1: [("a", 5), Point(0, 6), ["b", 7], Row("c", 8), Reading("d", 9)],
        "f0": [(10, "e")],
        0: [11],
    }
    first, *others = (
        env.from_collection(of_field).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(field)
        )
        for field, of_field in records.items()
    )

    found = [shown[:2] for shown in first.union(*others).process(Shown()).execute_and_collect()]

    every = [record for of_field in records.values() for record in of_field]
    assert sorted(found, key=lambda shown: shown[1]) == list(zip(every, range(1, 12), strict=True))


def test_watermarks_follow_from_a_field(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    script = ScriptedSource([[{"at": 5}], [{"at": 8}], [{"at": 9}]])
    stream = env.from_source(script, strategy, "r").global_().process(Shown())
    assert [shown[1:] for shown in stream.execute_and_collect()] == [(5, MIN), (8, 4), (9, 7)]


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
    """A later assigner has one generator per subtask, and goes idle as a whole."""

    def first_alarm(strategy: WatermarkStrategy) -> int:
        env = make_env({"penstock.source.max-records-per-epoch": "1"})
        silent = env.from_source(ScriptedSource([[("x", 1)], *([[]] * 15)])).map(lambda r: r)
        goes_on = env.from_sequence(1, 20).map(lambda n: ("x", n * 10))
        silent = silent.assign_timestamps_and_watermarks(strategy)
        goes_on = goes_on.assign_timestamps_and_watermarks(bounded())
        alarm = silent.union(goes_on).key_by(lambda r: r[0]).process(Alarm())
        return min(alarm.execute_and_collect())

    assert first_alarm(bounded().with_idleness(Duration.of_millis(1))) < 200
    assert first_alarm(bounded()) == MAX


def slowly(record: Any) -> Any:
    time.sleep(0.004)
    return record


@pytest.mark.parametrize(("interval", "moves"), [(20, True), (100_000, False), (0, False)])
def test_periodic_watermarks_come_within_an_epoch_too(
    make_env: Any, interval: int, moves: bool
) -> None:
    env = make_env({"parallelism.default": "1"})
    env.get_config().set_auto_watermark_interval(interval)
    records = [("r", n) for n in range(60)]
    stream = env.from_source(ScriptedSource([records]), bounded(), "r").map(slowly).process(Shown())

    met = [watermark for _, _, watermark in stream.execute_and_collect()]

    assert met[0] == MIN
    assert met == sorted(met)
    assert (met[-1] > MIN) is moves


@pytest.mark.parametrize(("interval", "met"), [(100_000, [MIN, 0, 1]), (0, [MIN, MIN, MIN])])
def test_every_epoch_ends_with_a_periodic_watermark_unless_there_are_none(
    make_env: Any, interval: int, met: list[int]
) -> None:
    env = make_env()
    script = ScriptedSource([[("r", 1)], [("r", 2)], [("r", 3)]])
    stream = env.from_source(script, bounded(), "r").global_().process(Shown())
    env.get_config().set_auto_watermark_interval(interval)  # also after the program was built

    assert [watermark for _, _, watermark in stream.execute_and_collect()] == met


class Backward(WatermarkGenerator):
    """Says 10 and then 5."""

    def __init__(self) -> None:
        self._next = 10

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(self._next)
        self._next = 5

    def on_periodic_emit(self, output: Any) -> None:
        pass


def test_time_never_goes_back(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_generator(Backward).with_timestamp_assigner(by_second)
    records = [("a", 1), ("b", 2), ("c", 3)]
    stream = env.from_source(ScriptedSource([records]), strategy, "r").process(Shown())
    assert [met for _, _, met in stream.execute_and_collect()] == [MIN, 10, 10]


class ByTheClock(WatermarkGenerator):
    """Says a watermark whenever it is asked, records or not."""

    def __init__(self) -> None:
        self._asked = 0

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        self._asked += 1
        output.emit_watermark(self._asked)


def test_a_generator_is_asked_although_no_records_come(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_auto_watermark_interval(Duration.of_hours(1))
    strategy = WatermarkStrategy.for_generator(ByTheClock).with_timestamp_assigner(by_second)
    source = ScriptedSource([[("a", 1)], *([[]] * 8), [("b", 2)]])
    stream = env.from_source(source, strategy, "r").global_().process(Shown())
    assert [met for _, _, met in stream.execute_and_collect()] == [MIN, 9]


def test_ingestion_time(env: StreamExecutionEnvironment) -> None:
    """The clock's, one instant for an epoch; a silent split does not stop it."""
    before = time.time() * 1000
    script = {"a": [["a1", "a2"], [], ["a3"]], "silent": [[], [], []]}
    strategy = WatermarkStrategy.for_ingestion_time()
    stream = env.from_source(ScriptedSource(script), strategy, "r").global_().process(Shown())

    found = {value: (stamp, met) for value, stamp, met in stream.execute_and_collect()}

    (first, _), (second, met_second), (third, met_third) = (found[n] for n in ("a1", "a2", "a3"))
    assert before - 1 <= first == second <= third <= time.time() * 1000
    assert met_second == MIN
    assert first <= met_third + 1 <= third


def test_the_time_characteristic_of_flink_1(env: StreamExecutionEnvironment) -> None:
    assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    before = time.time() * 1000
    stream = env.from_collection([1], Types.INT()).global_().process(Shown())
    [(value, stamp, _)] = stream.execute_and_collect()
    assert value == 1
    assert before - 1 <= stamp <= time.time() * 1000

    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_config().get_auto_watermark_interval() == 0
    with pytest.raises(InvalidArgumentError, match="a TimeCharacteristic"):
        env.set_stream_time_characteristic("EventTime")  # type: ignore[arg-type]


def test_reports_tell_how_far_time_is(env: StreamExecutionEnvironment) -> None:
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    script = {"fast": [[("f", 100)], [("f", 200)], []], "slow": [[("s", 10)], [("s", 20)], []]}
    stream = env.from_source(ScriptedSource(script), bounded(), "r").uid("source")
    shown = stream.map(lambda r: r).uid("map").global_().process(Shown()).uid("shown")
    list(shown.execute_and_collect())

    found = [
        [report.watermarks.get(uid) for uid in ("source", "map", "shown")] for report in reports
    ]
    assert found == [[9, 9, 9], [19, 19, 19], [MAX, MAX, MAX], [MAX, MAX, MAX]]


@pytest.mark.parametrize("parallelism", ["1", "2"])
@pytest.mark.parametrize("sources", [1, 2])
def test_aligned_splits_wait_for_the_slowest(make_env: Any, parallelism: str, sources: int) -> None:
    """Of one source or two: the fast one is ahead by the drift and one epoch's records at most."""
    fast = [[("f", n * 100)] for n in range(1, 6)]
    slow = [[("s", n * 10)] for n in range(1, 61)]
    env = make_env({"parallelism.default": parallelism})
    aligned = bounded().with_watermark_alignment("g", Duration.of_millis(50))
    if sources == 1:
        stream = env.from_source(ScriptedSource({"f": fast, "s": slow}), aligned, "both")
    else:
        first = env.from_source(ScriptedSource(fast), aligned, "fast")
        stream = first.union(env.from_source(ScriptedSource(slow), aligned, "slow"))

    reached = {"f": 0, "s": 0}
    ahead = []
    for kind, at in stream.global_().map(lambda r: r).execute_and_collect():
        reached[kind] = at
        ahead.append(reached["f"] - reached["s"])
    assert reached == {"f": 500, "s": 600}
    assert max(ahead) <= 100 + 50


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_the_time_of_a_spark_source_moves_with_its_epochs(
    spark: Any, make_env: Any, tmp_path: Path
) -> None:
    """One file an epoch: an alarm set in the first rings in the second."""
    frame = files_in_order(spark, tmp_path, [[1, 2], [20, 30], [40, 50]], at_once=1)
    env = make_env()
    stream = env.from_spark(frame, tuple, bounded=True).assign_timestamps_and_watermarks(bounded())

    rung = list(stream.key_by(lambda r: r[0]).process(Alarm()).execute_and_collect())

    assert rung[0] == 29


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_of_the_files_of_an_epoch_the_newest_decides(
    spark: Any, make_env: Any, tmp_path: Path
) -> None:
    """Two files an epoch, each read by a task; the next two are read by nobody knows which. An
    alarm rings when time goes on, at the latest when the epoch ends."""
    times = [[1, 2], [20, 30], [40, 50], [60, 70], [80], [90]]
    frame = files_in_order(spark, tmp_path, times, at_once=2)
    env = make_env()
    stream = env.from_spark(frame, tuple, bounded=True).assign_timestamps_and_watermarks(bounded())

    rung = list(stream.key_by(lambda r: r[0]).process(Alarm()).execute_and_collect())

    assert rung == sorted(rung)
    assert {29, 69} <= set(rung)


def files_in_order(spark: Any, directory: Path, files: list[list[int]], at_once: int) -> Any:
    """A stream of files with these timestamps, so many of them an epoch."""
    for number, times in enumerate(files):
        rows = spark.createDataFrame([("x", time) for time in times], "k string, t long")
        rows.coalesce(1).write.parquet(str(directory / "in" / str(number)))
    return (
        spark.readStream.schema("k string, t long")
        .option("maxFilesPerTrigger", at_once)
        .option("recursiveFileLookup", "true")
        .parquet(str(directory / "in"))
    )


@pytest.mark.parametrize("exchange", ["chained", "exchanged"])
def test_an_assigner_sees_the_timestamp_that_the_record_had(
    env: StreamExecutionEnvironment, exchange: str
) -> None:
    def first(record: int, before: int) -> int:
        assert before == MIN
        return record

    def second(record: int, before: int) -> int:
        return before * 10

    stream = env.from_collection([1, 2, 3])
    for assign in (first, second):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assign)
        stream = stream.assign_timestamps_and_watermarks(strategy)
        if exchange == "exchanged":
            stream = stream.global_()

    found = stream.process(Shown()).execute_and_collect()

    assert sorted(time for _, time, _ in found) == [10, 20, 30]
