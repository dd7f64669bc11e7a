"""Changelog segments and images: Parquet files that any Spark job can read.

One row per entry, sorted by packed key. A file is checked against its checksum before a single row
of it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_128, xxh3_128_hexdigest

from penstock.errors import CheckpointCorruptError, InvalidArgumentError
from penstock.storage.columns import SCHEMA, Columns, from_arrow, to_arrow
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.filesystem import FileSystem

# One row group at most; also what a reader holds of a large file.
GROUP_BYTES = 16 << 20
BATCH_ROWS = 16_384

# Files up to this size are read in one go.
_WHOLE = 8 << 20
_BLOCK = 1 << 20


def write_table_file(
    fs: FileSystem,
    root: str,
    path: str,
    entries: Sequence[Entry] | Columns,
    *,
    kind: FileKind = "segment",
    compression: str | None = None,
) -> FileInfo:
    """Write entries, in any order, to `path` under `root`."""
    columns = (entries if isinstance(entries, Columns) else Columns.of(entries)).sorted()
    if not columns.key:
        raise InvalidArgumentError(f"{path} would have no rows; leave the file out instead")
    data = _encode(columns, compression)
    fs.write(os.path.join(root, path), data)
    return FileInfo(
        path=path,
        rows=len(columns.key),
        bytes=len(data),
        checksum=xxh3_128_hexdigest(data),
        kind=kind,
        states=tuple(sorted(set(zip(columns.operator, columns.state, strict=True)))),
        # Sorted by key group first.
        key_groups=(columns.key_group[0], columns.key_group[-1]),
    )


def _encode(columns: Columns, compression: str | None) -> Any:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        compression=compression or "none",
        use_dictionary=["operator", "state"],
        # Nobody filters by these columns' ranges; the manifest knows the key groups.
        write_statistics=False,
        store_schema=False,
    ) as writer:
        for piece in columns.slices(GROUP_BYTES):
            writer.write_batch(to_arrow(piece))
    return sink.getvalue()


def read_table_file(fs: FileSystem, root: str, info: FileInfo) -> Iterator[list[Entry]]:
    """All entries in order, in batches."""
    for columns in read_columns(fs, root, info):
        yield columns.entries()


def read_columns(fs: FileSystem, root: str, info: FileInfo) -> Iterator[Columns]:
    """The same by column, which is cheaper where no Entry is needed."""
    path = os.path.join(root, info.path)
    try:
        with fs.open_read(path) as file:
            source = _verified(file, path, info)
            # Threads would cost more than they bring, and the other cores have tasks.
            table = pq.ParquetFile(source, read_dictionary=["operator", "state"])
            for batch in table.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                yield from_arrow(batch)
    except FileNotFoundError as error:
        raise CheckpointCorruptError.of(path, "the file is missing") from error
    except pa.ArrowInvalid as error:
        raise CheckpointCorruptError.of(path, str(error)) from error


def check_file(fs: FileSystem, root: str, info: FileInfo) -> None:
    """Refuse a file that is not as it was written."""
    path = os.path.join(root, info.path)
    try:
        with fs.open_read(path) as file:
            _verified(file, path, info)
    except FileNotFoundError as error:
        raise CheckpointCorruptError.of(path, "the file is missing") from error


def _verified(file: BinaryIO, path: str, info: FileInfo) -> Any:
    """Something for Parquet to read from, whose checksum was right."""
    if info.bytes <= _WHOLE:
        data = file.read()
        _check(path, info, len(data), xxh3_128_hexdigest(data))
        return pa.BufferReader(data)
    checksum, size = xxh3_128(), 0
    while block := file.read(_BLOCK):
        checksum.update(block)
        size += len(block)
    _check(path, info, size, checksum.hexdigest())
    file.seek(0)
    return pa.PythonFile(file, mode="r")


def _check(path: str, info: FileInfo, size: int, checksum: str) -> None:
    if size != info.bytes:
        raise CheckpointCorruptError.of(path, f"it has {size} bytes instead of {info.bytes}")
    if checksum != info.checksum:
        raise CheckpointCorruptError.of(path, f"checksum {checksum} instead of {info.checksum}")
