"""Operators that are columns of Spark's. Spark does their work in the frame of the source; in a
task only their place in the chain is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.runtime.operators.base import OpenOperator, OperatorHost


@dataclass(frozen=True, eq=False)
class ColumnOperator:
    """What a Column makes of a source's rows."""

    columns: tuple[Any, ...]
    """Driver only, like `frame`; never pickled."""
    frame: Any
    """The rows behind it."""
    record: Any
    """Makes records out of the columns behind it."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "columns": (), "frame": None}

    def apply(self, frame: Any) -> Any:
        """The operator's work, on a frame that has the same columns as the one before it."""
        raise NotImplementedError

    def open(self, host: OperatorHost) -> OpenOperator:
        operator = OpenOperator()
        operator.process = host.emit
        operator.run = host.emit_run
        return operator


@dataclass(frozen=True, eq=False)
class ColumnFilter(ColumnOperator):
    def apply(self, frame: Any) -> Any:
        return frame.where(*self.columns)


@dataclass(frozen=True, eq=False)
class ColumnMap(ColumnOperator):
    def apply(self, frame: Any) -> Any:
        return frame.select(*self.columns)
