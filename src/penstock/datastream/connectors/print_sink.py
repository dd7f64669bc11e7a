"""Prints records on the driver's standard output, once their epoch is committed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from penstock.common._type_text import printed_text
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.base import (
    Committable,
    Committer,
    InitContext,
    Sink,
    SinkWriter,
    WriterContext,
)

__all__ = ["PrintSink"]


class PrintSink(Sink):
    """A line per record, with Flink's prefix: `identifier:subtask> value`.

    The subtask, counted from 1, is left out where there is only one. With the type of the records,
    they are printed as Flink prints such.
    """

    def __init__(
        self, identifier: str | None = None, type_info: TypeInformation | None = None
    ) -> None:
        self.identifier = identifier
        self._type = type_info

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _LineWriter(self._prefix(context), printed_text(self._type))

    def create_committer(self) -> Committer:
        return _Printer()

    def _prefix(self, context: InitContext) -> str:
        parts = [self.identifier] if self.identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask_index + 1))
        return ":".join(parts) + "> " if parts else ""


class _LineWriter(SinkWriter):
    def __init__(self, prefix: str, text: Callable[[Any], str]) -> None:
        self._prefix = prefix
        self._text = text
        self._lines: list[str] = []

    def write(self, value: Any, context: WriterContext) -> None:
        self._lines.append(self._prefix + self._text(value))

    def prepare_commit(self) -> list[Any]:
        lines, self._lines = self._lines, []
        return [lines] if lines else []

    def abort(self) -> None:
        self._lines.clear()


class _Printer(Committer):
    def commit(self, committables: list[Committable]) -> None:
        for prepared in sorted(committables, key=lambda c: (c.epoch, c.subtask_index)):
            sys.stdout.writelines(f"{line}\n" for line in prepared.data)
        sys.stdout.flush()
