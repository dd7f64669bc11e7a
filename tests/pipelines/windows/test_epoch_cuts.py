"""However the input is cut into epochs, windows give the same: 1, 7 and 100 of them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import ScriptedSource

BOUND = 4000
# Out of order by no more than the bound; three keys, gaps that end some sessions and not others.
RECORDS = [
    (f"k{n % 3}", 700 * n + (n * 7919) % BOUND + (n // 25) * 6000, n % 11) for n in range(100)
]
SIZES = {"tumbling": (5000, 5000), "sliding": (6000, 2000)}
GAP = 3000
ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(5000)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(6000), Time.milliseconds(2000)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(GAP)),
}


class Shown(ProcessWindowFunction):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def process(self, key: str, context: Any, elements: Any) -> Any:
        window = context.window()
        [total] = elements
        yield self._kind, key, window.start, window.end, total


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value[2])

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


def expected(kind: str) -> list[tuple[str, int, int, int]]:
    """Without any notion of epochs or watermarks: nothing is late."""
    spans = sessions() if kind == "session" else aligned(*SIZES[kind])
    return [
        (key, start, end, sum(v for k, t, v in RECORDS if k == key and start <= t < end))
        for key, start, end in spans
    ]


def aligned(size: int, slide: int) -> set[tuple[str, int, int]]:
    return {
        (key, start, start + size)
        for key, time, _ in RECORDS
        for start in range(time - time % slide, time - size, -slide)
    }


def sessions() -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for key, time, _ in sorted(RECORDS):
        if found and found[-1][0] == key and time <= found[-1][2]:
            found[-1] = (key, found[-1][1], time + GAP)
        else:
            found.append((key, time, time + GAP))
    return found


# The last one is for Spark, where test_event_time_order has a hundred epochs.
@pytest.mark.parametrize("epochs", [1, 100, 7])
def test_any_number_of_epochs_gives_the_same(make_env: Any, epochs: int) -> None:
    script = [RECORDS[n * 100 // epochs : (n + 1) * 100 // epochs] for n in range(epochs)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(BOUND)
    ).with_timestamp_assigner(lambda record, _: record[1])
    source = make_env().from_source(ScriptedSource(script), strategy, "readings")
    keyed = source.set_parallelism(1).key_by(lambda record: record[0])
    first, *others = [
        keyed.window(assigner).aggregate(Sum(), Shown(kind)) for kind, assigner in ASSIGNERS.items()
    ]

    found = sorted(first.union(*others).execute_and_collect())

    assert found == sorted((kind, *window) for kind in ASSIGNERS for window in expected(kind))
