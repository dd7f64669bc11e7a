"""Row D4: window join and co-group, with triggers and evictors.

In these drawings the rows are streams, "l" and "r", and the key of an element is its value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drawn_runs import also_on_spark
from drawn_time import Event

from penstock.common import Time
from penstock.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))


def by_value(event: Event) -> str:
    return event.value


def told(event: Event) -> str:
    return f"{event.value}@{event.at // 1000}"


class Pairs(JoinFunction):
    """Results are of no key: a drawing shows the value instead."""

    def join(self, first: Event, second: Event) -> Any:
        return first.value, f"{told(first)} {told(second)}"


def sides(stream: Any) -> tuple[Any, Any]:
    return (
        stream.filter(lambda event: event.key == "l"),
        stream.filter(lambda event: event.key == "r"),
    )


def joined(stream: Any, assigner: Any) -> Any:
    left, right = sides(stream)
    return left.join(right).where(by_value).equal_to(by_value).window(assigner)


def grouped(stream: Any, assigner: Any) -> Any:
    left, right = sides(stream)
    return left.co_group(right).where(by_value).equal_to(by_value).window(assigner)


@also_on_spark
def test_every_pair_of_a_window(golden_job: Any) -> None:
    """Inner: 3 has no partner, and the last 1 is in another window than the others."""
    golden_job(
        """
        time         0    5    10
        l            1213
        r              12  1|
        1 gives                           1@0 1@2
        1 gives                           1@2 1@2
        2 gives                           2@1 2@3
        end
        """,
        lambda stream: joined(stream, TUMBLING).apply(Pairs()),
    )


def test_a_plain_function_joins_too(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        l            1
        r              1
        end
        1 gives                           1@0 1@2
        """,
        lambda stream: joined(stream, TUMBLING).apply(Pairs().join),
    )


class Several(FlatJoinFunction):
    def join(self, first: Event, second: Event) -> Iterable[Any]:
        if first.at < second.at:
            yield first.value, told(first)
            yield first.value, told(second)


def test_any_number_of_results_for_a_pair(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        l            1 2
        r             21
        end
        1 gives                           1@0
        1 gives                           1@2
        """,
        lambda stream: joined(stream, TUMBLING).apply(Several()),
    )


def test_sliding_windows_give_a_pair_more_than_once(golden_job: Any) -> None:
    golden_job(
        """
        time    -5   0    5    10
        l            1
        r             1
        end
        1 gives                           1@0 1@1
        1 gives                           1@0 1@1
        """,
        lambda stream: joined(
            stream, SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3))
        ).apply(Pairs()),
    )


def test_sessions_of_both_streams_together(golden_job: Any) -> None:
    """The pair is six apart; what lies between them on either side holds the session together."""
    golden_job(
        """
        time         0    5    10
        l            1
        r              1
        l                1
        end
        1 gives                           1@0 1@2
        1 gives                           1@4 1@2
        """,
        lambda stream: joined(stream, EventTimeSessionWindows.with_gap(Time.seconds(3))).apply(
            Pairs()
        ),
    )


class Outer(CoGroupFunction):
    """What an outer join needs: it is called for windows that only one stream is in, too."""

    def co_group(self, first: Iterable[Event], second: Iterable[Event]) -> Iterable[Any]:
        first, second = list(first), list(second)
        left, right = (" ".join(told(event) for event in side) for side in (first, second))
        yield (first + second)[0].value, f"{left or 'none'} with {right or 'none'}"


@also_on_spark
def test_co_group(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        l            1213
        r              12  4|
        1 gives                           1@0 1@2 with 1@2
        2 gives                           2@1 with 2@3
        3 gives                           3@3 with none
        end
        4 gives                           none with 4@6
        """,
        lambda stream: grouped(stream, TUMBLING).apply(Outer()),
    )


def test_a_trigger_counts_the_elements_of_both(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        l            1
        r             1
        1 gives                           1@0 with 1@1
        end
        """,
        lambda stream: (
            grouped(stream, GlobalWindows.create()).trigger(CountTrigger.of(2)).apply(Outer())
        ),
    )


def test_an_evictor_sees_the_elements_of_both(golden_job: Any) -> None:
    """Of two on either side the last two are left, whichever side they are of."""
    golden_job(
        """
        time         0    5    10
        l            1
        l             1
        r              1
        end
        1 gives                           1@1 with 1@2
        """,
        lambda stream: grouped(stream, TUMBLING).evictor(CountEvictor.of(2)).apply(Outer()),
    )


def test_late_elements_join_again(golden_job: Any) -> None:
    golden_job(
        """
        time         0    5    10
        l            1    |
        r             1
        1 gives                           1@0 1@1
        end
        """,
        lambda stream: joined(stream, TUMBLING).allowed_lateness(3000).apply(Pairs()),
    )
