"""Brings records back to the program; the driver takes them out of the acknowledgements."""

from __future__ import annotations

import copy
from typing import Any

from penstock.datastream.connectors.base import InitContext, Sink, SinkWriter, WriterContext

__all__ = ["CollectSink"]
from penstock.errors import UnpicklableError, short_repr

_CONSTANT = frozenset({str, int, float, bool, bytes, type(None)})


class CollectSink(Sink):
    """Hands over one list of values per writer and epoch. Commits nothing by itself."""

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _ValueWriter()


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise UnpicklableError.of(f"a record ({short_repr(value)})", error) from None


class _ValueWriter(SinkWriter):
    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, value: Any, context: WriterContext) -> None:
        # The function that emitted a changeable value may change it before the epoch ends.
        self._values.append(value if type(value) in _CONSTANT else _copied(value))

    def prepare_commit(self) -> list[Any]:
        values, self._values = self._values, []
        return [values] if values else []

    def abort(self) -> None:
        self._values.clear()
