"""Entries by column, and their way into and out of Arrow.

Arrays are made from joined bytes and offsets instead of by ``pa.array``: that is quicker for
bytes, and ``pa.array`` imports pandas on its first call, half a second in a worker's first epoch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, pairwise
from operator import add, gt, itemgetter
from typing import Any, NamedTuple, cast

import pyarrow as pa

from penstock.storage.entries import Entry, pack_key, pack_keys, state_id
from penstock.storage.row_groups import cut

_NAMES = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("key_group", pa.int32(), nullable=False),
        pa.field("operator", _NAMES, nullable=False),
        pa.field("state", _NAMES, nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("namespace", pa.binary(), nullable=False),
        pa.field("map_key", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=True),
    ]
)


class Columns(NamedTuple):
    """The fields of `Entry`, each as a sequence."""

    key_group: Sequence[int]
    operator: Sequence[str]
    state: Sequence[str]
    key: Sequence[bytes]
    namespace: Sequence[bytes]
    map_key: Sequence[bytes]
    value: Sequence[bytes | None]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Columns:
        # A column at a time: to transpose all at once jumps through memory, three times as long.
        return cls(*(list(map(itemgetter(field), entries)) for field in range(len(cls._fields))))

    def entries(self) -> list[Entry]:
        return list(map(Entry._make, zip(*self, strict=True)))

    def packed_keys(self) -> list[bytes]:
        rest = self.key, self.namespace, self.map_key
        if len(set(self.operator)) == 1 == len(set(self.state)):
            return pack_keys(self.key_group, state_id(self.operator[0], self.state[0]), *rest)
        return list(map(pack_key, self.key_group, map(state_id, self.operator, self.state), *rest))

    def sorted(self) -> Columns:
        """In the order of the packed keys."""
        keys = self.packed_keys()
        if not any(map(gt, keys, keys[1:])):
            return self
        in_order = itemgetter(*sorted(range(len(keys)), key=keys.__getitem__))
        return Columns._make(c if _is_constant(c) else in_order(c) for c in self)

    def of_state(self, operator: str, state: str) -> Columns:
        """The rows of one state."""
        if len(set(self.operator)) == 1 == len(set(self.state)):
            only = (self.operator[0], self.state[0]) == (operator, state)
            return self if only else Columns.of(())
        names = zip(self.operator, self.state, strict=True)
        wanted = [pair == (operator, state) for pair in names]
        if all(wanted):
            return self
        return Columns._make(list(compress(column, wanted)) for column in self)

    def row_groups(self, target: int) -> Iterator[Columns]:
        """Sorted rows in pieces of about this size: Arrow's offsets end at 2 GB, readers hold one
        piece, and those who want few key groups read few pieces."""
        keys = map(add, map(len, self.key), map(len, self.map_key))
        values = map(len, _without_none(self.value))
        sizes = list(accumulate(map(add, keys, values), initial=0))
        if sizes[-1] <= target:
            yield self
            return
        for start, end in cut(sizes, self.key_group, target):
            yield Columns._make(column[start:end] for column in self)


def to_arrow(columns: Columns) -> pa.RecordBatch:
    key_groups = pa.py_buffer(array("i", columns.key_group))
    arrays = [
        pa.Array.from_buffers(pa.int32(), len(columns.key), [None, key_groups]),
        _dictionary_array(columns.operator),
        _dictionary_array(columns.state),
        binary_array(columns.key),
        binary_array(columns.namespace),
        binary_array(columns.map_key),
        _nullable_array(columns.value),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def from_arrow(batch: pa.RecordBatch) -> Columns:
    """The batch's two name columns are dictionaries, as in SCHEMA."""
    key_group, operator, state, key, namespace, map_key, value = batch.columns
    return Columns(
        _numbers(key_group),
        _strings(operator),
        _strings(state),
        _bytes(key),
        _bytes(namespace),
        _bytes(map_key),
        _nullable_bytes(value),
    )


def binary_array(values: Sequence[bytes], type_: Any = None, valid: Any = None) -> Any:
    if any(values):
        offsets = array("i", accumulate(map(len, values), initial=0))
    else:
        offsets = array("i", bytes(4 * (len(values) + 1)))
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(type_ or pa.binary(), len(values), buffers)


def _nullable_array(values: Sequence[bytes | None]) -> Any:
    present = _without_none(values)
    if present is values:
        return binary_array(present)
    bits = bytearray(b"\xff" * ((len(values) + 7) // 8))
    for i, value in enumerate(values):
        if value is None:
            bits[i >> 3] &= ~(1 << (i & 7))
    return binary_array(present, valid=pa.py_buffer(bytes(bits)))


def _without_none(values: Sequence[bytes | None]) -> Sequence[bytes]:
    """With nothing for None, of which mostly there is none."""
    if None not in values:
        return cast("Sequence[bytes]", values)
    return [value or b"" for value in values]


def _is_constant(values: Sequence[Any]) -> bool:
    return values[0] == values[-1] and values.count(values[0]) == len(values)


def _dictionary_array(values: Sequence[str]) -> Any:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(values))}
    if len(numbers) > 1:
        indices = array("i", map(numbers.__getitem__, values))
    else:
        indices = array("i", bytes(4 * len(values)))
    index_array = pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(indices)])
    names = binary_array([name.encode() for name in numbers], pa.string())
    return pa.DictionaryArray.from_arrays(index_array, names)


def numbers(column: Any) -> memoryview:
    """The values of an int32 column, where they lie."""
    found = memoryview(column.buffers()[1]).cast("i")
    return found[column.offset : column.offset + len(column)]


def _numbers(column: Any) -> list[int]:
    return numbers(column).tolist()


def _strings(column: Any) -> list[str]:
    names: list[str] = column.dictionary.to_pylist()
    if len(names) == 1:
        return names * len(column)
    return [names[i] for i in _numbers(column.indices)]


def _bytes(column: Any) -> list[bytes]:
    count = len(column)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = memoryview(offset_buffer).cast("i")[column.offset : column.offset + count + 1]
    if count == 0 or offsets[0] == offsets[count]:
        return [b""] * count
    base, end = offsets[0], offsets[count]
    data = bytes(memoryview(data_buffer)[base:end])
    return [data[a - base : b - base] for a, b in pairwise(offsets.tolist())]


def _nullable_bytes(column: Any) -> list[bytes | None]:
    values: list[bytes | None] = list(_bytes(column))
    if column.null_count:
        # By hand, because ``column.is_valid()`` imports pyarrow.compute: 40 ms the first time.
        bits = memoryview(column.buffers()[0])
        first = column.offset
        for at in range(first, first + len(values)):
            if not bits[at >> 3] >> (at & 7) & 1:
                values[at - first] = None
    return values
