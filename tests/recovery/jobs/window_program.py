"""Windows of every kind over the numbered records, for a job that is to be killed.

What they give does not depend on how the input is cut: nothing is late, and what fires by count
does so by the order of a key's own records.
"""

from __future__ import annotations

from typing import Any

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import AggregateFunction, ProcessWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

# Splits are read one after the other within an epoch: later ones are behind by that much.
BOUND = Duration.of_seconds(30)
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(25))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(30), Time.seconds(10))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(5))


def event_time(record: Any, _: int) -> int:
    """A second each, a little out of order, with a pause after every seventeenth."""
    number: int = record[1]
    return 1000 * (number + 20 * (number // 17)) + number * 7919 % 1500


class Asked(EventTimeTrigger):
    """Of another class than the default, so that it is asked for each element."""


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value[1])

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class Told(ProcessWindowFunction):
    """(kind, key, start, end, how often it has fired, values). It keeps state of each window."""

    FIRED = ValueStateDescriptor("fired")

    def __init__(self, kind: str, state: bool = True) -> None:
        self._kind = kind
        self._state = state

    def process(self, key: str, context: Any, elements: Any) -> Any:
        fired = 0
        if self._state:
            times = context.window_state().get_state(self.FIRED)
            fired = (times.value() or 0) + 1
            times.update(fired)
        values = [element if isinstance(element, int) else element[1] for element in elements]
        window = context.window()
        yield [self._kind, key, window.start, window.end, fired, sorted(values)]

    def clear(self, context: Any) -> None:
        if self._state:
            context.window_state().get_state(self.FIRED).clear()


def windowed(records: Any) -> Any:
    """All windows' results in one stream."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(BOUND)
    timed = records.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(event_time))
    keyed = timed.uid("time").key_by(lambda record: record[0])
    tumbling, sliding, sessions = (keyed.window(a) for a in (TUMBLING, SLIDING, SESSIONS))
    kinds = [
        tumbling.aggregate(Sum(), Told("tumbling")).uid("tumbling"),
        sliding.reduce(_added, Told("sliding")).uid("sliding"),
        sessions.process(Told("session", state=False)).uid("session"),
        keyed.window(SESSIONS)
        .trigger(Asked())
        .allowed_lateness(9000)
        .aggregate(Sum(), Told("merged", state=False))
        .uid("merged"),
        keyed.window(TUMBLING)
        .trigger(PurgingTrigger.of(CountTrigger.of(3)))
        .process(Told("counted"))
        .uid("counted"),
        keyed.window(SLIDING).evictor(CountEvictor.of(4)).process(Told("evicted")).uid("evicted"),
    ]
    return kinds[0].union(*kinds[1:])


def _added(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]
