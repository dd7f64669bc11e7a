"""BATCH: the same answers as STREAMING, the last ones only, in one epoch in which time stands still
until all input has been read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import (
    AggregateFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.driver.epoch_report import EpochReport
from penstock.errors import CheckpointMismatchError, UnsupportedFeatureError
from penstock.testing import ScriptedSource

Env = StreamExecutionEnvironment
MIN, MAX = -(1 << 63), (1 << 63) - 1
LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

on_local = pytest.mark.parametrize("executor", ["local"], indirect=True)
on_spark = pytest.mark.parametrize(
    "executor", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)

# Key, timestamp, number: in order enough for a bound of 30.
EVENTS = [
    [("a", 10, 1), ("b", 12, 2), ("a", 5, 3)],
    [("c", 31, 4), ("a", 20, 5), ("b", 42, 6)],
    [],
    [("a", 57, 7), ("c", 33, 8), ("a", 71, 9), ("b", 69, 10)],
]
OTHERS = [[("a", 8, 100), ("b", 40, 200)], [("c", 34, 300)], [("a", 68, 400)]]


def timed(env: Env, script: Iterable[Any] = EVENTS, bound: int = 30) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Time.milliseconds(bound))
    strategy = strategy.with_timestamp_assigner(lambda event, _: event[1])
    return env.from_source(ScriptedSource(script), strategy)


def last_of_each_key(stream: DataStream) -> list[Any]:
    return sorted({record[0]: record for record in stream.execute_and_collect()}.values())


def all_records(stream: DataStream) -> list[Any]:
    return sorted(stream.execute_and_collect())


def rolling_sum(env: Env) -> Any:
    return last_of_each_key(timed(env).key_by(0).sum(2).map(lambda e: (e[0], e[2])))


class _WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield *value, ctx.timestamp()


def reduced_with_time(env: Env) -> Any:
    largest = timed(env).key_by(0).reduce(lambda a, b: max(a, b, key=lambda e: e[2]))
    return last_of_each_key(largest.process(_WithTime()))


def first_by_number(env: Env) -> Any:
    return last_of_each_key(timed(env).union(timed(env, OTHERS)).key_by(0).max_by(2))


def tumbling(env: Env) -> Any:
    windows = timed(env).key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return all_records(windows.reduce(lambda a, b: (a[0], 0, a[2] + b[2])).map(_named))


def _named(event: Any) -> Any:
    return event[0], event[2]


class _Total(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value[2])

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def sliding(env: Env) -> Any:
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(20))
    return all_records(timed(env).key_by(0).window(assigner).aggregate(_Total()))


def sessions(env: Env) -> Any:
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(15))
    return all_records(timed(env).key_by(0).window(assigner).aggregate(_Total()))


def count_windows(env: Env) -> Any:
    return all_records(timed(env).key_by(0).count_window(2).reduce(lambda a, b: (*a, b[2])))


class _SumUntilTimer(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value[2])
        ctx.timer_service().register_event_time_timer(1000)
        if value[2] % 2:
            yield LATE, value[2]

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp, self.total.value()


def timers(env: Env) -> Any:
    return all_records(timed(env).key_by(0).process(_SumUntilTimer()))


def side_outputs(env: Env) -> Any:
    return all_records(timed(env).key_by(0).process(_SumUntilTimer()).get_side_output(LATE))


class _Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right, ctx.get_timestamp()


def interval_join(env: Env) -> Any:
    left, right = timed(env).key_by(0), timed(env, OTHERS).key_by(0)
    within = left.interval_join(right).between(Time.milliseconds(-10), Time.milliseconds(10))
    return all_records(within.process(_Pair()))


def window_join(env: Env) -> Any:
    joined = timed(env).join(timed(env, OTHERS)).where(lambda e: e[0]).equal_to(lambda e: e[0])
    windows = joined.window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return all_records(windows.apply(lambda a, b: (a, b)))


class _Both(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def _add(self, value: Any, ctx: Any) -> None:
        self.total.update((self.total.value() or 0) + value[2])
        ctx.timer_service().register_event_time_timer(MAX)

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self._add(value, ctx)

    process_element2 = process_element1

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.total.value()


def connected(env: Env) -> Any:
    both = timed(env).connect(timed(env, OTHERS)).key_by(lambda e: e[0], lambda e: e[0])
    return all_records(both.process(_Both()))


def in_order(env: Env) -> Any:
    seen = timed(env).key_by(0).in_event_time_order()
    return all_records(seen.map_with_state(lambda e, n: ((e[0], n or 0, e[2]), (n or 0) + 1)))


PROGRAMS: list[Callable[[Env], Any]] = [
    rolling_sum,
    reduced_with_time,
    first_by_number,
    tumbling,
    sliding,
    sessions,
    count_windows,
    timers,
    side_outputs,
    interval_join,
    window_join,
    connected,
    in_order,
]


# No other subtask could hold a watermark back that should not be there.
ALONE = {"parallelism.default": "1"}


def batch_of(make_env: Any, settings: dict[str, str] | None = None) -> Env:
    env: Env = make_env({"execution.runtime-mode": "BATCH", **(settings or {})})
    return env


@on_local
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_answers_are_those_of_streaming(make_env: Any, program: Callable[[Env], Any]) -> None:
    streaming = program(make_env())
    assert streaming
    assert program(batch_of(make_env)) == streaming


class _Judge(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[0], value[2], ctx.get_broadcast_state(RULES).get(value[0])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value[0], value[2])


def test_several_streams_in_one_epoch(make_env: Any) -> None:
    """Rules are final values of another aggregate, and all of them come before the data; so do they
    if the data's tasks are before theirs in every other order."""
    env = batch_of(make_env, {"penstock.source.max-records-per-epoch": "2"})
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    data = timed(env).key_by(0)
    rules = timed(env, [[], [], [], *OTHERS]).key_by(0).sum(2)
    judged = data.connect(rules.broadcast(RULES)).process(_Judge())
    windows = judged.key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1], a[2]))

    assert all_records(sums) == [
        ("a", 4, 500),
        ("a", 5, 500),
        ("a", 7, 500),
        ("a", 9, 500),
        ("b", 2, 200),
        ("b", 6, 200),
        ("b", 10, 200),
        ("c", 12, 300),
    ]
    assert [(report.epoch, report.final) for report in reports] == [(0, True)]
    assert reports[0].state_bytes == 0  # nothing goes on from it


class _Clocks(KeyedProcessFunction):
    """Tells what it sees of time. Timers of its timers are for a time that never comes."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        service = ctx.timer_service()
        service.register_event_time_timer(value[1])
        service.register_processing_time_timer(service.current_processing_time() + 3_600_000)
        service.register_processing_time_timer(value[1])
        if value[2] == 3:
            service.delete_processing_time_timer(5)
        yield "element", value[1], service.current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        service = ctx.timer_service()
        service.register_processing_time_timer(timestamp + 1)
        domain = ctx.time_domain().name
        until_now = timestamp < 1000
        yield domain, timestamp if until_now else "later", service.current_watermark()


class _EveryRecord(WatermarkGenerator):
    """Would make most of the records late."""

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(timestamp + 50)

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(10**6)


def _eager(env: Env, script: Iterable[Any]) -> DataStream:
    strategy = WatermarkStrategy.for_generator(_EveryRecord)
    strategy = strategy.with_timestamp_assigner(lambda event, _: event[1])
    return env.from_source(ScriptedSource(script), strategy)


@on_local
def test_time_stands_still_until_the_end(make_env: Any) -> None:
    script = [[("a", 10, 1), ("a", 20, 2)], [("a", 5, 3)]]
    env = batch_of(make_env, ALONE)
    stream = _eager(env, script).key_by(0).process(_Clocks())
    assert list(stream.execute_and_collect()) == [
        ("element", 10, MIN),
        ("element", 20, MIN),
        ("element", 5, MIN),
        ("EVENT_TIME", 5, MAX),
        ("EVENT_TIME", 10, MAX),
        ("EVENT_TIME", 20, MAX),
        # One that an event timer set, 11 and 21 too; none of those that these set.
        ("PROCESSING_TIME", 6, MAX),
        ("PROCESSING_TIME", 10, MAX),
        ("PROCESSING_TIME", 11, MAX),
        ("PROCESSING_TIME", 20, MAX),
        ("PROCESSING_TIME", 21, MAX),
        ("PROCESSING_TIME", "later", MAX),
    ]


@on_local
@pytest.mark.parametrize("later", [False, True], ids=["at_the_source", "later"])
def test_nothing_is_late(make_env: Any, later: bool) -> None:
    events = [[("a", 100, 1)], [("a", 10, 2)], [("a", 101, 4), ("a", 11, 8)]]

    def totals(env: Env) -> tuple[list[Any], list[Any]]:
        stream = _eager(env, events)
        if later:
            strategy = WatermarkStrategy.for_generator(_EveryRecord)
            strategy = strategy.with_timestamp_assigner(lambda event, _: event[1])
            stream = env.from_source(ScriptedSource(events)).assign_timestamps_and_watermarks(
                strategy
            )
        windows = stream.key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        on_time = windows.side_output_late_data(LATE).aggregate(_Total())
        both = on_time.map(lambda n: ("on time", n)).union(
            on_time.get_side_output(LATE).map(lambda event: ("late", event[2]))
        )
        found = all_records(both)
        return [n for kind, n in found if kind == "on time"], [n for k, n in found if k == "late"]

    assert totals(make_env(ALONE))[1] != []
    assert totals(batch_of(make_env, ALONE)) == ([5, 10], [])


@on_local
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_no_periodic_watermark(make_env: Any, mode: str) -> None:
    """Not even within a long epoch."""

    def slowly(event: Any) -> Any:
        time.sleep(0.002)
        return event

    fast = {"pipeline.auto-watermark-interval": "1 ms", "execution.runtime-mode": mode}
    env = make_env({**ALONE, **fast})
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    strategy = strategy.with_timestamp_assigner(lambda event, _: event[1])
    events = env.from_collection([("a", 100, 1)] + [("a", 10, 1)] * 60).map(slowly)
    timed = events.assign_timestamps_and_watermarks(strategy)
    windows = timed.key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
    assert (all_records(windows.aggregate(_Total())) == [1, 60]) == (mode == "BATCH")


@on_local
def test_processing_time_windows_end_with_the_input(make_env: Any) -> None:
    windows = batch_of(make_env).from_collection([("a", 0, n) for n in range(10)]).key_by(0)
    hours = windows.window(TumblingProcessingTimeWindows.of(Time.hours(24)))
    assert all_records(hours.aggregate(_Total())) == [45]


@on_local
def test_one_aggregate_after_another_gets_final_values(make_env: Any) -> None:
    numbers = batch_of(make_env).from_sequence(1, 100).map(lambda n: (n % 10, n))
    per_digit = numbers.key_by(0).sum(1)
    total = per_digit.map(lambda pair: ("all", pair[1], 1)).key_by(0)
    added = total.reduce(lambda a, b: ("all", a[1] + b[1], a[2] + b[2]))
    assert all_records(added) == [("all", 5050, 10)]


class _KeepAll(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.all.add(value)
        ctx.timer_service().register_event_time_timer(MAX)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), sum(1 for _ in self.all.get()), sum(self.all.get())


@on_local
def test_state_beyond_memory(make_env: Any) -> None:
    """Changes of the only epoch are spilled, several times."""
    env = batch_of(make_env, {"penstock.state.cache-entries": "20"})
    kept = env.from_sequence(0, 9_999).key_by(lambda n: n % 100).process(_KeepAll())
    assert all_records(kept) == [(k, 100, sum(range(k, 10_000, 100))) for k in range(100)]


@on_local
def test_a_source_that_has_to_be_waited_for(make_env: Any) -> None:
    env = batch_of(make_env, {"penstock.source.max-records-per-epoch": "1"})
    slow = env.from_source(DataGeneratorSource(lambda n: ("x", n), count=20, rate=200))
    assert all_records(slow.key_by(0).sum(1)) == [("x", 190)]


@on_local
def test_no_input(make_env: Any) -> None:
    env = batch_of(make_env)
    assert all_records(env.from_collection([]).key_by(0).sum(1)) == []


def test_a_failure_starts_from_the_beginning(make_env: Any) -> None:
    env = batch_of(
        make_env,
        {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"},
    )
    script = [[("a", 1, 1), ("b", 2, 2)], [("a", 3, 4), ScriptedSource.FAIL, ("b", 4, 8)]]
    counted = timed(env, script).key_by(0).sum(2).map(_named)
    assert all_records(counted) == [("a", 5), ("b", 10)]


@on_local
def test_a_program_that_died_starts_from_the_beginning(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def program(divisor: int) -> DataStream:
        env = batch_of(restartable_env)
        return env.from_sequence(1, 50).key_by(lambda n: n % divisor).reduce(lambda a, b: a + b)

    values, error = collect_until_error(program(0))
    assert values == []
    assert "ZeroDivisionError" in str(error)
    assert all_records(program(2)) == [625, 650]


@on_local
def test_the_checkpoint_of_a_streaming_job_is_refused(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def fail_late(n: int) -> int:
        if n == 50:
            raise RuntimeError("late")
        return n

    values, _ = collect_until_error(restartable_env().from_sequence(1, 50).map(fail_late))
    assert values
    with pytest.raises(CheckpointMismatchError, match="go on in STREAMING mode, or start anew"):
        all_records(batch_of(restartable_env).from_sequence(1, 50).map(fail_late))


@on_local
def test_at_most_once_reads_a_failed_input_no_second_time(make_env: Any, tmp_path: Path) -> None:
    settings = {
        "execution.checkpointing.mode": "AT_MOST_ONCE",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }
    env = batch_of(make_env, settings)
    seen = tmp_path / "seen"

    def note(event: Any) -> Any:
        with seen.open("a") as file:
            file.write(event[0])
        return event

    script = [[("a", 1, 1)], [ScriptedSource.FAIL, ("b", 2, 2)]]
    assert all_records(timed(env, script).map(note)) == []
    assert seen.read_text() == "a"


def test_cancelled_in_the_middle(make_env: Any) -> None:
    env = batch_of(make_env)
    slow = DataGeneratorSource(lambda n: "x" * 100_000, count=10**9, rate=2000)
    env.from_source(slow).key_by(len).reduce(lambda a, b: b).print()
    job = env.execute_async()
    while job.get_job_status().result().name != "RUNNING":
        time.sleep(0.01)
    threading.Event().wait(0.5)
    job.cancel().result(60)
    assert job.get_job_status().result().name == "CANCELED"


@on_local
def test_a_source_without_end_is_refused(make_env: Any) -> None:
    env = batch_of(make_env)
    endless = env.from_source(DataGeneratorSource(lambda n: n), source_name="ticks")
    with pytest.raises(UnsupportedFeatureError) as caught:
        endless.union(env.from_elements(1)).execute_and_collect()
    message = str(caught.value)
    assert "source 'Source: ticks' (" in message
    assert f"{Path(__file__).name}:" in message
    assert message.endswith("in BATCH mode is not supported; it never ends; "
                            "use RuntimeExecutionMode.STREAMING")  # fmt: skip


@on_spark
def test_frames_of_spark(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """A batch frame is read as it is; a streaming one, here of several files, in one batch."""
    batch = spark.createDataFrame([("a", n, 1) for n in range(60)], "key string, at long, n long")
    batch.repartition(6).write.parquet(str(tmp_path / "rows"))

    def program(frame: Any) -> tuple[list[Any], int]:
        env = batch_of(make_env)
        reports: list[EpochReport] = []
        env.add_epoch_listener(reports.append)
        rows = env.from_spark(frame, tuple, bounded=True)
        both = rows.union(env.from_collection([("a", 0, 100), ("b", 0, 1)]))
        found = all_records(both.key_by(0).sum(2).map(_named))
        return found, len(reports)

    reader = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1)
    assert program(batch) == ([("a", 160), ("b", 1)], 1)
    assert program(batch.where("n > 1")) == ([("a", 100), ("b", 1)], 1)
    assert program(reader.parquet(str(tmp_path / "rows"))) == ([("a", 160), ("b", 1)], 1)
