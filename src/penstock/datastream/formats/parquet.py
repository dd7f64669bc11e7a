"""Parquet files, read by the tasks themselves: `FileSource.for_bulk_file_format(format, path)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.common.configuration import Configuration
from penstock.common.typeinfo import RowTypeInfo
from penstock.common.types import Row
from penstock.datastream._records import RecordMaker, field_names
from penstock.datastream.connectors._file_format import BulkFormat, FilePart
from penstock.datastream.connectors._input_files import InputFile
from penstock.datastream.connectors.base import SourceReader
from penstock.datastream.formats._parquet_reader import (
    Column,
    Layout,
    ParquetReader,
    RowGroups,
    opened,
)
from penstock.datastream.formats._parquet_types import conversion, fits
from penstock.errors import FileAccessError, InvalidArgumentError, UnsupportedFeatureError
from penstock.pyflink_names import missing_name

__all__ = ["ParquetColumnarRowInputFormat", "ParquetRecords"]

_ROWS_AT_ONCE = 2048
"""So many records fit into a processor's cache until they are sent."""


class _ParquetFormat(BulkFormat):
    """Row groups as parts of files."""

    files_at_once = 4

    def __init__(self, rows_at_once: int) -> None:
        if not isinstance(rows_at_once, int) or rows_at_once < 1:
            raise InvalidArgumentError.of("batch_size", "an int from 1 on", rows_at_once)
        self.rows_at_once = rows_at_once

    def layout(self, path: str, schema: pa.Schema) -> Layout:
        """What is read of a file with this schema."""
        raise NotImplementedError

    def parts(self, root: str, file: InputFile, largest: int | None) -> list[tuple[FilePart, int]]:
        if largest is None or file.size <= largest:
            return [(RowGroups(root, file.path, 0, None, file.size), file.size)]
        with opened(file.path) as parquet:
            groups = [parquet.metadata.row_group(index) for index in range(parquet.num_row_groups)]
        sizes = [
            sum(g.column(i).total_compressed_size for i in range(g.num_columns)) for g in groups
        ]
        found: list[tuple[FilePart, int]] = []
        start = size = 0
        for index, more in enumerate(sizes):
            if index > start and size + more > largest:
                found.append((RowGroups(root, file.path, start, index, file.size), size))
                start, size = index, 0
            size += more
        return [*found, (RowGroups(root, file.path, start, None, file.size), size)]

    def create_reader(self) -> SourceReader:
        return ParquetReader(self)


class ParquetRecords(_ParquetFormat):
    """Records of the kind that `from_spark` gives: named tuples, or as `record_type` says.

    `columns` are those to read: by default all that a file has, or the fields of the record type.
    Timestamps that Parquet keeps in UTC come with that zone, those in local time without. A map is
    a dict, a struct a dict by the names of its fields.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        record_type: Any = None,
        batch_size: int = _ROWS_AT_ONCE,
    ) -> None:
        super().__init__(batch_size)
        if isinstance(columns, str) or not all(isinstance(c, str) for c in columns or ()):
            raise InvalidArgumentError.of("columns", "a list of names", columns)
        if columns is not None and not columns:
            raise InvalidArgumentError("columns is empty; name those to read, or leave it out")
        if columns is None and record_type not in (None, tuple, dict, Row):
            columns = field_names(record_type)
        self._columns = None if columns is None else tuple(columns)
        self._record_type = record_type
        if self._columns is not None:
            self._maker(self._columns)  # which looks at them

    def layout(self, path: str, schema: pa.Schema) -> Layout:
        names = self._columns or tuple(schema.names)
        found = _found(path, schema, names, case_sensitive=True)
        if missing := [name for name in names if found[name] is None]:
            raise FileAccessError.no_column(path, missing, schema.names)
        plain = self._record_type in (None, tuple, dict)
        return Layout([Column(name) for name in names], self._maker(names), one_by_one=plain)

    def _maker(self, names: tuple[str, ...]) -> RecordMaker:
        return RecordMaker(names, self._record_type)


class ParquetColumnarRowInputFormat(_ParquetFormat):
    """Rows of a declared type. A column that a file does not have is None in its rows.

    `row_type` is a `Types.ROW_NAMED(...)`. As in Flink all timestamps are points in time, and in
    the rows what a clock shows then: in UTC, or in the local zone unless `is_utc_timestamp`.
    """

    def __init__(
        self,
        row_type: RowTypeInfo,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        super().__init__(batch_size)
        if not isinstance(row_type, RowTypeInfo):
            raise InvalidArgumentError.of(
                "row_type", "a row type, as Types.ROW_NAMED([names], [types])", row_type
            )
        if hadoop_config is not None and hadoop_config.to_dict():
            raise UnsupportedFeatureError.of(
                "hadoop_config", "there is no Hadoop; files are read from disks that are mounted"
            )
        self._row_type = row_type
        self._case_sensitive = is_case_sensitive
        self._utc = is_utc_timestamp

    def layout(self, path: str, schema: pa.Schema) -> Layout:
        names, types = self._row_type.get_field_names(), self._row_type.get_field_types()
        found = _found(path, schema, names, self._case_sensitive)
        if not any(found.values()):
            raise FileAccessError.no_column(path, names, schema.names)
        columns = []
        for name, declared in zip(names, types, strict=True):
            stored = found[name]
            if stored is not None and not fits(declared, schema.field(stored).type):
                raise FileAccessError.other_type(path, name, declared, schema.field(stored).type)
            columns.append(Column(stored, conversion(declared, self._utc)))
        return Layout(columns, RecordMaker(tuple(names), Row), one_by_one=True)


def _found(
    path: str, schema: pa.Schema, names: Sequence[str], case_sensitive: bool
) -> dict[str, str | None]:
    """By each wanted name the one column of the file that it means, if there is one."""

    def known_as(name: str) -> str:
        return name if case_sensitive else name.lower()

    there: dict[str, list[str]] = {}
    for name in schema.names:
        there.setdefault(known_as(name), []).append(name)
    found: dict[str, str | None] = {}
    for name in names:
        meant = there.get(known_as(name), [])
        if len(meant) > 1:
            raise FileAccessError.several_columns(path, name, meant)
        found[name] = meant[0] if meant else None
    return found


__getattr__ = missing_name(__name__)
