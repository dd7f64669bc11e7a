"""Triggers that follow a clock: the watermark or the task's own."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar, cast

from penstock.common.time import Duration, Time, to_signed_millis
from penstock.common.typeinfo import Types
from penstock.datastream._window_contracts import Trigger, TriggerResult
from penstock.datastream._windows import GlobalWindow, TimeWindow
from penstock.datastream.functions import ReduceFunction
from penstock.datastream.state import ReducingState, ReducingStateDescriptor
from penstock.errors import InvalidArgumentError

Span = Time | Duration | dt.timedelta | int

T = TypeVar("T")


def positive_millis(value: Span, what: str) -> int:
    """`value` in milliseconds, at least one."""
    millis = to_signed_millis(value, what)
    if millis <= 0:
        raise InvalidArgumentError.of(what, "at least one millisecond", value)
    return millis


class EventTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the watermark passes the window's end, then at once for each late element."""

    @staticmethod
    def create() -> EventTimeTrigger[Any]:
        return EventTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        # Behind the watermark no timer is needed: the element that merged the windows fires.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the task's clock passes the window's end."""

    @staticmethod
    def create() -> ProcessingTimeTrigger[Any]:
        return ProcessingTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class Earlier(ReduceFunction):
    """Of two times the earlier one: where windows merge, the next firing of both."""

    def reduce(self, value1: int, value2: int) -> int:
        return min(value1, value2)


_FIRE_TIME = ReducingStateDescriptor("fire-time", Earlier(), Types.LONG())


def _fire_time(ctx: Trigger.TriggerContext) -> ReducingState[int]:
    """When the window is next to be fired, beside its end."""
    return cast("ReducingState[int]", ctx.get_partitioned_state(_FIRE_TIME))


class ContinuousEventTimeTrigger(Trigger[T, TimeWindow]):
    """Fires whenever the watermark passes a multiple of the interval, and at the window's end."""

    def __init__(self, interval: Span) -> None:
        self.interval = positive_millis(interval, "the interval of ContinuousEventTimeTrigger")

    @staticmethod
    def of(interval: Span) -> ContinuousEventTimeTrigger[Any]:
        return ContinuousEventTimeTrigger(interval)

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            before = timestamp - timestamp % self.interval
            self.register_next_fire_timestamp(before, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        """Fire next one interval after `time`, or at the window's end."""
        following = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(following)
        ctx.register_event_time_timer(following)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        following = _fire_time(ctx).get()
        if following is not None:
            ctx.register_event_time_timer(following)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        fire_time = _fire_time(ctx)
        following = fire_time.get()
        if following is not None:
            ctx.delete_event_time_timer(following)
            fire_time.clear()

    def __repr__(self) -> str:
        return f"ContinuousEventTimeTrigger({self.interval})"


class ContinuousProcessingTimeTrigger(Trigger[T, TimeWindow]):
    """Fires whenever the task's clock passes a multiple of the interval.

    It does not heed the watermark: an event-time window that ends between two firings gives no
    last result. `EarlyFiringTrigger` does.
    """

    def __init__(self, interval: Span) -> None:
        self.interval = positive_millis(interval, "the interval of ContinuousProcessingTimeTrigger")

    @staticmethod
    def of(interval: Span) -> ContinuousProcessingTimeTrigger[Any]:
        return ContinuousProcessingTimeTrigger(interval)

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            before = self._last_multiple(ctx.get_current_processing_time())
            self.register_next_fire_timestamp(before, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        # An epoch may be longer than the interval: what was missed would give the same again. The
        # current millisecond is not over, and a timer for it not missed.
        before = max(time, self._last_multiple(ctx.get_current_processing_time() - 1))
        self.register_next_fire_timestamp(before, window, ctx, fire_time)
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def _last_multiple(self, time: int) -> int:
        return time - time % self.interval

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        """Fire next one interval after `time`, or at the window's end."""
        following = time + self.interval
        # The end of an event-time window may be long past on this clock.
        if time < window.max_timestamp() < following:
            following = window.max_timestamp()
        fire_timestamp_state.add(following)
        ctx.register_processing_time_timer(following)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        following = _fire_time(ctx).get()
        if following is not None:
            ctx.register_processing_time_timer(following)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        fire_time = _fire_time(ctx)
        following = fire_time.get()
        if following is not None:
            ctx.delete_processing_time_timer(following)
            fire_time.clear()

    def __repr__(self) -> str:
        return f"ContinuousProcessingTimeTrigger({self.interval})"


class EarlyFiringTrigger(EventTimeTrigger[T]):
    """Early results by the task's clock, and the exact one when the watermark passes the end.

    An early result comes one interval after the first element that no result has told of yet, so
    a window without news is silent. Behind the end it is an `EventTimeTrigger`.
    """

    def __init__(self, interval: Span) -> None:
        self.interval = positive_millis(interval, "the interval of EarlyFiringTrigger")

    @staticmethod
    def of(interval: Span) -> EarlyFiringTrigger[Any]:
        return EarlyFiringTrigger(interval)

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        result = super().on_element(element, timestamp, window, ctx)
        fire_time = _fire_time(ctx)
        if not result.is_fire() and fire_time.get() is None:
            early = ctx.get_current_processing_time() + self.interval
            fire_time.add(early)
            ctx.register_processing_time_timer(early)
        return result

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        result = super().on_event_time(time, window, ctx)
        if result.is_fire():
            self._forget_early(ctx)
        return result

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        super().on_merge(window, ctx)
        ctx.merge_partitioned_state(_FIRE_TIME)
        early = _fire_time(ctx).get()
        if early is not None:
            ctx.register_processing_time_timer(early)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        super().clear(window, ctx)
        self._forget_early(ctx)

    def _forget_early(self, ctx: Trigger.TriggerContext) -> None:
        fire_time = _fire_time(ctx)
        early = fire_time.get()
        if early is not None:
            ctx.delete_processing_time_timer(early)
            fire_time.clear()

    def __repr__(self) -> str:
        return f"EarlyFiringTrigger({self.interval})"


class EndOfStreamTrigger(Trigger[T, GlobalWindow]):
    """Fires once, when the input has ended."""

    def on_element(
        self, element: T, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        # Nothing can come after it, so there is nothing to keep either.
        return (
            TriggerResult.FIRE_AND_PURGE
            if time == window.max_timestamp()
            else TriggerResult.CONTINUE
        )

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
