"""The newest row of each key, from sorted files of several ages, by Arrow's kernels.

`pyarrow.compute` takes a while to import, so this is for the driver's background work, not for
tasks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.storage.columns import SCHEMA, binary_array, from_arrow, numbers
from penstock.storage.entries import Entry, state_id, uvarint
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import FileSystem
from penstock.storage.row_groups import cut
from penstock.storage.runs import sorted_runs
from penstock.storage.table_file import read_batches

# The names of a state are one number here: the place of both in `Merge.states`.
_VALUE = 5
_WORKING = pa.schema([SCHEMA.field(0), pa.field("number", pa.int32()), *list(SCHEMA)[3:]])
# Neither this nor any other scalar or array is made by ``pa.scalar`` or ``pa.array``, which import
# pandas.
_NOTHING = binary_array([b""])[0]


@dataclass
class Merge:
    """Merges files, oldest first, and knows the states that it has met."""

    fs: FileSystem
    root: str
    key_groups: tuple[int, int] | None = None
    """Only these."""
    tombstones: bool = True
    """Whether the result says what was removed."""
    states: dict[tuple[str, str], int] = field(default_factory=dict)

    def rows(self, files: Sequence[FileInfo]) -> Iterator[pa.RecordBatch]:
        """The newest row of each key, in the order of the packed keys, without names of states.

        In memory is a batch of each run: rows up to the first of their last keys are all there,
        so these are merged, and the rest waits for what comes.
        """
        runs = [_Run(self._batches(run), self) for run in reversed(sorted_runs(files))]
        while runs := [run for run in runs if run.fill()]:
            if len(runs) == 1:
                batch = runs[0].take_all()
            else:
                bound = min(run.last() for run in runs)
                batch = _newest([run.take(bound) for run in runs])
            if not self.tombstones:
                batch = batch.filter(batch.column(_VALUE).is_valid())
            if batch.num_rows:
                yield batch

    def finished(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[tuple[str, str]]]:
        """The rows as files hold them, with names of states; and which states these are."""
        key_group, number, *others = rows.columns
        encoded, names = number.dictionary_encode(), list(self.states)
        found = [names[number] for number in encoded.dictionary.to_pylist()]
        named = [_named(encoded.indices, column) for column in zip(*found, strict=True)]
        batch = pa.RecordBatch.from_arrays([key_group, *named, *others], schema=SCHEMA)
        return batch, found

    def packed_keys(self, rows: pa.RecordBatch) -> Any:
        """See `entries`; as one column."""
        key_group, number, key, namespace, map_key, _ = rows.columns
        ids = binary_array([state_id(*names) for names in self.states])
        return pc.binary_join_element_wise(
            _encoded(key_group, lambda group: group.to_bytes(2, "big")),
            ids.take(number),
            _encoded(pc.binary_length(key), uvarint),
            key,
            _encoded(pc.binary_length(namespace), uvarint),
            namespace,
            map_key,
            _NOTHING,
        )

    def _batches(self, files: Iterable[FileInfo]) -> Iterator[pa.RecordBatch]:
        for file in files:
            for batch in read_batches(self.fs, self.root, file, self.key_groups):
                yield self._numbered(batch)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        key_group, operator, state, *others = batch.columns
        operators, names = operator.dictionary.to_pylist(), state.dictionary.to_pylist()
        width = _integers([len(names)])[0]
        pairs = pc.add(pc.multiply(operator.indices, width), state.indices)
        number = _mapped(pairs, lambda pair: self._number(operators, names, pair))
        return pa.RecordBatch.from_arrays([key_group, number, *others], schema=_WORKING)

    def _number(self, operators: list[str], names: list[str], pair: int) -> int:
        operator, name = divmod(pair, len(names))
        return self.states.setdefault((operators[operator], names[name]), len(self.states))


def live_entries(
    fs: FileSystem,
    root: str,
    files: Sequence[FileInfo],
    key_groups: tuple[int, int] | None = None,
    only: tuple[str, str] | None = None,
) -> Iterator[Entry]:
    """What the files of a subtask amount to, in order: without what was changed or removed since.

    `only` takes one state of one operator, `key_groups` those of the subtask alone.
    """
    merge = Merge(fs, root, key_groups, tombstones=False)
    for rows in merge.rows([file for file in files if only is None or only in file.states]):
        columns = from_arrow(merge.finished(rows)[0])
        yield from (columns if only is None else columns.of_state(*only)).entries()


class _Run:
    """What is left of a sorted sequence of rows, with one batch of it at hand."""

    def __init__(self, batches: Iterator[pa.RecordBatch], merge: Merge) -> None:
        self._batches = batches
        self._merge = merge
        self._rows: pa.RecordBatch | None = None
        self._keys: Any = None

    def fill(self) -> bool:
        """Whether anything is left."""
        while self._rows is None or not self._rows.num_rows:
            self._rows = next(self._batches, None)
            self._keys = None
            if self._rows is None:
                return False
        return True

    def last(self) -> bytes:
        key: bytes = self._packed()[-1].as_py()
        return key

    def take_all(self) -> pa.RecordBatch:
        rows, self._rows = self._rows, None
        return rows

    def take(self, bound: bytes) -> tuple[pa.RecordBatch, Any]:
        """The rows up to this key, and their keys."""
        assert self._rows is not None
        keys = self._packed()
        end = bisect_right(range(len(keys)), bound, key=lambda at: keys[at].as_py())
        taken = self._rows.slice(0, end), keys.slice(0, end)
        self._rows, self._keys = self._rows.slice(end), keys.slice(end)
        return taken

    def _packed(self) -> Any:
        if self._keys is None:
            self._keys = self._merge.packed_keys(self._rows)
        return self._keys


def _newest(parts: Sequence[tuple[pa.RecordBatch, Any]]) -> pa.RecordBatch:
    """Of rows with equal keys that of the first part that has it."""
    parts = [part for part in parts if part[0].num_rows]
    if len(parts) == 1:
        return parts[0][0]
    keys = pa.concat_arrays([keys for _, keys in parts])
    order = pc.sort_indices(keys)  # is stable
    keys = keys.take(order)
    first = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    order = pa.concat_arrays([order.slice(0, 1), order.slice(1).filter(first)])
    return concatenated([rows for rows, _ in parts]).take(order)


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def row_groups(rows: pa.RecordBatch, target: int) -> Iterator[pa.RecordBatch]:
    """Rows, as files hold them, in pieces as a file shall have them."""
    for start, end in cut(Sizes(rows), numbers(rows.column(0)), target):
        yield rows.slice(start, end - start)


class Sizes(Sequence[int]):
    """How many bytes lie before each row: Arrow's offsets, added up where somebody asks."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows: int = rows.num_rows
        self._offsets = [
            memoryview(column.buffers()[1]).cast("i")[column.offset :]
            for column in (rows.column(name) for name in ("key", "map_key", "value"))
        ]

    @property
    def total(self) -> int:
        size: int = self[self._rows] - self[0]
        return size

    def __len__(self) -> int:
        return self._rows + 1

    def __getitem__(self, at: Any) -> Any:
        return sum(offsets[at] for offsets in self._offsets)


def _encoded(column: Any, encode: Callable[[int], bytes]) -> Any:
    """Each number encoded; there are few different ones."""
    found = column.dictionary_encode()
    encoded = binary_array([encode(value) for value in found.dictionary.to_pylist()])
    return encoded.take(found.indices)


def _mapped(column: Any, encode: Callable[[int], int]) -> Any:
    """The same into numbers."""
    found = column.dictionary_encode()
    return _integers([encode(value) for value in found.dictionary.to_pylist()]).take(found.indices)


def _named(numbers_: Any, names: Sequence[str]) -> Any:
    """Numbers as what they number, in a dictionary of its own."""
    known = {name: at for at, name in enumerate(dict.fromkeys(names))}
    indices = _integers([known[name] for name in names]).take(numbers_)
    return pa.DictionaryArray.from_arrays(
        indices, binary_array([name.encode() for name in known], pa.string())
    )


def _integers(values: Sequence[int]) -> Any:
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(array("i", values))])
