"""Lookup: each record with the rows of a side input that have its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.runtime.operators.base import (
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    opened,
    passing,
)

_NONE: tuple[Any, ...] = ()
_ONE_MISSING = (None,)


@dataclass(frozen=True)
class Lookup:
    """Emits what the function makes of a record and a row, for every match."""

    side_input: str
    select: Callable[[Any], Any]
    function: Any
    outer: bool
    """Whether a record without a match goes on, with None for a row."""

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "join")
        table = host.context.get_side_input(self.side_input)
        misses = host.context.get_metrics_group().counter("numLookupMisses")
        select, instead = self.select, _ONE_MISSING if self.outer else _NONE

        def results(values: Iterable[Any], emit: Any = host.emit) -> Iterator[Any]:
            find = table.by_key.get
            for value in values:
                rows: Iterable[Any] | None = find(select(value))
                if rows is None:
                    misses.inc()
                    rows = instead
                for row in rows:
                    yield call(value, row)

        def process(value: Any) -> None:
            emit = host.emit
            for result in results((value,)):
                emit(result)

        return FunctionOperator(self.function, process, passing(results, host.emit_run))
