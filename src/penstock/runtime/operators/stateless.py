"""Map, filter, flat map: one record in, some out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import (
    FunctionOperator,
    Input,
    OpenOperator,
    OperatorHost,
    opened,
)


@dataclass(frozen=True)
class Map:
    """Emits what the function returns."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "map")
        emit = host.emit

        def process(value: Any) -> None:
            emit(call(value))

        step = Step("value = $call(value)", call=call, emit=emit)
        return FunctionOperator(self.function, process, before(host.emit_run, step))


@dataclass(frozen=True)
class Filter:
    """Emits the record if the function says so."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "filter")
        emit = host.emit

        def process(value: Any) -> None:
            if call(value):
                emit(value)

        step = Step("if not $call(value): continue", call=call, emit=emit)
        return FunctionOperator(self.function, process, before(host.emit_run, step))


@dataclass(frozen=True)
class FlatMap:
    """Emits everything that the function returns or yields; None counts as nothing."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "flat_map")
        return FunctionOperator(self.function, *flat_mapped(call, host))


def flat_mapped(call: Callable[[Any], Any], host: OperatorHost) -> Input:
    """An input whose records become all that the call gives."""
    emit = host.emit

    def process(value: Any) -> None:
        for result in _checked(call(value)):
            emit(result)

    line = "for value in $checked($call(value)):"
    step = Step(line, many=True, checked=_checked, call=call, emit=emit)
    return process, before(host.emit_run, step)


def _checked(results: Any) -> Any:
    if results is None:
        return ()
    if isinstance(results, str | bytes):
        raise InvalidArgumentError.of(
            "the result of flat_map", "a list, an iterable or None", results
        )
    return results
