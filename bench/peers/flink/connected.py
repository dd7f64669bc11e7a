"""Programs with two inputs or timers in PyFlink's API, for PyFlink and Penstock alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream
from pyflink.datastream.functions import (
    BroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
)
from pyflink.datastream.state import MapStateDescriptor

from bench.peers.flink.programs import COUNT, READING, Prepare, timed
from bench.peers.functions import (
    NEAR_MILLIS,
    class_of,
    end_of_window,
    paired,
    sensor_of,
    threshold_of,
)

RULES = MapStateDescriptor("rules", Types.LONG(), Types.DOUBLE())


class CountUntilTimer(KeyedProcessFunction):
    """Counts a key's records of each five seconds; a timer at their end says how many."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = MapStateDescriptor("counts", Types.LONG(), Types.LONG())
        self._counts = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        end = end_of_window(value[1])
        count = self._counts.get(end)
        if count is None:
            ctx.timer_service().register_event_time_timer(end)
            count = 0
        self._counts.put(end, count + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        count = self._counts.get(timestamp)
        self._counts.remove(timestamp)
        yield ctx.get_current_key(), timestamp, count


def timers(rows: dict[str, DataStream]) -> DataStream:
    return (
        timed(rows["readings"])
        .key_by(sensor_of, key_type=Types.STRING())
        .process(CountUntilTimer(), output_type=COUNT)
    )


class ApplyRules(BroadcastProcessFunction):
    """Passes on what is above the threshold of its class."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        kind = class_of(value[0])
        limit = ctx.get_broadcast_state(RULES).get(kind)
        if value[2] >= (threshold_of(kind) if limit is None else limit):
            yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value[0], value[2])


def broadcast_rules(rows: dict[str, DataStream]) -> DataStream:
    return (
        rows["readings"]
        .map(Prepare(), output_type=READING)
        .connect(rows["rules"].broadcast(RULES))
        .process(ApplyRules(), output_type=READING)
    )


class JoinNear(KeyedCoProcessFunction):
    """An interval join by hand, which PyFlink has none of: both sides by time, and a timer that
    forgets what nothing can be paired with any more."""

    def open(self, runtime_context: RuntimeContext) -> None:
        values = Types.PICKLED_BYTE_ARRAY()
        self._lefts, self._rights = (
            runtime_context.get_map_state(MapStateDescriptor(side, Types.LONG(), values))
            for side in ("left", "right")
        )

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        at = value[1]
        _keep(self._lefts, at, value)
        ctx.timer_service().register_event_time_timer(at + NEAR_MILLIS)
        for other, rights in list(self._rights.items()):
            if at <= other <= at + NEAR_MILLIS:
                for right in rights:
                    yield paired(value, right)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        at = value[1]
        _keep(self._rights, at, value)
        ctx.timer_service().register_event_time_timer(at + NEAR_MILLIS)
        for other, lefts in list(self._lefts.items()):
            if at - NEAR_MILLIS <= other <= at:
                for left in lefts:
                    yield paired(left, value)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        self._lefts.remove(timestamp - NEAR_MILLIS)
        self._rights.remove(timestamp - NEAR_MILLIS)
        return ()


def _keep(side: Any, at: int, value: Any) -> None:
    side.put(at, [*(side.get(at) or ()), tuple(value)])


def interval_join_by_hand(rows: dict[str, DataStream]) -> DataStream:
    left, right = (
        timed(rows[side]).key_by(sensor_of, key_type=Types.STRING()) for side in ("left", "right")
    )
    return left.connect(right).process(JoinNear(), output_type=READING)
