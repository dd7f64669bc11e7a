"""Process functions: records one by one with a context, keyed or not; timers if keyed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.datastream.timerservice import TimerService
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.operators.base import (
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    OperatorTime,
    opened,
    passing,
)
from penstock.runtime.watermarks import MIN_TIMESTAMP, WATERMARK, Control
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
    return timestamp


class ElementContext(KeyedProcessFunction.OnTimerContext, ProcessFunction.Context):
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
        if tag.__class__ is not OutputTag:
            raise InvalidArgumentError.of("the tag of ctx.output", "an OutputTag", tag)
        self._emit_side(tag, value)


@dataclass(frozen=True)
class Process:
    """A ProcessFunction or KeyedProcessFunction."""

    function: Any

    @property
    def needs_clock(self) -> bool:
        """Whether timers of processing time may be set."""
        return _has_timers(self.function)

    def open(self, host: OperatorHost) -> OpenOperator:
        timers: TaskTimerService
        if host.keyed_state is None:
            timers = TaskTimerService(host.clock, host.time)
        elif not _has_timers(self.function):
            timers = UnheardTimers(host.clock, host.time)
        else:
            timers = KeyedTimerService(host.clock, host.time, host.keyed_state)
        call = opened(self.function, host, "process_element")
        context = ElementContext(host.scope, timers, host.emit_side)
        return processing(self.function, call, context, host)


def processing(
    function: Any, call: Callable[..., Any], context: ElementContext, host: OperatorHost
) -> OpenOperator:
    """The operator for an opened process function."""
    emit, emit_side = host.emit, host.emit_side

    def process(value: Any) -> None:
        for result in results((value,)):
            emit(result)

    def results(values: Iterable[Any], emit: Any = emit) -> Iterator[Any]:
        for value in values:
            produced = call(value, context)
            if produced is not None:
                for result in produced:
                    if result.__class__ is tuple and result and result[0].__class__ is OutputTag:
                        emit_side(result[0], result[1])
                    else:
                        yield result

    run = passing(results, host.emit_run)
    timers = context.timer_service()
    if isinstance(timers, KeyedTimerService):
        return _WithTimers(function, process, run, _Firing(function, context, timers, host))
    return FunctionOperator(function, process, run)


def _has_timers(function: Any) -> bool:
    on_timer = getattr(type(function), "on_timer", KeyedProcessFunction.on_timer)
    return on_timer is not KeyedProcessFunction.on_timer


class _Firing:
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
        call, emit, emit_side = function.on_timer, host.emit, host.emit_side

        def fire(time: int) -> None:
            produced = call(time, context)
            if produced is not None:
                for result in produced:
                    if result.__class__ is tuple and result and result[0].__class__ is OutputTag:
                        emit_side(result[0], result[1])
                    else:
                        emit(result)

        self.call = fire

    def event_time(self, until: int) -> None:
        scope = self._host.scope
        for time, scope.key, _ in self._timers.event_timers.due(until):
            scope.timestamp = time  # what is emitted has the timer's time
            self._fire(time, TimeDomain.EVENT_TIME)

    def processing_time(self, until: int) -> None:
        scope = self._host.scope
        for time, scope.key, _ in self._timers.processing_timers.due(until):
            scope.timestamp = None
            self._fire(time, TimeDomain.PROCESSING_TIME)

    def _fire(self, time: int, domain: TimeDomain) -> None:
        context = self._context
        context.domain, context.fired = domain, time
        try:
            self.call(time)
        finally:
            context.fired = None


class _WithTimers(FunctionOperator):
    """Fires timers as the clocks move."""

    def __init__(self, function: Any, process: Any, run: Any, firing: _Firing) -> None:
        super().__init__(function, process, run)
        self._firing = firing

    def begin_epoch(self) -> None:
        self._firing.processing_time(self._firing._host.clock())

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self.time.watermark = time
            self._firing.event_time(time)
        self.pass_on(control)
