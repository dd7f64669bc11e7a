"""What Spark's tasks do to read a state: a few of its files each, batch by batch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.common.parts import in_parts
from penstock.common.types import Row
from penstock.state.snapshot_columns import RowColumns, keyed_columns
from penstock.state.snapshot_reader import subtask_files
from penstock.state.stored_keys import (
    BYTES,
    NOTHING,
    KeyType,
    common_type,
    common_type_of,
    is_whole,
)
from penstock.state.stored_states import Place, StateLayout, StateRow
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import Manifest
from penstock.storage.merging import live_entries

_BATCH = 10_000
# Integers up to here fit into 64 bits: a sign, and fifteen hexadecimal digits.
_SHORT_INTEGER = 16


@dataclass(frozen=True)
class ReadPart:
    """What one task reads."""

    files: tuple[FileInfo, ...]
    key_groups: tuple[int, int]


def read_parts(manifest: Manifest, layout: StateLayout) -> list[ReadPart]:
    """A state cut into tasks: by file if each holds whole rows, else by subtask."""
    found: list[ReadPart] = []
    name = layout.operator, layout.state
    for part in subtask_files(manifest, layout.operator):
        files = tuple(file for file in part.files if name in file.states)
        if files and part.merged and not layout.in_chunks:
            found += [ReadPart((file,), part.key_groups) for file in files]
        elif files:
            found.append(ReadPart(files, part.key_groups))
    return found


@dataclass(frozen=True)
class Reading:
    """A state that is read; travels to the workers."""

    root: str
    layout: StateLayout
    parts: tuple[ReadPart, ...]
    key_type: KeyType = field(default_factory=lambda: NOTHING)
    map_key_type: KeyType = field(default_factory=lambda: NOTHING)
    open_pickles: bool = False
    as_text: tuple[str, ...] = ()
    value_type: pa.DataType | None = None
    """What opened pickles are to be laid out as, if not as text."""
    for_change: bool = False
    """Whether each row must lead back to where it is stored."""

    @property
    def stored_keys(self) -> bool:
        """Whether keys are given as they are stored, since no type says all of them."""
        return self.for_change and not is_whole(self.key_type)

    @property
    def stored_map_keys(self) -> bool:
        return self.for_change and not is_whole(self.map_key_type)

    @property
    def schema(self) -> pa.Schema:
        schema = self._columns().schema
        if self.value_type is not None:
            at = schema.get_field_index("value")
            schema = schema.set(at, pa.field("value", self.value_type))
        return schema

    def _columns(self) -> RowColumns:
        key_type = BYTES if self.stored_keys else self.key_type
        map_key_type = BYTES if self.stored_map_keys else self.map_key_type
        found = keyed_columns(self.layout, key_type, map_key_type, self.open_pickles)
        if self.for_change and self.layout.per_window:
            found = found.with_namespace()
        return found.as_text(*self.as_text)

    def batches(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the parts whose numbers come in."""
        columns, schema = self._columns(), self.schema
        fs, root = filesystem_for(self.root)
        only = self.layout.operator, self.layout.state
        for batch in ids:
            for number in batch.column(0).to_pylist():
                part = self.parts[number]
                entries = live_entries(fs, root, part.files, part.key_groups, only)
                rows = map(self._row, self.layout.rows(entries, self.open_pickles))
                for some in in_parts(rows, _BATCH):
                    yield self._batch(columns, schema, some)

    def _row(self, found: tuple[Place, StateRow]) -> StateRow:
        place, row = found
        if not self.for_change:
            return row
        # Only of states that are declared by users: group, key, namespace, and a map's key.
        if self.stored_keys:
            row = row._replace(key=place[1])
        if self.stored_map_keys and self.layout.form == "map":
            row = row._replace(map_key=place[3])
        return row._replace(namespace=place[2])

    def _batch(
        self, columns: RowColumns, schema: pa.Schema, rows: Sequence[StateRow]
    ) -> pa.RecordBatch:
        if self.value_type is None:
            return columns.batch(rows)
        values = pa.array([fitted(row.value, self.value_type) for row in rows], self.value_type)
        found = columns.batch([row._replace(value=None) for row in rows])
        at = schema.get_field_index("value")
        arrays = [values if i == at else column for i, column in enumerate(found.columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def key_types(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The types of the keys in each part, as JSON."""
        for batch in ids:
            for number in batch.column(0).to_pylist():
                texts = [self.types_in(file) for file in self.parts[number].files]
                yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["types"])

    def types_in(self, file: FileInfo) -> str:
        """The types of the keys in a file, as JSON. Looks at the keys alone; the content of files
        is checked when the rows are read."""
        fs, root = filesystem_for(self.root)
        layout = self.layout
        names = ["namespace" if layout.key_in_namespace else "key"]
        if layout.form == "map":
            names.append("map_key")
        found: list[KeyType] = [NOTHING, NOTHING]
        with fs.open_read(os.path.join(root, file.path)) as source:
            table = pq.ParquetFile(source)
            for batch in table.iter_batches(
                columns=["operator", "state", "value", *names], use_threads=False
            ):
                wanted = _of_state(batch, layout)
                for at, name in enumerate(names):
                    found[at] = common_type(found[at], _type_of(wanted.column(name)))
        return json.dumps(found)


def _of_state(batch: pa.RecordBatch, layout: StateLayout) -> pa.RecordBatch:
    named = pc.and_(
        pc.equal(batch.column("operator"), layout.operator),
        pc.equal(batch.column("state"), layout.state),
    )
    return batch.filter(pc.and_(named, pc.is_valid(batch.column("value"))))


def _type_of(keys: pa.Array) -> KeyType:
    """Most columns have keys of one kind, which their first bytes tell."""
    if not len(keys):
        return NOTHING
    tags = pc.unique(pc.binary_slice(keys, 0, 1)).to_pylist()
    longest = pc.max(pc.binary_length(keys)).as_py()
    if tags == [b"s"] or tags == [b"b"] or (tags == [b"i"] and longest < _SHORT_INTEGER):
        return common_type_of([keys[0].as_py()])
    return common_type_of(keys.to_pylist())


def joined_types(texts: Sequence[str]) -> tuple[KeyType, KeyType]:
    """The types of all parts together."""
    key: KeyType = NOTHING
    map_key: KeyType = NOTHING
    for text in texts:
        one, other = json.loads(text)
        key, map_key = common_type(key, one), common_type(map_key, other)
    return key, map_key


def fitted(value: Any, type_: pa.DataType) -> Any:
    """Any object as what Arrow takes for a type: the fields of a struct may be those of a dict, of
    a tuple, or attributes."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {field.name: fitted(_part(value, i, field.name), field.type)
                for i, field in enumerate(type_)}  # fmt: skip
    if pa.types.is_list(type_):
        return [fitted(element, type_.value_type) for element in value]
    if pa.types.is_map(type_):
        return [(fitted(k, type_.key_type), fitted(v, type_.item_type)) for k, v in value.items()]
    return repr(value) if pa.types.is_string(type_) and not isinstance(value, str) else value


def _part(value: Any, position: int, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, Row) and value.get_field_names() is not None:
        return value[name]
    if isinstance(value, tuple | list | Row) and not hasattr(value, name):
        return value[position]
    return getattr(value, name)
