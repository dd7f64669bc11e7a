"""Process functions: records one by one with a context, keyed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.timerservice import TimerService
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.operators.base import (
    MIN_TIMESTAMP,
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    opened,
    passing,
)
from penstock.state.backend import KeyScope


class TaskTimerService(TimerService):
    """The clocks. Timers are not there yet, and say so."""

    def __init__(self, clock: Callable[[], int], keyed: bool) -> None:
        self._clock = clock
        self._keyed = keyed

    def current_processing_time(self) -> int:
        return self._clock()

    def current_watermark(self) -> int:
        return MIN_TIMESTAMP

    def _refuse(self) -> NoReturn:
        if not self._keyed:
            raise UnsupportedFeatureError("Register timers is only supported on a keyed stream.")
        raise UnsupportedFeatureError("timers are not part of this version of Penstock yet")

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._refuse()


class ElementContext(KeyedProcessFunction.Context, ProcessFunction.Context):
    """The record at hand. One object serves all records of a task."""

    def __init__(
        self, scope: KeyScope, timers: TimerService, emit_side: Callable[[OutputTag, Any], None]
    ) -> None:
        self._scope = scope
        self._timers = timers
        self._emit_side = emit_side

    def get_current_key(self) -> Any:
        return self._scope.key

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int:
        timestamp = self._scope.timestamp
        return MIN_TIMESTAMP if timestamp is None else timestamp

    def output(self, tag: OutputTag, value: Any) -> None:
        if tag.__class__ is not OutputTag:
            raise InvalidArgumentError.of("the tag of ctx.output", "an OutputTag", tag)
        self._emit_side(tag, value)


@dataclass(frozen=True)
class Process:
    """A ProcessFunction or KeyedProcessFunction."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "process_element")
        timers = TaskTimerService(host.clock, host.keyed_state is not None)
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

    return FunctionOperator(function, process, passing(results, host.emit_run))
