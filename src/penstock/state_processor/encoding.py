"""What Spark's tasks do to turn rows of a DataFrame into entries of a state.

An entry travels as its packed key, by which files are sorted, and its value. What is wrong with a
row travels as text: an error raised in a task would come back as a trace of Spark's.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.common._type_plain import pickle_bytes
from penstock.common.types import make_row
from penstock.datastream.window import TimeWindow
from penstock.errors import InvalidArgumentError, PenstockError, short_repr
from penstock.state.arrow_values import from_arrow
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import check_stream_key, encode_key, encode_map_key
from penstock.state.list_state import packed_chunk
from penstock.state.stored_values import stored_type
from penstock.state.windows import window_bytes
from penstock.storage.columns import binary_array
from penstock.storage.entries import pack_key, state_id

ENTRIES = pa.schema(
    [
        pa.field("subtask", pa.int32()),
        pa.field("packed", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("error", pa.string()),
    ]
)
ENTRIES_DDL = "subtask int, packed binary, value binary, error string"
# A list that was made here is older than anything that a job adds to it.
_FIRST_CHUNK = bytes(8)
_PICKLED = "pickled"


EncodedEntry = tuple[int, bytes, bytes | None, str | None]
"""Subtask, packed key, value; or what went wrong."""


def problem(error: PenstockError) -> EncodedEntry:
    """What went wrong, in the place of entries."""
    return 0, b"", None, json.dumps([type(error).__name__, str(error)])


def entries_batch(rows: list[EncodedEntry]) -> pa.RecordBatch:
    subtasks, packed, values, errors = zip(*rows, strict=True) if rows else ((), (), (), ())
    arrays = [
        pa.array(subtasks, pa.int32()),
        binary_array(packed),
        pa.array(values, pa.binary()),
        pa.array(errors, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ENTRIES)


@dataclass(frozen=True)
class Encoding:
    """How the rows of one frame become entries; travels to the workers.

    A frame has the columns ``key``, ``value`` and, as the state needs them, ``map_key``,
    ``namespace``, ``window_start``, ``window_end``, ``last_used``.
    """

    operator: str
    state: str
    kind: str
    type: Mapping[str, Any]
    """Of a value, an element, a map's value."""
    max_parallelism: int
    parallelism: int
    now: int | None = None
    """With a time to live: the time at which values count as used."""
    key_type: Mapping[str, Any] | None = None
    """None makes tuples of structs, and takes all else as it is."""
    map_key_type: Mapping[str, Any] | None = None
    as_read: bool = False
    """Whether the frame is one that was read, so that its bytes may be pickles, and the types of
    keys are what these have in common."""
    stored_keys: bool = False
    """Whether keys are bytes as they are stored."""
    stored_map_keys: bool = False

    def batches(self, frames: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for frame in frames:
            yield entries_batch(list(self._entries(frame)))

    def _entries(self, frame: pa.RecordBatch) -> Iterator[EncodedEntry]:
        names = frame.schema.names
        columns = {n: c.to_pylist() for n, c in zip(names, frame.columns, strict=True)}
        nothing = [None] * frame.num_rows
        keys, values = columns["key"], columns["value"]
        map_keys, used = columns.get("map_key", nothing), columns.get("last_used", nothing)
        windows = _namespaces(columns, nothing)
        groups, parallelism = self.max_parallelism, self.parallelism
        state = state_id(self.operator, self.state)
        rows = zip(keys, map_keys, values, used, windows, strict=True)
        key: Any = None
        try:
            for key, map_key, value, at, namespace in rows:
                if self.kind == "list" and not value:
                    continue  # an empty list is none
                key_bytes = self._key(key)
                group = key_group_of(key_bytes, groups)
                inner = self._map_key(map_key)
                data = self._list(value, at) if self.kind == "list" else self._value(value, at)
                packed = pack_key(group, state, key_bytes, namespace, inner)
                yield subtask_of(group, groups, parallelism), packed, data, None
        except (PenstockError, ValueError, TypeError, OverflowError) as error:
            yield problem(InvalidArgumentError(f"{error} (in the row of key {short_repr(key)})"))

    def _key(self, value: Any) -> bytes:
        if self.stored_keys and value is not None:
            return bytes(value)
        key = self._adapt_key(value)
        check_stream_key(key)
        return encode_key(key)

    def _map_key(self, value: Any) -> bytes:
        if self.kind != "map":
            return _FIRST_CHUNK if self.kind == "list" else b""
        if value is None:
            raise ValueError("the key of a map's entry is null; leave the row out")
        if self.stored_map_keys:
            return bytes(value)
        return encode_map_key(self._adapt_map_key(value))

    def _value(self, value: Any, used: int | None) -> bytes:
        if value is None:
            raise ValueError("the value is null, which no state can hold; leave the row out")
        stamp = b"" if self.now is None else (used or self.now).to_bytes(8, "big")
        return stamp + self._dump(value)

    def _list(self, values: Any, used: list[int] | None) -> bytes:
        if used is not None and len(used) != len(values):
            used = None  # elements have been added or removed
        stamps: Iterable[int | None] = used if used is not None else [None] * len(values)
        return packed_chunk(map(self._value, values, stamps))

    @cached_property
    def _adapt_key(self) -> Callable[[Any], Any]:
        return key_adapter(self.key_type)

    @cached_property
    def _adapt_map_key(self) -> Callable[[Any], Any]:
        if self.as_read or self.map_key_type is None or self.map_key_type["kind"] == _PICKLED:
            return key_adapter(self.map_key_type)
        adapt = from_arrow(self.map_key_type)
        convert = stored_type(self.map_key_type).converter()
        return adapt if convert is None else lambda value: convert(adapt(value))

    @cached_property
    def _dump(self) -> Callable[[Any], bytes]:
        if self.type["kind"] == _PICKLED and not self.as_read:
            return pickle_bytes
        type_info = stored_type(self.type).as_kept()
        adapt, dumps = from_arrow(self.type), type_info.serializer()[0]
        convert = type_info.converter()
        if convert is None:
            return lambda value: dumps(adapt(value))
        return lambda value: dumps(convert(adapt(value)))


def _namespaces(columns: Mapping[str, list[Any]], nothing: list[None]) -> Iterable[bytes]:
    """The windows of rows: as they are stored if they came from there, else of start and end."""
    if not columns.keys() & {"namespace", "window_start"}:
        return [b""] * len(nothing)
    stored = columns.get("namespace", nothing)
    starts, ends = columns.get("window_start", nothing), columns.get("window_end", nothing)
    return map(_namespace, stored, starts, ends)


def _namespace(stored: bytes | None, start: int | None, end: int | None) -> bytes:
    if stored is not None:
        return bytes(stored)
    if start is None or end is None:
        return b""
    return window_bytes(TimeWindow(start, end))


def key_adapter(described: Mapping[str, Any] | None) -> Callable[[Any], Any]:
    """From what Arrow gives to the key that it stands for."""
    if described is None:
        return _plain_key
    kind = described["kind"]
    if kind == "tuple":
        parts = [key_adapter(part) for part in described["elements"]]
        return lambda value: tuple(adapt(value[f"f{i}"]) for i, adapt in enumerate(parts))
    if kind == "row":
        fields = [(f["name"], key_adapter(f["type"])) for f in described["fields"]]
        names = tuple(name for name, _ in fields)
        return lambda value: make_row(names, [adapt(value[name]) for name, adapt in fields])
    if kind == "big_int":
        return int
    if kind in ("sql_time", "local_time"):
        return dt.time.fromisoformat
    return _plain_key


def _plain_key(value: Any) -> Any:
    """A struct as a tuple, as keys of several fields are."""
    if isinstance(value, dict):
        return tuple(_plain_key(part) for part in value.values())
    return value
