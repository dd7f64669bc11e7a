"""Parquet files, read by the tasks themselves: `FileSource.for_bulk_file_format(format, path)`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.common.configuration import Configuration
from penstock.common.typeinfo import RowTypeInfo
from penstock.common.types import Row
from penstock.datastream._records import RecordMaker, field_names
from penstock.datastream.connectors._file_format import BulkFormat, ColumnarFormat, FilePart
from penstock.datastream.connectors._input_files import InputFile
from penstock.datastream.connectors.base import SourceReader
from penstock.datastream.formats._parquet_reader import (
    ROWS_IN_A_BATCH,
    BatchReader,
    Column,
    Layout,
    ParquetReader,
    Pick,
    RowGroups,
    Selected,
    errors_of,
    opened,
)
from penstock.datastream.formats._parquet_types import (
    conversion,
    empty_batch,
    fits,
    plain_schema,
    plain_type,
    widest,
)
from penstock.errors import FileAccessError, InvalidArgumentError, UnsupportedFeatureError
from penstock.pyflink_names import missing_name

if TYPE_CHECKING:
    from pyarrow.compute import Expression

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

    `columns` are those to read: by default all that a file has, or the fields of the record type. A
    dict says for each field of the records the column that it is, or an expression of
    `pyarrow.compute` over columns. `where` is such an expression as well: rows for which it is not
    true are left out. Timestamps that Parquet keeps in UTC come with that zone, those in local time
    without. A map is a dict, a struct a dict by the names of its fields.
    """

    def __init__(
        self,
        columns: Sequence[str] | Mapping[str, str | Expression] | None = None,
        record_type: Any = None,
        batch_size: int = _ROWS_AT_ONCE,
        where: Expression | None = None,
    ) -> None:
        super().__init__(batch_size)
        if columns is None and record_type not in (None, tuple, dict, Row):
            columns = field_names(record_type)
        self._columns = None if columns is None else _wanted(columns)
        self._where = where
        self._record_type = record_type
        if where is not None:
            _check_expression("where", _EXPRESSION, where)
        if self._columns is not None:
            self._maker(self._columns)  # which looks at them

    def layout(self, path: str, schema: pa.Schema) -> Layout:
        wanted = self._columns or _as_they_are(schema.names)
        plain = [of for _, of in wanted if isinstance(of, str)]
        found = _found(path, schema, plain, case_sensitive=True)
        if missing := [name for name in plain if found[name] is None]:
            raise FileAccessError.no_column(path, missing, schema.names)
        select: Pick | _Selection = Pick(plain)
        used: list[str] = []
        if len(plain) < len(wanted) or self._where is not None:
            select = _Selection(path, schema, wanted, self._where)
            used = select.used
        return Layout(
            reads=list(dict.fromkeys([*plain, *used])),
            plainly=used,
            select=select,
            columns=[Column(of if isinstance(of, str) else None) for _, of in wanted],
            make_records=self._maker(wanted),
            one_by_one=self._record_type in (None, tuple, dict),
        )

    def in_batches(self, path: str, columns: Sequence[int] | None) -> ColumnarFormat | None:
        with errors_of(path), opened(path) as file:
            schema = file.schema_arrow
        same = copy.copy(self)
        wanted = self._columns or _as_they_are(schema.names)
        if columns is not None:
            wanted = [wanted[at] for at in columns]
        same._columns = wanted
        layout = same.layout(path, schema)
        rows = pa.schema([field for field in schema if field.name in layout.reads])
        types = [widest(plain_type(t)) for t in layout.select(empty_batch(rows)).rows.schema.types]
        if any(pa.types.is_null(kind) for kind in types):
            return None  # What the column is, if there is something in it, other files know.
        record = self._maker(wanted)
        return _ParquetBatches(same, record, pa.schema(list(zip(record.names, types, strict=True))))

    def _maker(self, wanted: _Wanted) -> RecordMaker:
        return RecordMaker(tuple(name for name, _ in wanted), self._record_type)


class _ParquetBatches(_ParquetFormat, ColumnarFormat):
    """What the records of a `ParquetRecords` are made of, in whole batches."""

    def __init__(self, records: ParquetRecords, record: RecordMaker, schema: pa.Schema) -> None:
        super().__init__(ROWS_IN_A_BATCH)
        self._records = records
        self.record = record
        self.schema = schema

    def layout(self, path: str, schema: pa.Schema) -> Layout:
        return self._records.layout(path, schema)

    def create_reader(self) -> SourceReader:
        return BatchReader(self, self.schema)


_Wanted = Sequence[tuple[str, Any]]
"""The fields of records, each with the column or the expression that it is."""


def _as_they_are(names: Iterable[str]) -> _Wanted:
    return [(name, name) for name in names]


def _wanted(columns: Any) -> _Wanted:
    """What the user has given, if it can be used."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidArgumentError.of("columns", _COLUMNS, columns)
    wanted = list(columns.items() if isinstance(columns, Mapping) else _as_they_are(columns))
    if not wanted:
        raise InvalidArgumentError("columns is empty; name those to read, or leave it out")
    if not all(isinstance(name, str) for name, _ in wanted):
        raise InvalidArgumentError.of("columns", _COLUMNS, columns)
    for name, of in wanted:
        if not isinstance(of, str):
            _check_expression(f"columns[{name!r}]", f"the name of a column or {_EXPRESSION}", of)
    return wanted


_COLUMNS = "a list of names, or a dict that says which column or expression each field is"
_EXPRESSION = "an expression of pyarrow.compute, as pc.field('temp') > 20"


def _check_expression(what: str, expected: str, given: Any) -> None:
    import pyarrow.compute as pc  # which takes its time: only where it is needed

    if not isinstance(given, pc.Expression):
        raise InvalidArgumentError.of(what, expected, given)
    try:
        pickle.dumps(given)
    except pa.ArrowException as error:
        raise InvalidArgumentError(
            f"{what} cannot be sent to tasks: {error}; columns must be named, as by pc.field('id')"
        ) from error


class _Selection:
    """Fields and rows as Arrow makes them of what is read of a file."""

    def __init__(self, path: str, schema: pa.Schema, wanted: _Wanted, where: Any) -> None:
        import pyarrow.compute as pc

        self._path = path
        self._field = pc.field
        self._fields = [(name, pc.field(of) if isinstance(of, str) else of) for name, of in wanted]
        self._where = where
        plain = plain_schema(schema)
        nothing = pa.Table.from_batches([], plain)
        self._evaluated(nothing, self._fields)  # which says what does not fit
        computed = [of for _, of in wanted if not isinstance(of, str)]
        self.used = _used(plain, computed if where is None else [*computed, where])
        """The columns that expressions look at."""

    def __call__(self, rows: pa.RecordBatch) -> Selected:
        table = pa.Table.from_batches([rows])
        for at, field in enumerate(rows.schema):
            apart = pa.types.is_dictionary(field.type) and field.name not in self.used
            plain = field.type if apart else plain_type(field.type)
            if plain != field.type:  # With these Arrow can do more.
                table = table.set_column(at, field.name, table.column(at).cast(plain))
        if self._where is None:
            return Selected(_in_one(self._evaluated(table, self._fields)))
        number = "row"
        while number in rows.schema.names:
            number += "_"
        table = table.append_column(number, _numbers(rows.num_rows))
        found = _in_one(self._evaluated(table, [*self._fields, (number, self._field(number))]))
        fields = len(self._fields)
        return Selected(found.select(range(fields)), found.column(fields))

    def _evaluated(self, table: pa.Table, fields: _Wanted) -> pa.Table:
        try:
            return _evaluated(table, fields, self._where)
        except pa.ArrowException as error:
            self._find_fault(table)
            raise FileAccessError.unreadable(self._path, error) from error

    def _find_fault(self, table: pa.Table) -> None:
        """Raise the error of the one that cannot be computed."""
        parts = [(f"column {name}", of) for name, of in self._fields]
        if self._where is not None:
            parts.insert(0, ("where", self._where))
        for what, expression in parts:
            try:
                _evaluated(table, [(what, expression)], self._where)
            except pa.ArrowException as error:
                raise FileAccessError.not_computed(self._path, what, expression, error) from error


def _evaluated(table: pa.Table, fields: _Wanted, where: Any) -> pa.Table:
    # Not from `pyarrow.acero`, which imports pandas: half a second in every worker.
    from pyarrow import _acero

    steps = [_acero.Declaration("table_source", _acero.TableSourceNodeOptions(table))]
    if where is not None:
        steps.append(_acero.Declaration("filter", _acero.FilterNodeOptions(where)))
    names, expressions = zip(*fields, strict=True)
    steps.append(_acero.Declaration("project", _acero.ProjectNodeOptions(expressions, names)))
    # Without threads rows stay in their order.
    return _acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _numbers(count: int) -> pa.Array:
    """From 0 on. (Not by `pa.array`, whose first call imports pandas.)"""
    numbers = pa.py_buffer(np.arange(count, dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), count, [None, numbers])


def _in_one(table: pa.Table) -> pa.RecordBatch:
    """A table, which Arrow makes in several parts, as one batch."""
    if not table.num_rows:
        return empty_batch(table.schema)
    columns = [
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def _used(schema: pa.Schema, expressions: Sequence[Any]) -> list[str]:
    """The columns that expressions look at. Arrow does not tell, so it is tried which of those
    whose names are in their texts they can do without."""

    def suffice(names: list[str]) -> bool:
        there = pa.schema([field for field in schema if field.name in names])
        fields = [(str(at), expression) for at, expression in enumerate(expressions)]
        try:
            _evaluated(pa.Table.from_batches([], there), fields, None)
        except pa.ArrowException:
            return False
        return True

    texts = " ".join(map(str, expressions))
    used = [name for name in schema.names if name in texts]
    if not suffice(used):
        return list(schema.names)
    for name in list(used):
        rest = [other for other in used if other != name]
        if suffice(rest):
            used = rest
    return used


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
        return Layout(
            reads=list(dict.fromkeys(name for name in found.values() if name is not None)),
            plainly=(),
            select=Pick([column.name for column in columns]),
            columns=columns,
            make_records=RecordMaker(tuple(names), Row),
            one_by_one=True,
        )


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
