"""A job that goes on with another parallelism has all its windows, and none of them twice."""

from __future__ import annotations

from typing import Any

from drawn_runs import AskedTrigger

from penstock.common import Time, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import ScriptedSource

KEYS = 12
LATENESS = 4000
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(3))


class AfterEach(WatermarkGenerator):
    """So that what is late does not depend on the clock."""

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(timestamp - 1000)

    def on_periodic_emit(self, output: Any) -> None:
        pass


STRATEGY = WatermarkStrategy.for_generator(AfterEach).with_timestamp_assigner(
    lambda record, _: record[1]
)


def time_of(number: int) -> int:
    """Some are late, within what is allowed; pauses end some sessions and not others."""
    late = 3000 if number % 10 == 9 else 0
    return 250 * number + 5000 * (number // 60) - late


RECORDS = [(f"k{number * 7 % KEYS}", time_of(number), number) for number in range(240)]
EPOCHS = [RECORDS[first : first + 20] for first in range(0, len(RECORDS), 20)]


class Gather(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        return [*accumulator, value[2]]

    def get_result(self, accumulator: list[int]) -> tuple[int, ...]:
        return tuple(sorted(accumulator))

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return a + b


class Told(ProcessWindowFunction):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def process(self, key: str, context: Any, elements: Any) -> Any:
        window = context.window()
        yield self._kind, key, window.start, window.end, self._values(elements)

    def _values(self, elements: Any) -> tuple[int, ...]:
        return tuple(element[2] for element in elements)


class Combined(Told):
    def _values(self, elements: Any) -> tuple[int, ...]:
        [values] = elements
        return tuple(values)


def results(env: Any, limit: int) -> Any:
    """The windows of each way of keeping them. It fails at record `limit`."""

    def check(record: Any) -> Any:
        if record[2] >= limit:
            raise RuntimeError("half-way")
        return record

    source = env.from_source(ScriptedSource(EPOCHS), STRATEGY, "records").uid("records")
    checked = source.set_parallelism(1).map(check).uid("check").set_parallelism(1)
    keyed = checked.key_by(lambda record: record[0])

    def windows(assigner: Any) -> Any:
        return keyed.window(assigner).allowed_lateness(LATENESS)

    kinds = {
        "aligned": windows(TUMBLING).aggregate(Gather(), Combined("aligned")),
        "elements": windows(SLIDING).process(Told("elements")),
        "sliced": windows(SLIDING).aggregate(Gather(), Combined("sliced")),
        "sessions": windows(SESSIONS).aggregate(Gather(), Combined("sessions")),
        "general": windows(SLIDING).trigger(AskedTrigger()).process(Told("general")),
        "merging": windows(SESSIONS)
        .trigger(AskedTrigger())
        .aggregate(Gather(), Combined("merging")),
        "counting": windows(SESSIONS)
        .trigger(CountTrigger.of(2))
        .aggregate(Gather(), Combined("counting")),
    }
    first, *others = [kind.uid(name) for name, kind in kinds.items()]
    return first.union(*others)


def test_open_windows_move(restartable_env: Any, make_env: Any, collect_until_error: Any) -> None:
    expected = sorted(results(make_env({"parallelism.default": "1"}), 1000).execute_and_collect())
    two, three, one = (restartable_env({"parallelism.default": number}) for number in "231")

    first, _ = collect_until_error(results(two, limit=90))
    second, _ = collect_until_error(results(three, limit=170))
    third = list(results(one, limit=1000).execute_and_collect())

    kinds = {result[0] for result in expected}
    assert all({result[0] for result in part} == kinds for part in (first, second, third))
    assert sorted(first + second + third) == expected
