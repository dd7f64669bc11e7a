"""Changelog segments and images: Parquet files that any Spark job can read.

One row per entry, sorted by packed key. Bytes are checked against their checksum before a single
row is made of them: a small file as a whole, of a large one each row group that is wanted.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from xxhash import xxh3_128, xxh3_128_hexdigest

from penstock.errors import CheckpointCorruptError, InvalidArgumentError
from penstock.storage.columns import SCHEMA, Columns, from_arrow, numbers, to_arrow
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo, FileKind
from penstock.storage.filesystem import FileSystem
from penstock.storage.row_groups import GROUP_BYTES, INDEX_KEY, RowGroup, index_of, index_text

BATCH_ROWS = 16_384

# Files up to this size are read in one go by those who want all of them.
_WHOLE = 8 << 20
_BLOCK = 1 << 20
_MAGIC = b"PAR1"


@dataclass
class ReadMeter:
    """Bytes that were read from files."""

    bytes: int = 0


# Writing


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
    states = set(zip(columns.operator, columns.state, strict=True))
    batches = [to_arrow(piece) for piece in columns.row_groups(GROUP_BYTES)] if states else []
    return write_row_groups(fs, root, path, batches, states, kind=kind, compression=compression)


def write_row_groups(
    fs: FileSystem,
    root: str,
    path: str,
    batches: Sequence[pa.RecordBatch],
    states: Iterable[tuple[str, str]],
    *,
    kind: FileKind,
    compression: str | None,
) -> FileInfo:
    """Write sorted entries, each batch as one row group."""
    if not batches:
        raise InvalidArgumentError(f"{path} would have no rows; leave the file out instead")
    data, footer = _encode(batches, compression)
    fs.write(os.path.join(root, path), data)
    return FileInfo(
        path=path,
        rows=sum(batch.num_rows for batch in batches),
        bytes=len(data),
        checksum=xxh3_128_hexdigest(data),
        kind=kind,
        states=tuple(sorted(states)),
        # Sorted by key group first.
        key_groups=(_key_groups(batches[0])[0], _key_groups(batches[-1])[1]),
        footer=footer,
    )


def _encode(
    batches: Sequence[pa.RecordBatch], compression: str | None
) -> tuple[Any, tuple[int, str] | None]:
    """The bytes of a file; if it has several row groups, length and checksum of its footer."""
    if len(batches) > 1:
        return _encode_groups(batches, compression)
    sink = pa.BufferOutputStream()
    with _writer(sink, compression) as writer:
        writer.write_batch(batches[0])
    return sink.getvalue(), None


def _encode_groups(
    batches: Sequence[pa.RecordBatch], compression: str | None
) -> tuple[Any, tuple[int, str]]:
    # Unlike Arrow's own, it can be read while it is written to.
    sink = io.BytesIO()
    groups: list[RowGroup] = []
    start = 0
    with _writer(sink, compression) as writer:
        for batch in batches:
            writer.write_batch(batch)
            with sink.getbuffer() as data, data[start:] as written:
                checksum = xxh3_128_hexdigest(written)
            groups.append(RowGroup(_key_groups(batch), start, sink.tell() - start, checksum))
            start = sink.tell()
        writer.add_key_value_metadata({INDEX_KEY: index_text(groups)})
    data = sink.getbuffer()
    return data, (len(data) - start, xxh3_128_hexdigest(data[start:]))


def _writer(sink: Any, compression: str | None) -> Any:
    return pq.ParquetWriter(
        sink,
        SCHEMA,
        compression=compression or "none",
        use_dictionary=["operator", "state"],
        # Nobody filters by these columns' ranges; the index knows the key groups.
        write_statistics=False,
        store_schema=False,
    )


def _key_groups(batch: pa.RecordBatch) -> tuple[int, int]:
    found = numbers(batch.column(0))
    return found[0], found[-1]


# Reading


def read_table_file(fs: FileSystem, root: str, info: FileInfo) -> Iterator[list[Entry]]:
    """All entries in order, in batches."""
    for columns in read_columns(fs, root, info):
        yield columns.entries()


def read_columns(
    fs: FileSystem,
    root: str,
    info: FileInfo,
    key_groups: tuple[int, int] | None = None,
    meter: ReadMeter | None = None,
) -> Iterator[Columns]:
    """The same by column, which is cheaper where no Entry is needed."""
    for batch in read_batches(fs, root, info, key_groups, meter):
        yield from_arrow(batch)


def read_batches(
    fs: FileSystem,
    root: str,
    info: FileInfo,
    key_groups: tuple[int, int] | None = None,
    meter: ReadMeter | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows in a range of key groups, read from those parts of the file that hold them."""
    wanted = info.clipped_to(key_groups) if key_groups is not None else info
    if wanted is None:
        return
    path = os.path.join(root, info.path)
    try:
        with fs.open_read(path) as file:
            batches = _batches(file, path, wanted, meter or ReadMeter())
            yield from _within(batches, wanted.key_groups) if wanted.clipped else batches
    except FileNotFoundError as error:
        raise CheckpointCorruptError.of(path, "the file is missing") from error
    except pa.ArrowInvalid as error:
        raise CheckpointCorruptError.of(path, str(error)) from error


def read_whole(fs: FileSystem, root: str, info: FileInfo, meter: ReadMeter | None = None) -> bytes:
    """The bytes of a file, checked."""
    path = os.path.join(root, info.path)
    try:
        with fs.open_read(path) as file:
            return _whole(file, path, info, meter or ReadMeter())
    except FileNotFoundError as error:
        raise CheckpointCorruptError.of(path, "the file is missing") from error


def check_file(fs: FileSystem, root: str, info: FileInfo, copy: str | None = None) -> None:
    """Refuse a file, or a copy of it, that is not as it was written."""
    path = os.path.join(root, info.path)
    checksum, size = xxh3_128(), 0
    try:
        with fs.open_read(copy or path) as file:
            while block := file.read(_BLOCK):
                checksum.update(block)
                size += len(block)
    except FileNotFoundError as error:
        raise CheckpointCorruptError.of(path, "the file is missing") from error
    _check_size(path, info, size)
    _check(path, checksum.hexdigest(), info.checksum)


def _whole(file: BinaryIO, path: str, info: FileInfo, meter: ReadMeter) -> bytes:
    data = file.read()
    meter.bytes += len(data)
    _check_size(path, info, len(data))
    _check(path, xxh3_128_hexdigest(data), info.checksum)
    return data


def _batches(
    file: BinaryIO, path: str, info: FileInfo, meter: ReadMeter
) -> Iterator[pa.RecordBatch]:
    if info.footer is None or (info.bytes <= _WHOLE and not info.clipped):
        data = _whole(file, path, info, meter)
        # Threads would cost more than they bring, and the other cores have tasks.
        table = pq.ParquetFile(pa.BufferReader(data), read_dictionary=["operator", "state"])
        yield from table.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
        return
    source = _Checked(file, path, info, meter)
    table = pq.ParquetFile(
        pa.PythonFile(source, mode="r"),
        metadata=source.metadata,
        read_dictionary=["operator", "state"],
    )
    for number, group in enumerate(source.groups):
        if group.overlaps(info.key_groups):
            source.load(group)
            yield from table.iter_batches(
                batch_size=BATCH_ROWS, row_groups=[number], use_threads=False
            )


class _Checked(io.RawIOBase):
    """The file as Parquet sees it: the one row group that was loaded, checked, and nothing else."""

    def __init__(self, file: BinaryIO, path: str, info: FileInfo, meter: ReadMeter) -> None:
        assert info.footer is not None
        self._file = file
        self._path = path
        self._meter = meter
        self._size = file.seek(0, os.SEEK_END)
        self._at = 0
        self._start = 0
        self._data = b""
        _check_size(path, info, self._size)
        length, checksum = info.footer
        footer = self._read(info.bytes - length, length, checksum)
        self.metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer))
        try:
            self.groups = index_of(self.metadata.metadata)
        except (KeyError, ValueError) as error:
            raise CheckpointCorruptError.of(path, f"its index is unknown: {error!r}") from None

    def load(self, group: RowGroup) -> None:
        self._start = group.offset
        self._data = self._read(group.offset, group.bytes, group.checksum)

    def _read(self, offset: int, length: int, checksum: str) -> bytes:
        self._file.seek(offset)
        data = self._file.read(length)
        self._meter.bytes += len(data)
        _check(self._path, xxh3_128_hexdigest(data), checksum)
        return data

    def read(self, size: int = -1) -> bytes:
        first = self._at - self._start
        if first < 0 or size < 0 or first + size > len(self._data):
            raise CheckpointCorruptError.of(
                self._path, f"its index and its metadata disagree at byte {self._at}"
            )
        self._at += size
        return self._data[first : first + size]

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _within(
    batches: Iterable[pa.RecordBatch], key_groups: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        groups = numbers(batch.column(0))
        first, end = bisect_left(groups, key_groups[0]), bisect_right(groups, key_groups[1])
        if first < end:
            yield batch.slice(first, end - first)


def _check_size(path: str, info: FileInfo, size: int) -> None:
    if size != info.bytes:
        raise CheckpointCorruptError.of(path, f"it has {size} bytes instead of {info.bytes}")


def _check(path: str, checksum: str, expected: str) -> None:
    if checksum != expected:
        raise CheckpointCorruptError.of(path, f"checksum {checksum} instead of {expected}")
