"""Row C2: sessions, with fixed and dynamic gaps, and what happens when they grow together."""

from __future__ import annotations

from typing import Any

from drawn_runs import ShowSorted, added, also_on_spark, shown, windowed
from drawn_time import Event

from penstock.common import Time
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)

SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(3))


@also_on_spark
def test_a_gap_ends_a_session(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a            1-2---3
        b             4                   ; keys have sessions of their own
        a                   |
        a fires      [----)               1 2
        b fires       [--)                4
        end
        a fires            [--)           3
        """,
        shown(SESSIONS),
    )


def test_sessions_that_touch_are_one(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1--2
        end
        a fires      [-----)              1 2
        """,
        shown(SESSIONS),
    )


@also_on_spark
def test_an_element_between_two_sessions_makes_them_one(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        a                    |
        a fires      [-------)            1 2 3
        end
        """,
        shown(SESSIONS, ShowSorted()),
    )


def test_several_sessions_become_one(golden: Any) -> None:
    """Elements before, after and within: the window grows to both sides."""
    golden(
        """
        time         0    5    10   15
        a                1    2
        a             3
        a                   4
        a                    |
        end
        a fires       [----------)        1 2 3 4
        """,
        shown(SESSIONS, ShowSorted()),
    )


class Sum(AggregateFunction):
    """Tells merged accumulators from added ones: each merge leaves an asterisk."""

    def create_accumulator(self) -> Any:
        return "", 0, ""

    def add(self, value: Event, accumulator: Any) -> Any:
        return value.key, accumulator[1] + value.number, accumulator[2]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0], f"{accumulator[1]}{accumulator[2]}"

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] or b[0], a[1] + b[1], a[2] + b[2] + "*"


def test_merged_sessions_lose_nothing_when_reduced(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        end
        a gives                           6
        """,
        lambda stream: windowed(stream, SESSIONS).reduce(added),
    )


def test_merged_sessions_lose_nothing_when_aggregated(golden: Any) -> None:
    """Two accumulators are merged once; adding to a session that only grows merges none."""
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        a                  4
        end
        a gives                           10*
        """,
        lambda stream: windowed(stream, SESSIONS).aggregate(Sum()),
    )


class GapByValue(SessionWindowTimeGapExtractor):
    def extract(self, element: Event) -> int:
        return element.number * 1000


def test_each_element_has_its_own_gap(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a            2   6   1   1
        a                        |
        a fires      [-)                  2
        a fires          [-----)          6 1
        end
        a fires                  [)       1
        """,
        shown(EventTimeSessionWindows.with_dynamic_gap(GapByValue())),
    )


def test_a_smaller_gap_does_not_shrink_a_session(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a            9  1
        a                    |
        end
        a fires      [--------)           1 9
        """,
        shown(EventTimeSessionWindows.with_dynamic_gap(GapByValue()), ShowSorted()),
    )


def test_sessions_in_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10
        a            1-2
        b              3
        a                 |
        a fires      [----)               1 2
        b fires        [--)               3
        a                   4--|
        a fires             [--)          4
        end
        """,
        shown(ProcessingTimeSessionWindows.with_gap(Time.seconds(3))),
    )


def test_dynamic_sessions_in_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10
        a            2  1
        a fires      [-)                  2
        a                |
        a fires         [)                1
        end
        """,
        shown(ProcessingTimeSessionWindows.with_dynamic_gap(GapByValue())),
    )


def test_the_count_of_a_trigger_is_merged_too(golden: Any) -> None:
    """Two of each make four: the merge itself fires nothing, the next element does."""
    golden(
        """
        time         0    5    10
        a            11   22
        a               3
        a fires      [--------)           1 1 2 2 3
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=CountTrigger.of(5)),
    )
