"""The store for state beyond memory: RocksDB, opened for writing only while changes are applied.

Any number of processes may read while none or one writes. A reader is a read-only handle on the
files of one moment; when the writer has since deleted one of them in a compaction, the reader opens
again, and goes on if the store still has the version that it read from.

Writing goes past RocksDB's log: a batch lands in one memory table and is flushed to one synced
file before `apply` returns, so a killed writer or a power loss leaves the version before or the one
after. Blocks carry checksums; a store that is found damaged is deleted and rebuilt.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rocksdict import AccessType, Rdict, ReadOptions, WriteBatch, WriteOptions

from penstock.errors import StateError, StoreLostError
from penstock.storage.entries import RESERVED
from penstock.storage.file_lock import FileLock
from penstock.storage.rocksdb_options import store_options
from penstock.storage.store_records import (
    STATES_PREFIX,
    VERSION_KEY,
    decode_names,
    encode_names,
    new_states,
)

# More than this is not held in one batch: the store loses its version until the last part is in.
BATCH_BYTES = 32 << 20

_Signature = tuple[str, int, int]


def _write_options() -> WriteOptions:
    options: Any = WriteOptions()
    # A property in the library, a method in its type stubs.
    options.disable_wal = True
    return options  # type: ignore[no-any-return]


class RocksdbStore:
    def __init__(self, path: str, *, batch_bytes: int = BATCH_BYTES) -> None:
        os.makedirs(path, exist_ok=True)
        self._path = os.path.realpath(path)
        self._db_path = os.path.join(self._path, "db")
        self._batch_bytes = batch_bytes
        self._lock = FileLock(os.path.join(self._path, "writer.lock"))
        self._reader: Rdict | None = None
        # What the reader was opened on; None while there is no snapshot.
        self._opened: tuple[_Signature | None, str | None] | None = None

    def version(self) -> str | None:
        if self._opened is None or self._opened[0] != self._signature():
            self.release()
            self._open_reader()
        assert self._opened is not None
        return self._opened[1]

    def get(self, key: bytes) -> bytes | None:
        reader = self._snapshot()
        if reader is None:
            return None
        try:
            return reader.get(key)
        except Exception:
            reader = self._reopened()
        try:
            return None if reader is None else reader.get(key)
        except Exception as error:
            raise self._removed(error) from error

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return self._range(max(prefix, start), _end_of(prefix))

    def _range(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        reader = self._snapshot()
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        failed = False
        while reader is not None:
            try:
                rows = reader.iter(options)
                rows.seek(start)
                while rows.valid():
                    key = rows.key()
                    yield key, rows.value()
                    if self._reader is not reader:
                        raise _ScanEndedError
                    start = key + b"\0"
                    rows.next()
                # An iterator that meets a lost file just ends; only this call tells.
                rows.status()
                return
            except _ScanEndedError:
                raise StateError(
                    f"the store at {self._path} was written to during a scan; finish the scan first"
                ) from None
            except Exception as error:
                if failed:
                    raise self._removed(error) from error
                failed = True
                reader = self._reopened()

    def apply(self, changes: Iterable[tuple[bytes, bytes | None]], version: str) -> None:
        with self._writer() as db:
            batch, size, limit = WriteBatch(raw_mode=True), 0, self._batch_bytes
            put, delete = batch.put, batch.delete
            for key, value in changes:
                if value is None:
                    delete(key)
                    size += len(key)
                else:
                    put(key, value)
                    size += len(key) + len(value)
                if size > limit:
                    delete(VERSION_KEY)
                    db.write(batch, _write_options())
                    batch, size = WriteBatch(raw_mode=True), 0
                    put, delete = batch.put, batch.delete
            put(VERSION_KEY, version.encode())
            db.write(batch, _write_options())

    def reset(self) -> None:
        self.release()
        with self._lock.held():
            shutil.rmtree(self._db_path, ignore_errors=True)

    def register_states(self, names: Mapping[bytes, tuple[str, str]]) -> None:
        fresh = new_states(self.states(), names)
        if not fresh:
            return
        with self._writer() as db:
            batch = WriteBatch(raw_mode=True)
            for state_id, name in fresh.items():
                batch.put(STATES_PREFIX + state_id, encode_names(name))
            db.write(batch, _write_options())

    def states(self) -> dict[bytes, tuple[str, str]]:
        start = len(STATES_PREFIX)
        found = self._range(STATES_PREFIX, _successor(STATES_PREFIX))
        return {key[start:]: decode_names(value) for key, value in found}

    def exclusive(self) -> AbstractContextManager[None]:
        return self._lock.held()

    def release(self) -> None:
        reader, self._reader, self._opened = self._reader, None, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        self.release()

    @contextmanager
    def _writer(self) -> Iterator[Rdict]:
        self.release()
        with self._lock.held():
            try:
                db = Rdict(self._db_path, store_options())
                try:
                    yield db
                    db.flush()
                    _settle(db)
                finally:
                    db.close()
            except Exception as error:
                # RocksDB's errors are bare; the others come from reading the changes.
                if type(error) is not Exception:
                    raise
                self._remove_damaged(error)
                raise self._unusable(error) from error

    def _snapshot(self) -> Rdict | None:
        if self._opened is None:
            self._open_reader()
        return self._reader

    def _reopened(self) -> Rdict | None:
        """A new reader on the version that the lost one had."""
        assert self._opened is not None
        before = self._opened[1]
        self.release()
        self._open_reader()
        assert self._opened is not None
        if self._opened[1] != before:
            now = self._opened[1]
            self.release()
            raise StoreLostError(
                f"the store at {self._path} went from version {before} to {now} while it was "
                "read; the task must be tried again"
            )
        return self._reader

    def _open_reader(self) -> None:
        # A writer may replace files between our reading of the list and our opening of them.
        for _ in range(3):
            try:
                return self._try_open_reader()
            except Exception:
                time.sleep(0.002)
        with self._lock.held():
            try:
                self._try_open_reader()
            except Exception as error:
                self._remove_damaged(error)
                self._opened = (None, None)

    def _try_open_reader(self) -> None:
        signature = self._signature()
        if signature is None:
            self._opened = (None, None)
            return
        reader = Rdict(
            self._db_path,
            store_options(),
            access_type=AccessType.read_only(error_if_log_file_exist=False),
        )
        data = reader.get(VERSION_KEY)
        self._reader = reader
        self._opened = (signature, None if data is None else data.decode())

    def _removed(self, error: Exception) -> StoreLostError:
        """What a reader raises that failed twice at one version: no writer has taken a file away,
        so the store is damaged, and goes."""
        opened = self._opened
        self.release()
        with self._lock.held():
            # Another process may have replaced it meanwhile.
            if opened is not None and opened[0] == self._signature():
                self._remove_damaged(error)
        return self._unusable(error)

    def _remove_damaged(self, error: Exception) -> None:
        """No other process writes now, so what cannot be used is broken, unless we lack means."""
        if "No space left" in str(error) or "Too many open files" in str(error):
            raise self._unusable(error) from error
        shutil.rmtree(self._db_path, ignore_errors=True)

    def _unusable(self, error: Exception) -> StoreLostError:
        return StoreLostError(
            f"the store at {self._path} cannot be used: {error}; the task can be tried again, "
            "a damaged store is rebuilt from the checkpoint"
        )

    def _signature(self) -> _Signature | None:
        """Changes whenever the set of files changes: cheaper than opening the store to look."""
        try:
            with open(os.path.join(self._db_path, "CURRENT"), encoding="latin-1") as current:
                manifest = current.read().strip()
        except FileNotFoundError:
            return None
        try:
            stat = os.stat(os.path.join(self._db_path, manifest))
        except (OSError, ValueError):
            # Being replaced just now, or damaged: opening will tell.
            return manifest, 0, 0
        return manifest, stat.st_ino, stat.st_size


class _ScanEndedError(Exception):
    pass


def _settle(db: Rdict) -> None:
    """Wait for compactions: they would be cancelled at closing, and begun again each time."""
    while db.property_int_value("rocksdb.num-running-compactions") or db.property_int_value(
        "rocksdb.compaction-pending"
    ):
        time.sleep(0.002)


def _end_of(prefix: bytes) -> bytes:
    return _successor(prefix) if prefix else RESERVED


def _successor(prefix: bytes) -> bytes:
    """The smallest key above all that start with `prefix` (which is below the reserved ones)."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,))
