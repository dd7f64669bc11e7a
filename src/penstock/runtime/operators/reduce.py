"""Rolling reduction of a keyed stream: an output per input, or in batch mode one per key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream.state import ValueState, ValueStateDescriptor
from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import (
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    opened,
)
from penstock.runtime.watermarks import MAX_TIMESTAMP, WATERMARK, Control

_STATE = "_reduced"
_TIME = "_time"


@dataclass(frozen=True)
class Reduce:
    """Combines each record with what came before under its key."""

    function: Any
    value_type: Any = None

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "reduce")
        state = host.context.get_state(ValueStateDescriptor(_STATE, self.value_type))
        if host.batch:
            return _FinalReduce(self.function, call, state, host)
        emit = host.emit
        current, update = state.value, state.update

        def process(value: Any) -> None:
            found = current()
            if found is not None:
                value = call(found, value)
            update(value)
            emit(value)

        step = Step(
            "found = $current()",
            "if found is not None: value = $call(found, value)",
            "$update(value)",
            current=current,
            update=update,
            call=call,
            emit=emit,
        )
        return FunctionOperator(self.function, process, before(host.emit_run, step))


class _FinalReduce(FunctionOperator):
    """Holds back all but the last value of each key, which has the time of the last record."""

    def __init__(
        self,
        function: Any,
        call: Callable[[Any, Any], Any],
        state: ValueState[Any],
        host: OperatorHost,
    ) -> None:
        current, update = state.value, state.update
        times = host.context.get_state(ValueStateDescriptor(_TIME, Types.LONG()))
        scope, keep_time = host.scope, times.update

        def process(value: Any) -> None:
            found = current()
            update(value if found is None else call(found, value))
            if scope.timestamp is not None:
                keep_time(scope.timestamp)

        super().__init__(function, process)
        self._host = host
        self._state = state
        self._times = times
        self._emitted = False

    def control(self, control: Control) -> None:
        if control == (WATERMARK, MAX_TIMESTAMP) and not self._emitted:
            self._emitted = True
            self._emit_all()
        super().control(control)

    def next_timer(self, until: int) -> int | None:
        return None

    def _emit_all(self) -> None:
        keyed_state, scope = self._host.keyed_state, self._host.scope
        assert keyed_state is not None
        for scope.key in keyed_state.all_keys(_STATE, self._host.make_room):
            value = self._state.value()
            scope.timestamp = self._times.value()
            self._host.emit(value)
