"""Mistakes that show at run time: the error names the operator, the user's line, the remedy."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from penstock.common import WatermarkStrategy
from penstock.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    WindowAssigner,
)
from penstock.errors import (
    InvalidArgumentError,
    InvalidProgramError,
    UnpicklableError,
    UserFunctionError,
)

RECORDS = [("a", 1), ("a", 2), ("a", 3)]


def timed(env: StreamExecutionEnvironment, stamp: Any = lambda record, _: record[1]) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(stamp)
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)


def test_a_record_that_cannot_travel_is_of_the_operator_that_made_it(
    env: StreamExecutionEnvironment,
) -> None:
    spoiled = timed(env).map(lambda record: (record[0], threading.Lock())).name("spoils")

    with pytest.raises(UnpicklableError, match=r"operator 'spoils' .*test_users_lines.py"):
        list(spoiled.key_by(lambda record: record[0]).map(lambda _: 1).execute_and_collect())


class Timer(KeyedProcessFunction):
    def __init__(self, time: Any) -> None:
        self.time = time

    def process_element(self, value: Any, ctx: Any) -> Any:
        time = self.time(ctx)
        ctx.timer_service().register_event_time_timer(time)  # this line

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


def line_of(text: str) -> str:
    with open(__file__, encoding="utf-8") as lines:
        return f"test_users_lines.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_a_timer_of_no_time_names_the_line_that_sets_it(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env).key_by(lambda record: record[0])

    with pytest.raises(InvalidArgumentError, match=f"at .*{line_of('# this line')}.*got float"):
        list(keyed.process(Timer(lambda ctx: 1.5)).execute_and_collect())


def test_a_timer_needs_a_time_to_count_from(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_collection(RECORDS).key_by(lambda record: record[0])

    with pytest.raises(InvalidArgumentError, match="assign_timestamps_and_watermarks"):
        list(keyed.process(Timer(lambda ctx: ctx.timestamp() + 1)).execute_and_collect())


class Returns(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return 5


def test_results_are_yielded(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UserFunctionError, match="yield the results, or return a list"):
        list(timed(env).key_by(lambda r: r[0]).process(Returns()).execute_and_collect())


class Forgets(AggregateFunction):
    """Its merge loses one of the two."""

    def create_accumulator(self) -> Any:
        return (0, 0.0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, accumulator[1] + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


def sliding(env: StreamExecutionEnvironment, function: AggregateFunction) -> list[Any]:
    windows = timed(env).key_by(lambda r: r[0]).window(SlidingEventTimeWindows.of(4, 2))
    return sorted(windows.aggregate(function).execute_and_collect())


def test_a_merge_that_does_not_merge_is_noticed(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidProgramError, match=r"Forgets.merge gives .* penstock.window.slices"):
        sliding(env, Forgets())


class Named(Forgets):
    """Says whose numbers they are, which is one thing within a key."""

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[1] + 1.0

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0], acc_a[1] + acc_b[1]


def test_merging_is_checked_within_a_key(env: StreamExecutionEnvironment) -> None:
    records = [(key, 1) for key in "abcdefgh" * 2]  # several of them in each subtask
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    timed = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    windows = timed.key_by(lambda r: r[0]).window(SlidingEventTimeWindows.of(4, 2))
    assert set(windows.aggregate(Named()).execute_and_collect()) == set("abcdefgh")


def test_without_slices_there_is_no_merging(make_env: Any) -> None:
    assert sliding(make_env({"penstock.window.slices": "false"}), Forgets()) == [1, 2, 3]


class NoList(WindowAssigner[Any, TimeWindow]):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return TimeWindow(0, 5)

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_an_assigner_gives_a_collection(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidArgumentError, match=r"what NoList.* a collection of windows"):
        list(timed(env).key_by(lambda r: r[0]).window(NoList()).sum(1).execute_and_collect())


class Whole:
    """As numpy's integers are."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


def test_a_timestamp_may_be_anything_that_is_as_good_as_an_int(
    env: StreamExecutionEnvironment,
) -> None:
    stream = timed(env, lambda record, _: Whole(record[1]))

    found = stream.key_by(lambda r: r[0]).process(Timer(lambda ctx: 7)).execute_and_collect()

    assert list(found) == [7]


def test_a_job_that_nobody_waits_for_says_why_it_failed(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    timed(env).map(lambda record: 1 / 0).print()

    with caplog.at_level(logging.ERROR):
        job = env.execute_async("alone")
        with pytest.raises(UserFunctionError):
            job.get_job_execution_result().result()
        deadline = time.monotonic() + 10  # the log comes just after the result
        while "job alone failed: " not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)

    assert "job alone failed: " in caplog.text
    assert "ZeroDivisionError" in caplog.text


def half(text: str) -> float:
    return int(text) / 2


def test_the_functions_own_trace_is_above_the_error(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UserFunctionError) as caught:
        list(env.from_elements("x").map(lambda text: half(text) + 1).execute_and_collect())

    shown = str(caught.value.__cause__)
    assert "in <lambda>" in shown
    assert "in half" in shown
    assert shown.endswith("ValueError: invalid literal for int() with base 10: 'x'")
    assert "penstock/runtime" not in shown


def test_the_way_through_the_engine_is_not_shown(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1).map(lambda value: 1 / 0).print()

    with pytest.raises(UserFunctionError) as caught:
        env.execute()

    names = [entry.name for entry in caught.traceback]
    assert names[1:] == ["execute", "wait"]
