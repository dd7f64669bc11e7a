"""Reads the row groups of Parquet files, from any row on. Knows nothing of records: a layout does.

Text is read as Parquet stores it, each distinct value once with numbers that refer to it. So equal
values of a row group are one object, made once, and hashed once when it is a key.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.datastream.connectors._arrow_columns import (
    column_values,
    dictionary_values,
    object_array,
)
from penstock.datastream.connectors.base import ReadResult, SourceReader, Split
from penstock.errors import FileAccessError

# So many rows are decoded by Arrow at a time; they become Python's in smaller parts.
_ROWS_DECODED_AT_ONCE = 16_384
_UNREADABLE = (pa.ArrowException, OSError, IndexError)

Position = tuple[int, int]
"""The row group and its row to go on with."""


class RowGroups(NamedTuple):
    """A part of a file: its row groups from `start` on and before `end`."""

    root: str
    path: str
    start: int
    end: int | None
    """None, if it goes to the file's end."""
    size: int | None = None
    """Of the file when it was found; None in checkpoints that know none."""

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end is None


@dataclass(frozen=True)
class Column:
    """A column to read."""

    name: str | None
    """As the file has it; None, if it has none: then there is nothing in it."""
    convert: Callable[[Any], Any] | None = None
    """What becomes of each of its values."""


@dataclass(frozen=True)
class Layout:
    """What is read of a file, and how records are made of it."""

    columns: Sequence[Column]
    make_records: Callable[[list[list[Any]]], Iterable[Any]]
    one_by_one: bool
    """Whether each may be made when it is wanted, which saves memory. Not if the user's code makes
    them: its errors are to be the source's."""


class ParquetFormat(Protocol):
    """What a reader asks of the format."""

    rows_at_once: int
    files_at_once: int

    def layout(self, path: str, schema: pa.Schema) -> Layout: ...


def opened(path: str, **how: Any) -> pq.ParquetFile:
    """An open file, or an error that says that it is none."""
    try:
        return pq.ParquetFile(path, **how)
    except pa.ArrowInvalid as error:
        raise FileAccessError.not_parquet(path, error) from error
    except _UNREADABLE as error:
        raise FileAccessError.unreadable(path, error) from error


def _check_unchanged(part: RowGroups) -> None:
    """Positions in a file that was written anew mean other rows."""
    try:
        size = os.stat(part.path).st_size
    except OSError as error:
        raise FileAccessError.unreadable(part.path, error) from error
    if part.size is not None and size != part.size:
        raise FileAccessError.changed(part.path)


class ParquetReader(SourceReader):
    """Keeps the files open that it has read a part of."""

    def __init__(self, parquet_format: ParquetFormat) -> None:
        self._format = parquet_format
        self._open: OrderedDict[str, _OpenPart] = OrderedDict()
        self._texts = _Texts()

    def read(self, split: Split, position: Position | None, max_records: int) -> ReadResult:
        part: RowGroups = split.data
        try:
            at = self._at(split.split_id, part, position or (part.start, 0))
            count, values = at.take(min(max_records, self._format.rows_at_once))
        except FileAccessError:
            raise
        except _UNREADABLE as error:
            raise FileAccessError.unreadable(part.path, error) from error
        records = at.records(values) if count else ()
        if at.finished:
            self._forget(split.split_id)
        return ReadResult(records, at.position, finished=at.finished, count=count)

    def close(self) -> None:
        for split in list(self._open):
            self._forget(split)

    def _at(self, split: str, part: RowGroups, position: Position) -> _OpenPart:
        """The part at a position: as it was left there, or opened anew."""
        found = self._open.get(split)
        if found is None or found.position != position:
            self._forget(split)
            found = self._open[split] = _OpenPart(self._format, part, position, self._texts)
            if len(self._open) > self._format.files_at_once:
                self._forget(next(iter(self._open)))
        self._open.move_to_end(split)
        return found

    def _forget(self, split: str) -> None:
        found = self._open.pop(split, None)
        if found is not None:
            found.close()


class _OpenPart:
    """A part of a file that is being read."""

    def __init__(
        self, parquet_format: ParquetFormat, part: RowGroups, position: Position, texts: _Texts
    ) -> None:
        self._path = part.path
        self._texts = texts
        # A file of which nothing was read or planned yet may have been written until just now.
        if not (part.whole and position == (0, 0)):
            _check_unchanged(part)
        with opened(part.path) as file:
            self._metadata = file.metadata
            self._schema = file.schema_arrow
        self._layout = parquet_format.layout(part.path, self._schema)
        self._names = [c.name for c in self._layout.columns if c.name is not None]
        groups = self._metadata.num_row_groups
        self._end = groups if part.end is None else part.end
        self._group, self._row = position
        if self._group > groups or (self._row and not self._is_there(groups)):
            raise FileAccessError.changed(part.path)
        self._rows = 0
        """Of the row group at hand."""
        self._file: pq.ParquetFile | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._decoded: pa.RecordBatch | None = None
        self._taken = 0
        """Of what is decoded."""
        self._to_rows()

    def _is_there(self, groups: int) -> bool:
        """Whether the row to go on behind is in the file."""
        return self._group < groups and self._row <= self._metadata.row_group(self._group).num_rows

    @property
    def position(self) -> Position:
        return self._group, self._row

    @property
    def finished(self) -> bool:
        return self._group >= self._end

    def take(self, most: int) -> tuple[int, list[list[Any]]]:
        """The columns of up to so many rows, and their number; none only at the end."""
        if self.finished:
            return 0, []
        if self._file is None:
            self._open_group()
        while self._decoded is None or self._taken >= self._decoded.num_rows:
            self._taken -= 0 if self._decoded is None else self._decoded.num_rows
            self._decoded = next(self._batches, None)
            if self._decoded is None:
                raise OSError(f"row group {self._group} ends before its last row")
        count = min(most, self._decoded.num_rows - self._taken)
        rows = self._decoded.slice(self._taken, count)
        values = [self._values(column, rows) for column in self._layout.columns]
        self._taken += count
        self._row += count
        if self._row >= self._rows:
            self._texts.judge(self._names, self._rows)
            self._group, self._row = self._group + 1, 0
            self._to_rows()
        return count, values

    def records(self, columns: list[list[Any]]) -> Iterable[Any]:
        made = self._layout.make_records(columns)
        return made if self._layout.one_by_one else list(made)

    def _to_rows(self) -> None:
        """To the next row group that has rows."""
        self.close()
        while not self.finished:
            self._rows = self._metadata.row_group(self._group).num_rows
            if self._rows > self._row:
                return
            self._group, self._row = self._group + 1, 0

    def _open_group(self) -> None:
        texts = self._texts.kept_apart(self._schema, self._names, self._group_columns())
        self._file = opened(self._path, metadata=self._metadata, read_dictionary=texts)
        self._batches = self._file.iter_batches(
            _ROWS_DECODED_AT_ONCE, [self._group], columns=self._names, use_threads=False
        )
        self._decoded, self._taken = None, self._row

    def _group_columns(self) -> dict[str, Any]:
        group = self._metadata.row_group(self._group)
        columns = (group.column(index) for index in range(group.num_columns))
        return {column.path_in_schema: column for column in columns}

    def _values(self, column: Column, rows: pa.RecordBatch) -> list[Any]:
        if column.name is None:
            return [None] * rows.num_rows
        found = rows.column(column.name)
        if pa.types.is_dictionary(found.type):
            values = self._texts.values(column.name, found)
        else:
            values = column_values(found)
        return values if column.convert is None else list(map(column.convert, values))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._decoded, self._batches = None, None, iter(())


class _Texts:
    """The distinct values of columns that are read as such. Where most values of a column are
    distinct that costs more than it saves, so such a column is read plainly from then on."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[pa.Array, Any]] = {}
        self._made: dict[str, int] = {}
        self._plain: set[str] = set()

    def kept_apart(self, schema: pa.Schema, names: list[str], stored: dict[str, Any]) -> list[str]:
        """Those of the columns that shall be read by their distinct values."""
        return [
            name
            for name in names
            if name not in self._plain
            and name in stored
            and stored[name].has_dictionary_page
            and _is_text(schema.field(name).type)
        ]

    def values(self, name: str, column: Any) -> list[Any]:
        dictionary = column.dictionary
        known = self._known.get(name)
        if known is None or not known[0].equals(dictionary):
            known = self._known[name] = (dictionary, object_array(dictionary))
            self._made[name] = self._made.get(name, 0) + len(dictionary)
        return dictionary_values(column, known[1])

    def judge(self, names: list[str], rows: int) -> None:
        """A row group with so many rows has been read."""
        for name in names:
            if 2 * self._made.pop(name, 0) > rows:
                self._plain.add(name)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
