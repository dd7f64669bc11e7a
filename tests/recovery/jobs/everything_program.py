"""All ways in which streams meet and part, in one program that is to be killed.

Three sources, a union, a connection by key, broadcast state, two side outputs, an iteration and
three sinks. What it gives does not depend on how the input is cut: it tells of a key's own records
in their order, and of broadcast state only when all input is through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    ProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
SPARED = OutputTag("spared")
ENDED = OutputTag("ended")
TURNS = 4
"""Records go round up to so many times less one."""
THE_END = (1 << 63) - 2
"""Only the last watermark comes to this."""


def shares(records: int) -> dict[str, int]:
    """How many records each source has."""
    return {"left": records // 2, "right": records * 2 // 5, "ruling": records // 10}


class Tallied(KeyedCoProcessFunction):
    """(key, number, input). At the end (key, how many of the left, how many of the right)."""

    def open(self, runtime_context: Any) -> None:
        self._seen = [
            runtime_context.get_state(ValueStateDescriptor(name, Types.LONG()))
            for name in ("left", "right")
        ]

    def process_element1(self, value: Any, ctx: Any) -> Any:
        return self._tallied(0, value, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Any:
        return self._tallied(1, value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), *((seen.value() or 0) for seen in self._seen)

    def _tallied(self, side: int, value: Any, ctx: Any) -> Any:
        self._seen[side].update((self._seen[side].value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(THE_END)
        yield *value, side


class Ruled(KeyedBroadcastProcessFunction):
    """Passes records on. At the end tells of each key how many came, and the rules' sum and number.

    The timers of the operator before fire at the same end, and what they give comes here before it.
    """

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(THE_END)
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        name, number = value
        rules = ctx.get_broadcast_state(RULES)
        rules.put(name, (rules.get(name) or 0) + number)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        rules = dict(ctx.get_broadcast_state(RULES).items())
        yield ENDED, (ctx.get_current_key(), self._count.value(), sum(rules.values()), len(rules))


class Spare(ProcessFunction):
    """Every third record goes aside."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] % 3 == 0:
            yield SPARED, value
        else:
            yield value


def rounds(records: Any) -> Any:
    """The same records, after each has gone round as often as its number says."""
    loop = records.map(lambda record: (*record, record[1] % TURNS)).iterate().uid("loop")
    turned = loop.map(lambda record: (*record[:2], record[2] - 1))
    loop.close_with(turned.filter(lambda record: record[2] > 0).uid("again"))
    return turned.filter(lambda record: record[2] <= 0).map(lambda record: record[:2])


def built(
    source: Callable[[str, int], Any], records: int, sink: Callable[[Any, str], None]
) -> None:
    """`source` makes a stream of (key, number), so many; `sink` takes results."""
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    left, right, ruling = (
        source(name, count).assign_timestamps_and_watermarks(timed).uid(f"{name}-time")
        for name, count in shares(records).items()
    )
    rules = ruling.broadcast(RULES)
    kept = left.union(right.filter(lambda record: record[1] % 2 == 0)).process(Spare()).uid("spare")
    looped = rounds(kept)
    tallied = (
        looped.key_by(lambda record: record[0])
        .connect(right.key_by(lambda record: record[0]))
        .process(Tallied())
        .uid("tallied")
    )
    ruled = tallied.key_by(lambda record: record[0]).connect(rules).process(Ruled()).uid("ruled")
    sink(ruled, "main")
    sink(kept.get_side_output(SPARED), "spared")
    sink(ruled.get_side_output(ENDED), "ended")
