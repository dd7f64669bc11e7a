"""The ordered byte store that holds one subtask's acknowledged state, as a protocol.

A store is a cache: the checkpoint is the truth, and any store may be emptied and built anew. It
therefore only promises that what it holds is exactly the version it names. Several processes may
use one path, in turn or at once; one store *object* belongs to one thread.

Reads come from a snapshot: it is taken at the first read after `version`, `apply`, `reset` or
`release`, and what other processes write later is not seen in it. A scan still running when one of
those four is called ends with a StateError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from penstock.errors import InvalidArgumentError
from penstock.storage.lmdb_store import LmdbStore
from penstock.storage.rocksdb_store import RocksdbStore

StoreKind = Literal["hashmap", "rocksdb"]


class Store(Protocol):
    def version(self) -> str | None:
        """The newest version, or None if the store is empty or was left incomplete."""
        ...

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All entries whose key starts with `prefix`, from the key `start` on, in key order."""
        ...

    def apply(self, changes: Iterable[tuple[bytes, bytes | None]], version: str) -> None:
        """Make the changes (None deletes; a later one wins) and name the result, all or nothing.

        A store that cannot hold so many changes in one transaction may instead be left without
        a version when it dies half-way.
        """
        ...

    def reset(self) -> None:
        """Empty the store; its version is then None."""
        ...

    def register_states(self, names: Mapping[bytes, tuple[str, str]]) -> None:
        """Remember which (operator, state) each state id stands for."""
        ...

    def states(self) -> dict[bytes, tuple[str, str]]: ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other writers out, of all processes of this host; may be nested."""
        ...

    def release(self) -> None:
        """Let the read snapshot go; call it when a task is done, so that space can be reused."""
        ...

    def close(self) -> None: ...


def open_store(kind: StoreKind, path: str) -> Store:
    """Open the store of this kind in a local directory, which is made if it is not there."""
    if kind == "hashmap":
        return LmdbStore(path)
    if kind == "rocksdb":
        return RocksdbStore(path)
    raise InvalidArgumentError.of("state backend", "'hashmap' or 'rocksdb'", kind)
