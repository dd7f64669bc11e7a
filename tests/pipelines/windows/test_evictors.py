"""Row C8: evictors, before and after the function, and together with incremental functions."""

from __future__ import annotations

from typing import Any

import pytest
from drawn_runs import ShowSorted, added, also_on_spark, shown, windowed

from penstock.common import Time
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    PurgingTrigger,
    TimeEvictor,
    TumblingEventTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
EVERYTHING = GlobalWindows.create()


@also_on_spark
def test_count_evictor_keeps_the_last_ones(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            123  |
        a fires      [----)               2 3
        a             4                   ; 1 has gone for good
        a fires      [----)               3 4
        end
        """,
        shown(TUMBLING, evictor=CountEvictor.of(2), lateness=3000),
    )


def test_count_evictor_by_order_of_arrival(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a               1
        a            23   |
        a fires      [----)               2 3
        end
        """,
        shown(TUMBLING, evictor=CountEvictor.of(2)),
    )


def test_count_evictor_after_the_function(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            123  |
        a fires      [----)               1 2 3
        a             4
        a fires      [----)               2 3 4
        end
        """,
        shown(TUMBLING, evictor=CountEvictor.of(2, True), lateness=3000),
    )


def test_fewer_elements_than_the_count_are_kept(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    |
        a fires      [----)               1
        end
        """,
        shown(TUMBLING, evictor=CountEvictor.of(2)),
    )


def test_time_evictor_looks_back_from_the_newest(golden: Any) -> None:
    """Newer than 4 - 2: the element at 2 is just too old."""
    golden(
        """
        time         0    5    10
        a            12345|
        a fires      [----)               4 5
        end
        """,
        shown(TUMBLING, evictor=TimeEvictor.of(Time.seconds(2))),
    )


def test_time_evictor_whatever_the_order(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a                1
        a            2
        a               3
        a                 |
        a fires      [----)               1 3
        end
        """,
        shown(TUMBLING, evictor=TimeEvictor.of(Time.seconds(2))),
    )


def test_time_evictor_after_the_function(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1---2|
        a fires      [----)               1 2
        a             3
        a fires      [----)               2 3
        a             4
        a fires      [----)               2 4
        end
        """,
        shown(TUMBLING, evictor=TimeEvictor.of(Time.seconds(2), True), lateness=3000),
    )


def test_delta_evictor_compares_with_the_last_one(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1845 |               ; less than 2 from 5
        a fires      [----)               4 5
        end
        """,
        shown(TUMBLING, evictor=DeltaEvictor.of(2, lambda a, b: abs(a.number - b.number))),
    )


def test_delta_evictor_after_the_function(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1845 |
        a fires      [----)               1 8 4 5
        a             6
        a fires      [----)               4 5 6
        end
        """,
        shown(
            TUMBLING,
            evictor=DeltaEvictor.of(2, lambda a, b: abs(a.number - b.number), True),
            lateness=3000,
        ),
    )


class Odd(Evictor):
    """Takes odd ones out before, and 4 after; one by changing the list, one by returning it."""

    def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> Any:
        assert size == len(elements)
        assert ctx.get_current_watermark() >= window.max_timestamp()
        elements[:] = [e for e in elements if e.value.number % 2 == 0]

    def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> Any:
        assert size == len(elements)
        return [e for e in elements if e.value.value != "4"]


@also_on_spark
def test_an_evictor_of_ones_own(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1234 |
        a fires      [----)               2 4
        a             6
        a fires      [----)               2 6
        end
        """,
        shown(TUMBLING, evictor=Odd(), lateness=3000),
    )


def test_nothing_is_left(golden: Any) -> None:
    """The function is called all the same: the window was not empty when it fired."""
    golden(
        """
        time         0    5    10
        a            1-3  |
        a fires      [----)
        end
        """,
        shown(TUMBLING, evictor=Odd()),
    )


def test_with_a_purging_trigger(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            123
        a fires  *                        2 3
        a               456
        a fires  *                        5 6
        end
        """,
        shown(
            EVERYTHING,
            evictor=CountEvictor.of(2),
            trigger=PurgingTrigger.of(CountTrigger.of(3)),
        ),
    )


def test_merged_sessions(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a               3    |
        a fires      [-------)            2 3
        end
        """,
        shown(
            EventTimeSessionWindows.with_gap(Time.seconds(3)),
            ShowSorted(),
            evictor=TimeEvictor.of(Time.seconds(3)),
        ),
    )


class Joined(AggregateFunction):
    def create_accumulator(self) -> Any:
        return ()

    def add(self, value: Any, accumulator: Any) -> Any:
        return (*accumulator, value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0].key, "+".join(event.value for event in accumulator)

    def merge(self, a: Any, b: Any) -> Any:
        raise AssertionError("elements are kept, so there is nothing to merge")


@pytest.mark.parametrize("how", ["reduce", "aggregate"])
def test_what_is_incremental_otherwise_is_computed_when_it_fires(golden: Any, how: str) -> None:
    """Elements are kept, those that are evicted take no part."""
    results = {"reduce": ("5", "7"), "aggregate": ("2+3", "3+4")}[how]
    golden(
        f"""
        time         0    5    10
        a            123  |
        a gives                           {results[0]}
        a             4
        a gives                           {results[1]}
        end
        """,
        lambda stream: _combined(
            windowed(stream, TUMBLING, evictor=CountEvictor.of(2), lateness=3000), how
        ),
    )


def _combined(windows: Any, how: str) -> Any:
    return windows.reduce(added) if how == "reduce" else windows.aggregate(Joined())
