"""Map, filter, flat map: one record in, some out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.base import (
    FunctionOperator,
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

        def run(values: Iterable[Any]) -> None:
            for value in values:
                emit(call(value))

        return FunctionOperator(self.function, process, run)


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

        def run(values: Iterable[Any]) -> None:
            for value in values:
                if call(value):
                    emit(value)

        return FunctionOperator(self.function, process, run)


@dataclass(frozen=True)
class FlatMap:
    """Emits everything that the function returns or yields; None counts as nothing."""

    function: Any

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "flat_map")
        emit = host.emit

        def process(value: Any) -> None:
            results = call(value)
            if results is None:
                return
            if isinstance(results, str | bytes):
                raise InvalidArgumentError.of(
                    "the result of flat_map", "a list, an iterable or None", results
                )
            for result in results:
                emit(result)

        return FunctionOperator(self.function, process)
