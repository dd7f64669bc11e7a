"""The store for state that fits in memory: LMDB, shared by all processes of a host.

LMDB runs without syncing. A killed process loses nothing by that, since its pages are in the
kernel's cache, and a killed writer's transaction never happened. A power loss or a kernel crash is
different: the page that names the newest tree may have reached the disk before the tree, and LMDB
would not notice. So the id of the machine's boot is kept beside the data, and an environment
written under another boot is deleted and rebuilt from the checkpoint. Where a system has no such
id, LMDB syncs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress

import lmdb
from xxhash import xxh3_128_digest

from penstock.errors import StoreLostError
from penstock.storage.entries import RESERVED
from penstock.storage.file_lock import FileLock
from penstock.storage.lmdb_environment import DAMAGE, INITIAL_MAP_SIZE, Environment
from penstock.storage.store_records import (
    STATES_PREFIX,
    VERSION_KEY,
    decode_names,
    encode_names,
    new_states,
)

# LMDB allows 511 bytes. A longer key is stored as its beginning and a hash (496 bytes, so it
# cannot be mistaken for a short key), with the full key before the value.
SHORT_KEY = 480
_LONG_STORED = SHORT_KEY + 16


def _stored_key(key: bytes) -> bytes:
    return key if len(key) <= SHORT_KEY else key[:SHORT_KEY] + xxh3_128_digest(key)


def _stored_value(key: bytes, value: bytes) -> bytes:
    return len(key).to_bytes(4, "big") + key + value


def _split_value(stored: bytes) -> tuple[bytes, bytes]:
    end = 4 + int.from_bytes(stored[:4], "big")
    return stored[4:end], stored[end:]


class LmdbStore:
    def __init__(self, path: str, *, map_size: int = INITIAL_MAP_SIZE) -> None:
        os.makedirs(path, exist_ok=True)
        self._path = os.path.realpath(path)
        self._map_size = map_size
        self._lock = FileLock(os.path.join(self._path, "writer.lock"))
        self._environment: Environment | None = None
        self._snapshot: lmdb.Transaction[bytes] | None = None
        self._current()

    def version(self) -> str | None:
        self.release()
        try:
            data = self._begin().get(VERSION_KEY)
        except DAMAGE:
            self._discard()
            return None
        return None if data is None else data.decode()

    def get(self, key: bytes) -> bytes | None:
        txn = self._snapshot or self._begin()
        try:
            if len(key) <= SHORT_KEY:
                return txn.get(key)
            return self._get_long(txn, key)
        except lmdb.Error as error:
            raise self._lost(error) from error

    def _get_long(self, txn: lmdb.Transaction[bytes], key: bytes) -> bytes | None:
        stored = txn.get(_stored_key(key))
        if stored is None:
            return None
        full, value = _split_value(stored)
        return value if full == key else None

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        txn = self._snapshot or self._begin()
        try:
            yield from _scan(txn, prefix, start)
        except lmdb.Error as error:
            raise self._lost(error) from error

    def apply(self, changes: Iterable[tuple[bytes, bytes | None]], version: str) -> None:
        self.release()
        environment = self._current()
        environment.make_room()
        try:
            self._write(environment, changes, version)
        except lmdb.MapFullError:
            environment.grow()
            if iter(changes) is changes:
                raise StoreLostError(
                    f"the store at {self._path} had to grow by more than it had free; try again"
                ) from None
            self.apply(changes, version)
        except lmdb.Error as error:
            raise self._lost(error) from error

    def _write(
        self,
        environment: Environment,
        changes: Iterable[tuple[bytes, bytes | None]],
        version: str,
    ) -> None:
        with environment.begin_write() as txn:
            put, delete = txn.put, txn.delete
            for key, value in changes:
                if len(key) <= SHORT_KEY:
                    if value is None:
                        delete(key)
                    else:
                        put(key, value)
                elif value is None:
                    delete(_stored_key(key))
                else:
                    put(_stored_key(key), _stored_value(key, value))
            put(VERSION_KEY, version.encode())

    def reset(self) -> None:
        self.release()
        try:
            self._current().clear()
        except lmdb.Error:
            self._discard()

    def register_states(self, names: Mapping[bytes, tuple[str, str]]) -> None:
        fresh = new_states(self.states(), names)
        if not fresh:
            return
        self.release()
        with self._current().begin_write() as txn:
            for state_id, name in fresh.items():
                txn.put(STATES_PREFIX + state_id, encode_names(name))

    def states(self) -> dict[bytes, tuple[str, str]]:
        txn = self._snapshot or self._begin()
        start = len(STATES_PREFIX)
        with txn.cursor() as cursor:
            cursor.set_range(STATES_PREFIX)
            return {
                key[start:]: decode_names(value)
                for key, value in _until(cursor, STATES_PREFIX[:-1] + b"0")
            }

    def exclusive(self) -> AbstractContextManager[None]:
        return self._lock.held()

    def release(self) -> None:
        if self._snapshot is not None:
            self._snapshot.abort()
            self._snapshot = None

    def close(self) -> None:
        self.release()
        if self._environment is not None:
            self._environment.let_go()
            self._environment = None

    def _begin(self) -> lmdb.Transaction[bytes]:
        self._snapshot = self._current().begin_read()
        return self._snapshot

    def _current(self) -> Environment:
        """The environment that the path names now: it may have been deleted and made anew."""
        environment = self._environment
        if environment is None or not environment.is_current():
            if environment is not None:
                environment.let_go()
            environment = Environment.of(self._path, self._map_size, self._lock)
            self._environment = environment
        return environment

    def _lost(self, error: lmdb.Error) -> StoreLostError:
        """What a failed access becomes; a damaged store is removed, so that a retry rebuilds it."""
        if isinstance(error, DAMAGE):
            with suppress(lmdb.Error):
                self._discard()
            return StoreLostError(
                f"the store at {self._path} was damaged and is removed: {error}; the task can be "
                "tried again, the store is rebuilt from the checkpoint"
            )
        return StoreLostError(
            f"the store at {self._path} cannot be used: {error}; the task can be tried again "
            "once the local disk has space and no other task resizes the store"
        )

    def _discard(self) -> None:
        self.release()
        environment, self._environment = self._environment, None
        with self._lock.held():
            if environment is not None:
                environment.destroy()
            self._current()


def _until(cursor: lmdb.Cursor[bytes], end: bytes) -> Iterator[tuple[bytes, bytes]]:
    for key, value in cursor.iternext():
        if key >= end:
            return
        yield key, value


def _scan(
    txn: lmdb.Transaction[bytes], prefix: bytes, first: bytes
) -> Iterator[tuple[bytes, bytes]]:
    """Entries under a prefix in the order of their full keys, from `first` on.

    Long keys with the same beginning are stored in the order of their hashes, but next to each
    other: such a run is sorted in memory.
    """
    start = prefix[:SHORT_KEY]
    with txn.cursor() as cursor:
        begin = max(start, first[:SHORT_KEY])
        found = cursor.set_range(begin) if begin else cursor.first()
        if not found:
            return
        run: list[tuple[bytes, bytes]] = []
        run_start = b""
        for key, value in _until(cursor, RESERVED):
            if not key.startswith(start):
                break
            if run and not key.startswith(run_start):
                yield from sorted(run)
                run = []
            if len(key) == _LONG_STORED:
                entry = _split_value(value)
                if entry[0].startswith(prefix) and entry[0] >= first:
                    run_start = key[:SHORT_KEY]
                    run.append(entry)
            elif len(prefix) <= SHORT_KEY and key >= first:
                yield key, value
        yield from sorted(run)
