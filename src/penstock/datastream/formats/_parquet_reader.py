"""Reads the row groups of Parquet files, from any row on, as records or as they are, in batches.
Knows nothing of records or expressions: a layout does.

Text is read as Parquet stores it, each distinct value once with numbers that refer to it. So equal
values of a row group are one object, made once, and hashed once when it is a key.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.datastream._records import RecordMaker
from penstock.datastream.connectors._arrow_columns import (
    column_values,
    dictionary_values,
    object_array,
)
from penstock.datastream.connectors.base import ReadResult, SourceReader, Split
from penstock.datastream.formats._parquet_types import empty_batch, fitted
from penstock.errors import FileAccessError

# So many rows are decoded by Arrow at a time; they become Python's in smaller parts.
_ROWS_DECODED_AT_ONCE = 16_384
ROWS_IN_A_BATCH = 131_072
"""So many rows at most are handed out as they are."""
# About so many rows are looked at in one go if none is selected: an epoch is to have an end. With
# much fewer the epochs would cost more than the reading.
_ROWS_SEARCHED_AT_ONCE = 1 << 22
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
    """A column of the records."""

    name: str | None
    """As the file has it; None, if it has none, or if it is computed."""
    convert: Callable[[Any], Any] | None = None
    """What becomes of each of its values."""


class Selected(NamedTuple):
    """What has become of rows."""

    rows: pa.RecordBatch
    numbers: pa.Array | None = None
    """Which of the given rows each is, from 0 on; None, if none was left out."""


@dataclass(frozen=True)
class Pick:
    """Columns of a file by their names; where it has none, there is nothing in it."""

    names: Sequence[str | None]

    def __call__(self, rows: pa.RecordBatch) -> Selected:
        columns = [
            pa.nulls(rows.num_rows) if name is None else rows.column(name) for name in self.names
        ]
        names = [name or "" for name in self.names]
        return Selected(pa.RecordBatch.from_arrays(columns, names=names))


@dataclass(frozen=True)
class Layout:
    """What is read of a file, and how records are made of it."""

    reads: Sequence[str]
    """The columns of the file that it takes."""
    plainly: Sequence[str]
    """Those of them that must not be read by their distinct values: expressions look at them."""
    select: Callable[[pa.RecordBatch], Selected]
    """What becomes of rows of these columns before anything else. It may be fewer rows."""
    columns: Sequence[Column]
    """Those of what has been selected."""
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


@contextmanager
def errors_of(path: str) -> Iterator[None]:
    """What goes wrong in Arrow is an error that names the file."""
    try:
        yield
    except FileAccessError:
        raise
    except _UNREADABLE as error:
        raise FileAccessError.unreadable(path, error) from error


class _PartReader(SourceReader):
    """Keeps the files open that it has read a part of."""

    def __init__(self, parquet_format: ParquetFormat, texts: _Texts) -> None:
        self._format = parquet_format
        self._open: OrderedDict[str, _OpenPart] = OrderedDict()
        self._texts = texts

    @abstractmethod
    def _made(self, at: _OpenPart, rows: pa.RecordBatch) -> Any:
        """What is handed out for these rows."""

    @abstractmethod
    def _nothing(self) -> Any:
        """What is handed out if there are none."""

    def _shape(self, at: _OpenPart, rows: pa.RecordBatch) -> str | None:
        """What every record of these rows is, if that is known."""
        return None

    def read(self, split: Split, position: Position | None, max_records: int) -> ReadResult:
        part: RowGroups = split.data
        with errors_of(part.path):
            at = self._at(split.split_id, part, position or (part.start, 0))
            rows = at.take(min(max_records, self._format.rows_at_once))
        made = self._nothing() if rows is None else self._made(at, rows)
        if at.finished:
            self._forget(split.split_id)
        count = 0 if rows is None else rows.num_rows
        self.shape = None if rows is None else self._shape(at, rows)
        return ReadResult(made, at.position, finished=at.finished, count=count)

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


class ParquetReader(_PartReader):
    """Gives records."""

    def __init__(self, parquet_format: ParquetFormat) -> None:
        super().__init__(parquet_format, _Texts(_is_text))

    def _nothing(self) -> Any:
        return ()

    def _made(self, at: _OpenPart, rows: pa.RecordBatch) -> Iterable[Any]:
        layout = at.layout
        with errors_of(at.path):
            values = list(map(self._values, layout.columns, rows.columns))
        made = layout.make_records(values)
        return made if layout.one_by_one else list(made)

    def _shape(self, at: _OpenPart, rows: pa.RecordBatch) -> str | None:
        maker = at.layout.make_records
        if any(column.convert is not None for column in at.layout.columns):
            return None
        return maker.shape(rows.schema.types) if isinstance(maker, RecordMaker) else None

    def _values(self, column: Column, found: Any) -> list[Any]:
        if column.name is not None and pa.types.is_dictionary(found.type):
            values = self._texts.values(column.name, found)
        else:
            values = column_values(found)
        return values if column.convert is None else list(map(column.convert, values))


class BatchReader(_PartReader):
    """Gives the rows as they are, with the same types for all files. Text may come by its distinct
    values."""

    def __init__(self, parquet_format: ParquetFormat, schema: pa.Schema) -> None:
        super().__init__(parquet_format, _Texts(pa.types.is_string))
        self._schema = schema

    def _nothing(self) -> pa.RecordBatch:
        return empty_batch(self._schema)

    def _made(self, at: _OpenPart, rows: pa.RecordBatch) -> pa.RecordBatch:
        with errors_of(at.path):
            columns = [
                self._column(at.path, field, column)
                for field, column in zip(self._schema, rows.columns, strict=True)
            ]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _column(self, path: str, field: pa.Field, found: pa.Array) -> pa.Array:
        column = fitted(found, field.type)
        if column is None:
            raise FileAccessError.unlike_first(path, field.name, field.type, found.type)
        return column


class _OpenPart:
    """A part of a file that is being read."""

    def __init__(
        self, parquet_format: ParquetFormat, part: RowGroups, position: Position, texts: _Texts
    ) -> None:
        self.path = part.path
        self._texts = texts
        # A file of which nothing was read or planned yet may have been written until just now.
        if not (part.whole and position == (0, 0)):
            _check_unchanged(part)
        with opened(part.path) as file:
            self._metadata = file.metadata
            self._schema = file.schema_arrow
        self.layout = parquet_format.layout(part.path, self._schema)
        self._texts_among = [name for name in self.layout.reads if name not in self.layout.plainly]
        self._rows_decoded = max(_ROWS_DECODED_AT_ONCE, parquet_format.rows_at_once)
        groups = self._metadata.num_row_groups
        self._end = groups if part.end is None else part.end
        self._group, self._row = position
        if self._group > groups or (self._row and not self._is_there(groups)):
            raise FileAccessError.changed(part.path)
        self._rows = 0
        """Of the row group at hand."""
        self._file: pq.ParquetFile | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._decoded = 0
        """So many rows of the row group."""
        self._selected: Selected | None = None
        """Of what was decoded last; None, if all of it has been taken."""
        self._first = 0
        """The row of the row group that numbers of selected rows count from."""
        self._taken = 0
        """Of what is selected."""
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

    def take(self, most: int) -> pa.RecordBatch | None:
        """Up to so many of the rows that are selected, at least one; None, if there is no more
        until the end, or none among as many as are looked at in one go."""
        unsearched = _ROWS_SEARCHED_AT_ONCE
        while unsearched > 0 and not self.finished:
            selected = self._selected
            if selected is None:
                selected = self._selected = self._decode()
                unsearched -= self._decoded - self._first
            rows = selected.rows.slice(self._taken, most)
            self._taken += rows.num_rows
            self._go_on(selected)
            if rows.num_rows:
                return rows
        return None

    def _decode(self) -> Selected:
        """What is selected of the next rows, of which there is at least one. Those before the
        position have been selected already."""
        if self._file is None:
            self._open_group()
        while True:
            rows = next(self._batches, None)
            if rows is None:
                raise OSError(f"row group {self._group} ends before its last row")
            self._texts.note(self._texts_among, rows)
            start, self._decoded = self._decoded, self._decoded + rows.num_rows
            if self._decoded > self._row:
                break
        self._first, self._taken = self._row, 0
        return self.layout.select(rows.slice(self._row - start))

    def _go_on(self, selected: Selected) -> None:
        """To the row behind the last one that was taken, and behind all that were decoded if none
        of them is left."""
        if self._taken < selected.rows.num_rows:
            numbers = selected.numbers
            last = self._taken - 1 if numbers is None else numbers[self._taken - 1].as_py()
            self._row = self._first + last + 1
            return
        self._row, self._selected = self._decoded, None
        if self._row >= self._rows:
            self._texts.judge(self._texts_among, self._rows)
            self._group, self._row = self._group + 1, 0
            self._to_rows()

    def _to_rows(self) -> None:
        """To the next row group that has rows."""
        self.close()
        while not self.finished:
            self._rows = self._metadata.row_group(self._group).num_rows
            if self._rows > self._row:
                return
            self._group, self._row = self._group + 1, 0

    def _open_group(self) -> None:
        texts = self._texts.kept_apart(self._schema, self._texts_among, self._group_columns())
        self._file = opened(self.path, metadata=self._metadata, read_dictionary=texts)
        self._batches = self._file.iter_batches(
            self._rows_decoded, [self._group], columns=list(self.layout.reads), use_threads=False
        )
        self._decoded = 0

    def _group_columns(self) -> dict[str, Any]:
        group = self._metadata.row_group(self._group)
        columns = (group.column(index) for index in range(group.num_columns))
        return {column.path_in_schema: column for column in columns}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._selected, self._batches = None, None, iter(())


class _Texts:
    """The distinct values of columns that are read as such. Where most values of a column are
    distinct that costs more than it saves, so such a column is read plainly from then on."""

    def __init__(self, is_text: Callable[[Any], bool]) -> None:
        self._is_text = is_text
        self._known: dict[str, tuple[pa.Array, Any]] = {}
        self._last: dict[str, pa.Array] = {}
        self._distinct: dict[str, int] = {}
        self._plain: set[str] = set()

    def kept_apart(self, schema: pa.Schema, names: list[str], stored: dict[str, Any]) -> list[str]:
        """Those of the columns that shall be read by their distinct values."""
        return [
            name
            for name in names
            if name not in self._plain
            and name in stored
            and stored[name].has_dictionary_page
            and self._is_text(schema.field(name).type)
        ]

    def values(self, name: str, column: Any) -> list[Any]:
        dictionary = column.dictionary
        known = self._known.get(name)
        if known is None or not known[0].equals(dictionary):
            known = self._known[name] = (dictionary, object_array(dictionary))
        return dictionary_values(column, known[1])

    def note(self, names: list[str], rows: pa.RecordBatch) -> None:
        """These rows have been decoded."""
        for name in names:
            column = rows.column(name)
            if not pa.types.is_dictionary(column.type):
                continue
            last = self._last.get(name)
            if last is None or not last.equals(column.dictionary):
                self._last[name] = column.dictionary
                self._distinct[name] = self._distinct.get(name, 0) + len(column.dictionary)

    def judge(self, names: list[str], rows: int) -> None:
        """A row group with so many rows has been read."""
        for name in names:
            if 2 * self._distinct.pop(name, 0) > rows:
                self._plain.add(name)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
