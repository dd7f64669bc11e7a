"""The examples that explain what streams are for: alerts, averages, sessions, late readings."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import ScriptedSource

MINUTE = 60_000
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda reading, _: reading[1]
)

# Readings: sensor, time in milliseconds, degrees


def sensor(reading: Any) -> str:
    name: str = reading[0]
    return name


class TemperatureIncreaseAlert(KeyedProcessFunction):
    """Warns if a sensor's temperature has only risen for a second."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self._timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        before, timer = self._last.value(), self._timer.value()
        self._last.update(value[2])
        if before is None or value[2] < before:
            if timer is not None:
                ctx.timer_service().delete_event_time_timer(timer)
            self._timer.clear()
        elif value[2] > before and timer is None:
            self._timer.update(ctx.timestamp() + 1000)
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[str]:
        self._timer.clear()
        yield f"Temperature of sensor '{ctx.get_current_key()}' rose for 1 second."


def test_alert_if_the_temperature_rises_for_a_second(env: StreamExecutionEnvironment) -> None:
    readings = [
        ("warm", 0, 20.0),
        ("mixed", 0, 20.0),
        ("warm", 400, 20.5),
        ("mixed", 400, 21.0),
        ("mixed", 900, 20.0),
        ("warm", 1200, 20.5),
        ("warm", 1500, 21.0),
        ("mixed", 1600, 20.0),
    ]
    stream = env.from_collection(readings).assign_timestamps_and_watermarks(IN_ORDER)

    alerts = stream.key_by(sensor).process(TemperatureIncreaseAlert()).execute_and_collect()

    assert list(alerts) == ["Temperature of sensor 'warm' rose for 1 second."]


FREEZING = OutputTag("freezing-alarms", Types.STRING())


class FreezingMonitor(ProcessFunction):
    """Passes readings on, and tells of frost to the side."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any]:
        if value[2] < 32.0:
            yield FREEZING, f"Freezing alarm for {value[0]}"
        yield value


def test_freezing_alarms_go_to_a_side_output(env: StreamExecutionEnvironment) -> None:
    readings = [("a", 0, 40.0), ("b", 1, 31.9), ("a", 2, 32.0), ("c", 3, -4.0)]
    monitored = env.from_collection(readings).process(FreezingMonitor())

    told = monitored.get_side_output(FREEZING).union(monitored.map(lambda reading: reading[0]))

    assert sorted(told.execute_and_collect()) == [
        *("Freezing alarm for b", "Freezing alarm for c"),
        *("a", "a", "b", "c"),
    ]


class Average(AggregateFunction):
    """The accumulator is a sum and a count."""

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: Any, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
        return a[0] + b[0], a[1] + b[1]


class WithWindow(ProcessWindowFunction):
    """Adds to the one result of a window whose it is, and of when."""

    def process(self, key: str, context: Any, elements: Iterable[float]) -> Iterable[Any]:
        [result] = elements
        yield key, context.window().start, result


def test_average_per_sensor_and_minute(env: StreamExecutionEnvironment) -> None:
    readings = [("a", n * 20_000, float(n)) for n in range(6)] + [("b", 130_000, 7.0)]
    stream = env.from_collection(readings).assign_timestamps_and_watermarks(IN_ORDER)

    averages = (
        stream.key_by(sensor)
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .aggregate(
            Average(),
            WithWindow(),
            accumulator_type=Types.TUPLE([Types.DOUBLE(), Types.INT()]),
        )
    )

    assert sorted(averages.execute_and_collect()) == [
        ("a", 0, 1.0),
        ("a", MINUTE, 4.0),
        ("b", 2 * MINUTE, 7.0),
    ]


class Median(ProcessWindowFunction):
    """Needs all elements of the window at once."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        degrees = [reading[2] for reading in elements]
        yield key, context.window().end, statistics.median(degrees), len(degrees)


def test_median_by_a_full_window_function(env: StreamExecutionEnvironment) -> None:
    degrees = [30.0, 10.0, 20.0, 90.0, 15.0]
    readings = [("a", 1000 * n, degree) for n, degree in enumerate(degrees)]
    readings += [("b", 61_000, 1.0), ("b", 62_000, 2.0)]
    stream = env.from_collection(readings).assign_timestamps_and_watermarks(IN_ORDER)

    windows = stream.key_by(sensor).window(TumblingEventTimeWindows.of(Time.minutes(1)))

    assert sorted(windows.process(Median()).execute_and_collect()) == [
        ("a", MINUTE, 20.0, 5),
        ("b", 2 * MINUTE, 1.5, 2),
    ]


class Counted(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, len(list(elements))


def test_early_results_each_second_before_the_exact_one(make_env: Any) -> None:
    """A watermark follows each reading: 1 s has passed after the third, 2 s after the fourth."""
    readings = [("a", at, 20.0) for at in (200, 700, 1200, 2400, 3100)]
    source = ScriptedSource([[reading] for reading in readings])
    stream = make_env().from_source(source, IN_ORDER, "readings").set_parallelism(1)

    windows = (
        stream.key_by(sensor)
        .window(TumblingEventTimeWindows.of(Time.seconds(3)))
        .trigger(ContinuousEventTimeTrigger.of(Time.seconds(1)))
    )

    found = list(windows.process(Counted()).execute_and_collect())
    assert [count for start, count in found if start == 0] == [3, 4, 4]
    assert {count for start, count in found if start == 3000} == {1}


def test_sessions_end_after_five_minutes_of_inactivity(env: StreamExecutionEnvironment) -> None:
    clicks = [
        *[("ann", minute * MINUTE, "click") for minute in (0, 3, 7, 13, 14)],
        *[("bob", minute * MINUTE, "click") for minute in (14, 18)],
    ]
    stream = env.from_collection(clicks).assign_timestamps_and_watermarks(IN_ORDER)

    sessions = stream.key_by(sensor).window(EventTimeSessionWindows.with_gap(Time.minutes(5)))
    visits = sessions.apply(
        lambda user, window, clicks: [
            (user, window.start // MINUTE, window.end // MINUTE, len(list(clicks)))
        ]
    )

    assert sorted(visits.execute_and_collect()) == [
        ("ann", 0, 12, 3),
        ("ann", 13, 19, 2),
        ("bob", 14, 23, 2),
    ]


LATE = OutputTag("late-readings")


def test_late_readings_are_redirected(make_env: Any) -> None:
    """What comes within 5 s of the newest is in time; what comes later is not lost."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(5)
    ).with_timestamp_assigner(lambda reading, _: reading[1])
    script = [
        [("a", 1_000, 1.0), ("a", 9_000, 2.0)],
        [("a", 12_000, 3.0), ("a", 8_000, 4.0)],  # 9 s were the newest: in time
        [("a", 16_000, 5.0)],
        [("a", 7_000, 6.0), ("a", 15_000, 7.0)],  # 16 s - 5 s are past 10 s: late
    ]
    source = ScriptedSource(script)
    stream = make_env().from_source(source, strategy, "readings").set_parallelism(1)

    counted = (
        stream.key_by(sensor)
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(LATE)
        .process(Counted())
    )
    told = counted.union(counted.get_side_output(LATE))

    assert sorted(told.execute_and_collect(), key=repr) == [
        ("a", 7_000, 6.0),
        (0, 3),
        (10_000, 3),
    ]


def test_count_of_four_that_slides_by_two(env: StreamExecutionEnvironment) -> None:
    windows = env.from_sequence(1, 9).key_by(lambda n: "all").count_window(4, 2)

    summed = windows.reduce(lambda a, b: a + b).execute_and_collect()

    assert sorted(summed) == [1 + 2 + 3 + 4, 3 + 4 + 5 + 6, 5 + 6 + 7 + 8]
