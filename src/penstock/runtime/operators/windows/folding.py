"""How the records of a window become one value, as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.datastream.functions import AggregateFunction
from penstock.runtime.operators.base import OperatorHost, opened


class Fold(NamedTuple):
    """An opened reduce or aggregate function."""

    create: Callable[[], Any]
    """What a window holds at first."""
    add: Callable[[Any, Any], Any]
    """From a record and what its window holds to what it holds then."""
    merge: Callable[[Any, Any], Any]
    """From what two windows hold to what their union does."""

    @classmethod
    def of(cls, combine: Any, host: OperatorHost) -> Fold:
        if isinstance(combine, AggregateFunction):
            add = opened(combine, host, "add")
            return cls(combine.create_accumulator, add, combine.merge)
        call = opened(combine, host, "reduce")

        def reduce(value: Any, held: Any) -> Any:
            return value if held is None else call(held, value)

        return cls(_nothing, reduce, call)


def _nothing() -> None:
    """There is no reduced value yet."""
