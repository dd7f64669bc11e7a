"""The events of one type as a source written in Python: for the local executor, which has no Spark.

A split has every so-manieth file, so that all of them are at about the same event time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.nexmark.files import paths_of, rows_of, view
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)


class _Position(NamedTuple):
    file: int
    row: int
    ended_at: float = 0.0
    """When the last record was read, in seconds."""


class _Files(NamedTuple):
    paths: tuple[str, ...]
    kind: int
    columns: tuple[str, ...]
    linger: float


class EventSource(Source):
    """Reads files of events to their end; `linger` seconds later the input is over."""

    gives_timestamps = False

    def __init__(
        self, directory: str, kind: int, columns: tuple[str, ...], linger: float = 0.0
    ) -> None:
        self._directory = directory
        self._kind = kind
        self._columns = columns
        self._linger = linger

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> Sequence[Split]:
        paths = paths_of(self._directory)
        return [
            Split(
                f"files-{number}",
                _Files(tuple(mine), self._kind, self._columns, self._linger),
                _Position(0, 0),
            )
            for number in range(parallelism)
            if (mine := paths[number::parallelism])
        ]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _EventReader()


class _EventReader(SourceReader):
    def __init__(self) -> None:
        self._open: dict[str, list[Any]] = {}
        """The rows of the file that is being read, by its path."""

    def read(self, split: Split, position: _Position, max_records: int) -> ReadResult:
        files: _Files = split.data
        if position.file == len(files.paths):
            over = time.time() >= position.ended_at + files.linger
            return ReadResult([], position, finished=over)
        path = files.paths[position.file]
        rows = self._open.get(path)
        if rows is None:
            rows = self._open[path] = rows_of(view(path, files.kind, files.columns))
        end = position.row + max_records
        records = rows[position.row : end]
        if end < len(rows):
            return ReadResult(records, _Position(position.file, end))
        del self._open[path]
        after = position.file + 1
        last = after == len(files.paths)
        return ReadResult(
            records,
            _Position(after, 0, time.time() if last else 0.0),
            finished=last and not files.linger,
        )
