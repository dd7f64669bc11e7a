"""Functions of two connected streams: a method of the function for the records of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import (
    FunctionOperator,
    Input,
    OpenOperator,
    OperatorHost,
    open_function,
)
from penstock.runtime.operators.process import (
    ElementContext,
    MayHaveTimers,
    ProcessOperator,
    element_input,
    firing,
    timer_service,
)
from penstock.runtime.operators.stateless import flat_mapped


@dataclass(frozen=True)
class CoMap:
    """Emits what the function returns, unless it is None."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        open_function(self.function, host)
        inputs = _mapped(self.function.map1, host), _mapped(self.function.map2, host)
        return FunctionOperator(self.function, *inputs[0], inputs)


def _mapped(call: Callable[[Any], Any], host: OperatorHost) -> Input:
    emit = host.emit

    def process(value: Any) -> None:
        result = call(value)
        if result is not None:
            emit(result)

    step = Step("value = $call(value)", "if value is None: continue", call=call, emit=emit)
    return process, before(host.emit_run, step)


@dataclass(frozen=True)
class CoFlatMap:
    """Emits everything that the function returns or yields; None counts as nothing."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        function = self.function
        open_function(function, host)
        inputs = flat_mapped(function.flat_map1, host), flat_mapped(function.flat_map2, host)
        return FunctionOperator(function, *inputs[0], inputs)


@dataclass(frozen=True)
class CoProcess(MayHaveTimers):
    """A CoProcessFunction or KeyedCoProcessFunction."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        function = self.function
        context = ElementContext(host.scope, timer_service(function, host), host.emit_side)
        open_function(function, host)
        inputs = (
            element_input(function.process_element1, context, host),
            element_input(function.process_element2, context, host),
        )
        return ProcessOperator(function, inputs, firing(function, context, host))
