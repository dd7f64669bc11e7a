"""Triggers that follow the elements, and those that change another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream._time_triggers import Span, positive_millis
from penstock.datastream._window_contracts import DeltaFunction, Trigger, TriggerResult
from penstock.datastream._windows import Window
from penstock.datastream.functions import ReduceFunction
from penstock.datastream.state import (
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.errors import InvalidArgumentError

T = TypeVar("T")
W = TypeVar("W", bound=Window)

Delta = DeltaFunction[Any] | Callable[[Any, Any], float]


def positive_count(value: Any, what: str) -> int:
    """`value` if it is a number of elements."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError.of(what, "a whole number of elements, at least 1", value)
    return value


def delta_of(function: Any, what: str) -> Callable[[Any, Any], float]:
    """The callable for a distance given as `DeltaFunction` or as a plain function."""
    if isinstance(function, DeltaFunction):
        return function.get_delta
    if callable(function) and not isinstance(function, type):
        plain: Callable[[Any, Any], float] = function
        return plain
    raise InvalidArgumentError.of(what, "a DeltaFunction or a callable of two values", function)


def number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InvalidArgumentError.of(what, "a number", value)
    return value


def trigger_inside(trigger: Any, what: str) -> Trigger[Any, Any]:
    if not isinstance(trigger, Trigger):
        raise InvalidArgumentError.of(f"the trigger inside {what}", "a Trigger instance", trigger)
    return trigger


class _ByElements(Trigger[T, W]):
    """A trigger without timers."""

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


class NeverTrigger(_ByElements[T, W]):
    """Never fires: the default of `GlobalWindows`, which therefore need another one."""

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        pass


class Sum(ReduceFunction):
    """Counts of merged windows add up."""

    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


_COUNT = ReducingStateDescriptor("count", Sum(), Types.LONG())


class CountTrigger(_ByElements[T, W]):
    """Fires with every `window_size`-th element of a window, and keeps them all."""

    def __init__(self, window_size: int) -> None:
        self.window_size = positive_count(window_size, "the count of CountTrigger")

    @staticmethod
    def of(window_size: int) -> CountTrigger[Any, Any]:
        return CountTrigger(window_size)

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        count = cast("ReducingState[int]", ctx.get_partitioned_state(_COUNT))
        count.add(1)
        # Merged windows may have more together.
        if (count.get() or 0) < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(_COUNT).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"


class DeltaTrigger(_ByElements[T, W]):
    """Fires with an element that is further than the threshold from the one that fired last.

    The first element of a window fires nothing: it is what the next ones are compared with.
    """

    def __init__(
        self,
        threshold: float,
        delta_function: Delta,
        type_info: TypeInformation | type | None = None,
    ) -> None:
        self.threshold = number(threshold, "the threshold of DeltaTrigger")
        self._delta = delta_of(delta_function, "the delta function of DeltaTrigger")
        self._last = ValueStateDescriptor("last-element", type_info)

    @staticmethod
    def of(
        threshold: float,
        delta_function: Delta,
        type_info: TypeInformation | type | None = None,
    ) -> DeltaTrigger[Any, Any]:
        """`type_info` is the elements' type, one of which is kept in state."""
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        last = cast("ValueState[T]", ctx.get_partitioned_state(self._last))
        before = last.value()
        if before is None:
            last.update(element)
            return TriggerResult.CONTINUE
        if self._delta(before, element) > self.threshold:
            last.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self.threshold})"


class _Around(Trigger[T, W]):
    """Changes what another trigger says."""

    nested_trigger: Trigger[T, W]

    def _result(self, result: TriggerResult) -> TriggerResult:
        return result

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._result(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._result(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._result(self.nested_trigger.on_event_time(time, window, ctx))

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.nested_trigger!r})"


class PurgingTrigger(_Around[T, W]):
    """Whenever the trigger inside fires, the window's elements are dropped as well."""

    def __init__(self, nested_trigger: Trigger[T, W]) -> None:
        self.nested_trigger = trigger_inside(nested_trigger, "PurgingTrigger")

    @staticmethod
    def of(nested_trigger: Trigger[T, W]) -> PurgingTrigger[T, W]:
        return PurgingTrigger(nested_trigger)

    def _result(self, result: TriggerResult) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)


_TIMEOUT = ValueStateDescriptor("timeout", Types.LONG())


class ProcessingTimeoutTrigger(_Around[T, W]):
    """Fires with the trigger inside, or so long after the first element if that takes longer.

    As in Flink, any timer of the trigger inside fires the window too, and it cannot merge.
    """

    def __init__(
        self,
        nested_trigger: Trigger[T, W],
        timeout: Span,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> None:
        self.nested_trigger = trigger_inside(nested_trigger, "ProcessingTimeoutTrigger")
        self.interval = positive_millis(timeout, "the timeout of ProcessingTimeoutTrigger")
        self._reset = reset_timer_on_new_record
        self._clear_on_timeout = should_clear_on_timeout

    @staticmethod
    def of(
        nested_trigger: Trigger[T, W],
        timeout: Span,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger[T, W]:
        """Counted from the first element, or anew from each; a timeout clears the trigger inside.

        Not clearing it lets a `CountTrigger` go on where it was.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger, timeout, reset_timer_on_new_record, should_clear_on_timeout
        )

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        timeout = cast("ValueState[int]", ctx.get_partitioned_state(_TIMEOUT))
        pending = timeout.value()
        if pending is not None and self._reset:
            ctx.delete_processing_time_timer(pending)
            pending = None
        if pending is None:
            pending = ctx.get_current_processing_time() + self.interval
            timeout.update(pending)
            ctx.register_processing_time_timer(pending)
        return result

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._on_timer(super().on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._on_timer(super().on_event_time(time, window, ctx), window, ctx)

    def _on_timer(
        self, result: TriggerResult, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if self._clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        timeout = cast("ValueState[int]", ctx.get_partitioned_state(_TIMEOUT))
        pending = timeout.value()
        if pending is not None:
            ctx.delete_processing_time_timer(pending)
            timeout.clear()
        super().clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.interval})"
