"""What Spark's tasks do to write a savepoint's files: state that stays is read or copied, and all
of a subtask, sorted, becomes its image."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock import errors
from penstock.errors import InvalidArgumentError, PenstockError
from penstock.state.key_groups import subtask_of
from penstock.state.stored_keys import read_key
from penstock.state_processor.encoding import EncodedEntry, entries_batch, problem
from penstock.state_processor.reading import ReadPart
from penstock.storage.checkpoint_layout import STATE, image_name
from penstock.storage.compaction import CompactionPolicy
from penstock.storage.entries import Entry, state_id, unpack_key
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import filesystem_for
from penstock.storage.merging import live_entries
from penstock.storage.table_file import check_file, write_table_file

_BATCH = 10_000
# A row takes some hundred bytes in Python, however few it has in the file.
_PART_ROWS = 250_000
RESULT_DDL = "subtask int, part int, result string"
RESULT = pa.schema(
    [pa.field("subtask", pa.int32()), pa.field("part", pa.int32()), pa.field("result", pa.string())]
)


@dataclass(frozen=True)
class Kept:
    """Entries of a vertex that go into the new savepoint, under other names perhaps."""

    root: str
    parts: tuple[ReadPart, ...]
    names: Mapping[tuple[str, str], tuple[str, str]]
    """Operator and state as they are stored → as they will be; others are left out."""
    max_parallelism: int
    parallelism: int

    def batches(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in ids:
            for number in batch.column(0).to_pylist():
                try:
                    yield from self._kept(self.parts[number])
                except PenstockError as error:
                    yield entries_batch([problem(error)])
                    return

    def _kept(self, part: ReadPart) -> Iterator[pa.RecordBatch]:
        fs, root = filesystem_for(self.root)
        rows: list[EncodedEntry] = []
        for entry in live_entries(fs, root, part.files, part.key_groups):
            name = self.names.get((entry.operator, entry.state))
            if name is None:
                continue
            operator, state = name
            packed = entry._replace(operator=operator, state=state).packed()
            subtask = subtask_of(entry.key_group, self.max_parallelism, self.parallelism)
            rows.append((subtask, packed, entry.value, None))
            if len(rows) >= _BATCH:
                yield entries_batch(rows)
                rows = []
        if rows:
            yield entries_batch(rows)


@dataclass(frozen=True)
class Images:
    """Where the images of one vertex are written."""

    root: str
    epoch: int
    vertex: str
    token: str
    states: tuple[tuple[str, str], ...]

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Entries of whole subtasks come, sorted; the files that they are in go out."""
        fs, root = filesystem_for(self.root)
        names = {state_id(*name): name for name in self.states}
        for subtask, number, entries in _files(_rows(batches), names):
            if isinstance(entries, str):
                yield _result(subtask, -1, {"error": entries})
                return
            name = image_name(self.epoch, self.vertex, subtask, self.token)
            info = write_table_file(
                fs,
                root,
                f"{STATE}/{name}-{number:05d}.parquet",
                entries,
                kind="image",
                compression=CompactionPolicy.compression,
            )
            yield _result(subtask, number, info.to_json())


def _result(subtask: int, part: int, result: Any) -> pa.RecordBatch:
    values = [[subtask], [part], [json.dumps(result)]]
    arrays = [pa.array(v, f.type) for v, f in zip(values, RESULT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


_Row = tuple[int, bytes, bytes, str | None]


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _files(
    rows: Iterable[_Row], names: Mapping[bytes, tuple[str, str]]
) -> Iterator[tuple[int, int, list[Entry] | str]]:
    """Subtask, part and entries of each file; or what is wrong."""
    part: list[Entry] = []
    subtask = number = size = 0
    last: bytes | None = None
    for at, packed, value, error in rows:
        if error is not None:
            yield at, -1, error
            return
        full = size >= CompactionPolicy.part_bytes or len(part) >= _PART_ROWS
        if part and (at != subtask or full):
            yield subtask, number, part
            number = number + 1 if at == subtask else 0
            part, size = [], 0
        elif at != subtask:
            number = 0
        subtask = at
        group, state, key, namespace, map_key = unpack_key(packed)
        entry = Entry(group, *names[state], key, namespace, map_key, value)
        if packed == last:
            yield at, -1, json.dumps([InvalidArgumentError.__name__, str(_twice(entry))])
            return
        last = packed
        part.append(entry)
        size += len(packed) + len(value)
    if part:
        yield subtask, number, part


def _twice(entry: Entry) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"state {entry.state!r} of {entry.operator!r} has two rows for key {read_key(entry.key)!r}"
        f"{_in_a_map(entry)}; drop one, for example with dropDuplicates, or combine them with "
        "groupBy"
    )


def _in_a_map(entry: Entry) -> str:
    return "" if entry.map_key in (b"", bytes(8)) else f" and {read_key(entry.map_key)!r} in it"


@dataclass(frozen=True)
class Copies:
    """Files that stay as they are."""

    source: str
    target: str
    files: tuple[FileInfo, ...]

    def run(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fs, root = filesystem_for(self.source)
        _, target = filesystem_for(self.target)
        for batch in ids:
            for number in batch.column(0).to_pylist():
                file = self.files[number]
                try:
                    check_file(fs, root, file)
                    fs.copy(os.path.join(root, file.path), os.path.join(target, file.path))
                    check_file(fs, target, file)
                except PenstockError as error:
                    yield _result(0, -1, {"error": problem(error)[3]})
                    return
                yield _result(0, number, {})


def check_result(result: Mapping[str, Any]) -> None:
    """Raise what went wrong in a task."""
    if "error" in result:
        name, text = json.loads(result["error"])
        raise getattr(errors, name)(text)
