"""Process functions: records one by one with a context, keyed or not; timers if keyed.

What is here serves functions of one input and of two alike: an input is a method of the function
and the context that it is called with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import (
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.datastream.timerservice import TimerService
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import (
    Emit,
    FunctionOperator,
    Input,
    OpenOperator,
    OperatorHost,
    OperatorTime,
    opened,
)
from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP, WATERMARK, Control
from penstock.state.backend import KeyScope
from penstock.state.keyed_state import KeyedState
from penstock.state.timers import TimerTable


class TaskTimerService(TimerService):
    """The clocks of an operator without keys, which has no timers."""

    def __init__(self, clock: Callable[[], int], time: OperatorTime) -> None:
        self._clock = clock
        self._time = time

    def current_processing_time(self) -> int:
        return self._clock()

    def current_watermark(self) -> int:
        return self._time.watermark

    def _refuse(self) -> None:
        raise UnsupportedFeatureError("Register timers is only supported on a keyed stream.")

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._refuse()


class UnheardTimers(TaskTimerService):
    """For keyed functions without `on_timer`: nobody would notice a timer."""

    def _refuse(self) -> None:
        pass


class KeyedTimerService(TaskTimerService):
    """Clocks, and timers of the current key."""

    def __init__(
        self, clock: Callable[[], int], time: OperatorTime, keyed_state: KeyedState
    ) -> None:
        super().__init__(clock, time)
        self.event_timers: TimerTable = keyed_state.timers("_event_timers")
        self.processing_timers: TimerTable = keyed_state.timers("_processing_timers")

    def register_processing_time_timer(self, timestamp: int) -> None:
        self.processing_timers.register(_checked(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        self.event_timers.register(_checked(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing_timers.delete(_checked(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event_timers.delete(_checked(timestamp))


def _checked(timestamp: Any) -> int:
    if not isinstance(timestamp, int):
        raise InvalidArgumentError.of("the time of a timer", "an int, in milliseconds", timestamp)
    if timestamp < _BEFORE_ALL_TIME:
        # What comes of counting on from the timestamp of a record that has none.
        raise InvalidArgumentError(
            f"the time of a timer is {timestamp}, as if there was no timestamp or watermark to "
            "count from; call assign_timestamps_and_watermarks(...) before key_by"
        )
    return timestamp


_BEFORE_ALL_TIME = -(1 << 62)


class ElementContext(
    KeyedProcessFunction.OnTimerContext,
    ProcessFunction.Context,
    KeyedCoProcessFunction.OnTimerContext,
    CoProcessFunction.Context,
):
    """The record or timer at hand. One object serves all of a task."""

    def __init__(
        self, scope: KeyScope, timers: TimerService, emit_side: Callable[[OutputTag, Any], None]
    ) -> None:
        self._scope = scope
        self._timers = timers
        self._emit_side = emit_side
        self.domain = TimeDomain.EVENT_TIME
        self.fired: int | None = None

    def get_current_key(self) -> Any:
        return self._scope.key

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int:
        timestamp = self._scope.timestamp if self.fired is None else self.fired
        return MIN_TIMESTAMP if timestamp is None else timestamp

    def time_domain(self) -> TimeDomain:
        return self.domain

    def output(self, tag: OutputTag, value: Any) -> None:
        send_aside(self._emit_side, tag, value)


def send_aside(emit_side: Callable[[OutputTag, Any], None], tag: Any, value: Any) -> None:
    """What `ctx.output` does."""
    if tag.__class__ is not OutputTag:
        raise InvalidArgumentError.of("the tag of ctx.output", "an OutputTag", tag)
    emit_side(tag, value)


class MayHaveTimers:
    """The description of a function that gets timers if it has an `on_timer`."""

    function: Any

    @property
    def needs_clock(self) -> bool:
        """Whether there may be timers of processing time."""
        return _has_timers(self.function)


@dataclass(frozen=True)
class Process(MayHaveTimers):
    """A ProcessFunction or KeyedProcessFunction."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        timers = timer_service(self.function, host)
        call = opened(self.function, host, "process_element")
        context = ElementContext(host.scope, timers, host.emit_side)
        taken = element_input(call, context, host)
        return ProcessOperator(self.function, (taken,), firing(self.function, context, host))


def timer_service(function: Any, host: OperatorHost) -> TaskTimerService:
    """The clocks for a function, and timers if it can have some."""
    if host.keyed_state is None:
        return TaskTimerService(host.clock, host.time)
    if not _has_timers(function):
        return UnheardTimers(host.clock, host.time)
    return KeyedTimerService(host.clock, host.time, host.keyed_state)


def _has_timers(function: Any) -> bool:
    return getattr(type(function), "on_timer", None) not in _WITHOUT_TIMERS


_WITHOUT_TIMERS = (
    None,
    KeyedProcessFunction.on_timer,
    KeyedCoProcessFunction.on_timer,
    KeyedBroadcastProcessFunction.on_timer,
)


def element_input(call: Callable[..., Any], context: Any, host: OperatorHost) -> Input:
    """An input whose records go to a method of a process function, with a context."""
    step = Step(
        "produced = $call(value, $context)",
        "if produced is None: continue",
        "for value in produced:",
        " if value.__class__ is tuple and value and value[0].__class__ is $tag:",
        "  $emit_side(value[0], value[1])",
        "  continue",
        many=True,
        call=call,
        context=context,
        tag=OutputTag,
        emit_side=host.emit_side,
        emit=host.emit,
    )
    return _emitting(call, context, host), before(host.emit_run, step)


def _emitting(call: Callable[..., Any], context: Any, host: OperatorHost) -> Emit:
    """Calls with one value, or one timer, and emits what comes of it."""
    emit, emit_side = host.emit, host.emit_side

    def process(value: Any) -> None:
        produced = call(value, context)
        if produced is not None:
            for result in produced:
                if result.__class__ is tuple and result and result[0].__class__ is OutputTag:
                    emit_side(result[0], result[1])
                else:
                    emit(result)

    return process


class Firing:
    """Calls `on_timer`."""

    def __init__(
        self,
        function: Any,
        context: ElementContext,
        timers: KeyedTimerService,
        host: OperatorHost,
    ) -> None:
        self._context = context
        self._timers = timers
        self._host = host
        self.call = _emitting(function.on_timer, context, host)

    def event_time(self, until: int) -> None:
        scope = self._host.scope
        for time, scope.key, _ in self._timers.event_timers.due(until):
            scope.timestamp = time  # what is emitted has the timer's time
            self._fire(time, TimeDomain.EVENT_TIME)

    def next_event_time(self, until: int) -> int | None:
        return self._timers.event_timers.first(until)

    def processing_time(self) -> None:
        self._fire_processing(self._timers.processing_timers.due(self._host.clock()))

    def end_of_time(self) -> None:
        """In batch mode the clock stands still until the input has ended, then all is due."""
        if self._host.batch:
            self._fire_processing(self._timers.processing_timers.rest())

    def _fire_processing(self, due: Iterator[tuple[int, Any, bytes]]) -> None:
        scope = self._host.scope
        for time, scope.key, _ in due:
            scope.timestamp = None
            self._fire(time, TimeDomain.PROCESSING_TIME)

    def _fire(self, time: int, domain: TimeDomain) -> None:
        context = self._context
        context.domain, context.fired = domain, time
        try:
            self.call(time)
        finally:
            context.fired = None


def firing(function: Any, context: ElementContext, host: OperatorHost) -> Firing | None:
    timers = context.timer_service()
    if isinstance(timers, KeyedTimerService):
        return Firing(function, context, timers, host)
    return None


class ProcessOperator(FunctionOperator):
    """A process function of one or several inputs; fires its timers as the clocks move."""

    def __init__(self, function: Any, inputs: tuple[Input, ...], firing: Firing | None) -> None:
        super().__init__(function, *inputs[0], inputs)
        self._firing = firing

    def begin_epoch(self) -> None:
        if self._firing is not None:
            self._firing.processing_time()

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self.time.watermark = time
            if self._firing is not None:
                self._firing.event_time(time)
                if time == MAX_TIMESTAMP:
                    self._firing.end_of_time()
        self.pass_on(control)

    def next_timer(self, until: int) -> int | None:
        return None if self._firing is None else self._firing.next_event_time(until)
