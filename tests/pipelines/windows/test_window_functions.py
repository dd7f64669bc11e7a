"""Rows C5 and C6: what is computed in windows, and the state that functions may keep there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from drawn_runs import LATE_TAG, Show, added, also_on_spark, windowed

from penstock.common import Time
from penstock.datastream import ProcessFunction
from penstock.datastream.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))


class Added(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return added(value1, value2)


@pytest.mark.parametrize("function", [added, Added()])
def test_reduce(golden: Any, function: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        b             4
        a                 3|
        a gives                           3
        b gives                           4
        end
        a gives                           3
        """,
        lambda stream: windowed(stream, TUMBLING).reduce(function),
    )


@also_on_spark
def test_reduce_and_then_a_window_function(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        b             4
        a                 3|
        a fires      [----)               3
        b fires      [----)               4
        end
        a fires           [----)          3
        """,
        lambda stream: windowed(stream, TUMBLING).reduce(added, Show()),
    )


class Average(AggregateFunction):
    """Sum and number; the result is neither of both."""

    def create_accumulator(self) -> Any:
        return "", 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return value.key, accumulator[1] + value.number, accumulator[2] + 1

    def get_result(self, accumulator: Any) -> Any:
        key, total, number = accumulator
        return key, total / number

    def merge(self, a: Any, b: Any) -> Any:
        return a[0], a[1] + b[1], a[2] + b[2]


def test_aggregate(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a gives                           1.5
        end
        """,
        lambda stream: windowed(stream, TUMBLING).aggregate(Average()),
    )


class Large(AggregateFunction):
    """Whose accumulator may be an empty list, which is not an empty window."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        return [*accumulator, value.value] if value.number > 5 else accumulator

    def get_result(self, accumulator: Any) -> Any:
        return "a", f"{len(accumulator)} of them"

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


def test_an_accumulator_may_be_empty(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  68|
        a gives                           0 of them
        end
        a gives                           2 of them
        """,
        lambda stream: windowed(stream, TUMBLING).aggregate(Large()),
    )


class Framed(ProcessWindowFunction):
    """Gets one result of the incremental function."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        [(_, average)] = list(elements)
        yield key, context.window(), average


class OnlyLarge(AggregateFunction):
    """Has no result for what is small."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value.number)

    def get_result(self, accumulator: int) -> tuple[str, int] | None:
        return ("a", accumulator) if accumulator > 5 else None

    def merge(self, a: int, b: int) -> int:
        return a + b


@pytest.mark.parametrize("evictor", [None, CountEvictor.of(9)])
@pytest.mark.parametrize("function", [None, lambda key, window, results: results])
def test_no_result_gives_nothing(golden: Any, evictor: Any, function: Any) -> None:
    """As in Flink: nothing is emitted, and a window function is not called."""
    golden(
        """
        time         0    5    10
        a            1-2  |
        a                 3-4  |
        a gives                           7
        end
        """,
        lambda stream: windowed(stream, TUMBLING, evictor=evictor).aggregate(OnlyLarge(), function),
    )


@also_on_spark
def test_aggregate_and_then_a_process_window_function(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a fires      [----)               1.5
        a             9
        a fires      [----)               4.0
        end
        """,
        lambda stream: windowed(stream, TUMBLING, lateness=2000).aggregate(Average(), Framed()),
    )


class Applied(WindowFunction):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        values = sorted(event.number for event in inputs)
        yield key, window, f"{values[0]} to {values[-1]}"
        if len(values) > 2:
            yield key, window, f"and {len(values) - 2} between"


def test_apply_may_give_several_results(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            2143 |
        a fires      [----)               1 to 4
        a fires      [----)               and 2 between
        end
        """,
        lambda stream: windowed(stream, TUMBLING).apply(Applied()),
    )


def test_reduce_and_then_apply(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            2143 |
        a fires      [----)               10 to 10
        end
        """,
        lambda stream: windowed(stream, TUMBLING).reduce(added, Applied()),
    )


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", ("a", 7, "x")),
        ("min", ("a", 1, "x")),
        ("max", ("a", 4, "x")),
        ("min_by", ("a", 1, "y")),
        ("max_by", ("a", 4, "z")),
    ],
)
def test_rolling_methods(golden_job: Any, method: str, expected: Any) -> None:
    """Sums and bounds keep the first element's other fields; `_by` gives the element itself."""

    def build(stream: Any) -> Any:
        names = {"2": "x", "1": "y", "4": "z"}
        rows = stream.map(lambda event: (event.key, event.number, names[event.value]))
        windows = rows.key_by(lambda row: row[0]).window(TUMBLING)
        return getattr(windows, method)(1).map(lambda row: (row[0], repr(row)))

    golden_job(
        f"""
        time         0    5    10
        a            214  |
        a gives                           {expected!r}
        end
        """,
        build,
    )


# State


class Remembers(ProcessWindowFunction):
    """Counts the firings of each window, and the windows of each key that were cleared."""

    FIRINGS = ValueStateDescriptor("firings")
    CLEARED = ListStateDescriptor("cleared")

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        firings = context.window_state().get_state(self.FIRINGS)
        firings.update((firings.value() or 0) + 1)
        cleared = [str(start) for start in context.global_state().get_list_state(self.CLEARED)]
        text = " ".join(event.value for event in elements)
        gone = f", gone {' '.join(cleared)}" if cleared else ""
        yield key, context.window(), f"{text}: {firings.value()}{gone}"

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.FIRINGS).clear()
        context.global_state().get_list_state(self.CLEARED).add(context.window().start // 1000)


@also_on_spark
def test_state_of_the_window_and_of_the_key(golden: Any) -> None:
    """`clear` is called when the window goes, which is later than when it fires."""
    golden(
        """
        time         0    5    10   15
        a            1    |
        a fires      [----)               1: 1
        a             2
        a fires      [----)               1 2: 2
        b                 3    |          ; the first window goes at 5 + 3
        b fires           [----)          3: 1
        a                   4
        a fires           [----)          4: 1, gone 0
        b                           5
        end
        b fires                     [----)  5: 1, gone 5
        """,
        lambda stream: windowed(stream, TUMBLING, lateness=3000).process(Remembers()),
        leaves=True,
    )


def test_purging_keeps_the_windows_state(golden: Any) -> None:
    """Only the elements go; the window, and what is kept beside it, lives on."""
    golden(
        """
        time         0    5    10
        a            1
        a fires      [----)               1: 1
        a             2
        a fires      [----)               2: 2
        a                 |3
        a fires           [----)          3: 1, gone 0
        end
        """,
        lambda stream: windowed(
            stream, TUMBLING, trigger=PurgingTrigger.of(CountTrigger.of(1))
        ).process(Remembers()),
        leaves=True,
    )


class SidesTaken(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            yield LATE_TAG, element
        yield key, context.window(), "done"


def test_side_outputs_of_window_functions(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a fires      [----)               done
        a late       1-2
        end
        """,
        lambda stream: windowed(stream, TUMBLING).process(SidesTaken()),
    )


class Stamp(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value.key, ctx.timestamp()


def test_results_have_the_last_timestamp_of_their_window(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        a            1-2  |
        a gives                           4999
        end
        """,
        lambda stream: windowed(stream, TUMBLING).reduce(added).process(Stamp()),
    )


def test_each_window_has_its_own_copy(golden_job: Any) -> None:
    """A function that changes an element in one window does not change it in another."""

    class Spoils(ProcessWindowFunction):
        def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            found = list(elements)
            yield key, context.window(), " ".join(element[1].pop() for element in found)

    golden_job(
        """
        time    -5   0    5    10
        a             1
        end
        a fires   [-----)                 1
        a fires      [-----)              1
        """,
        lambda stream: (
            stream.map(lambda event: (event.key, [event.value]))
            .key_by(lambda record: record[0])
            .window(SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3)))
            .process(Spoils())
        ),
    )


@pytest.mark.parametrize("by", ["reduce", "trigger"])
def test_a_function_may_change_a_record_of_several_windows(golden_job: Any, by: str) -> None:
    def grow(first: Any, second: Any) -> Any:
        first[1].extend(second[1])
        return first

    def built(stream: Any) -> Any:
        windows = (
            stream.map(lambda event: (event.key, [event.value]))
            .key_by(lambda record: record[0])
            .window(SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3)))
        )
        if by == "trigger":
            windows = windows.trigger(CountTrigger.of(2))
        return windows.reduce(
            grow, lambda key, window, held: [(key, window, " ".join(map(str, next(iter(held))[1])))]
        )

    fired = ["a fires   [-----)                 1 2", "a fires      [-----)              1 2"]
    if by == "trigger":
        fired.reverse()  # at the second element, in the order of its windows
    golden_job("\n".join(["time    -5   0    5    10", "a             12", "end", *fired]), built)
