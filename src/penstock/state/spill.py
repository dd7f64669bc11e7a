"""Changes of the running epoch that no longer fit in memory, kept in a local store of their own.

They are in the epoch's segment files already; this is only how the rest of the epoch reads them.
A change shadows the acknowledged value below it, a removal too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.state.rewriting import Readable
from penstock.storage.entries import Entry
from penstock.storage.store import Store

_GONE, _THERE = b"\x00", b"\x01"


class Spill:
    """An overlay over a store. Empty, and without a store of its own, until it is needed."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._store: Store | None = None

    def __bool__(self) -> bool:
        return self._store is not None

    def add(self, entries: Iterable[Entry]) -> None:
        if self._store is None:
            self._store = self._open_store()
            self._store.reset()
        changes = (
            (entry.packed(), _GONE if entry.value is None else _THERE + entry.value)
            for entry in entries
        )
        self._store.apply(changes, "spilled")

    def clear(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.reset()
            store.release()

    def holds(self, packed: bytes) -> bool:
        """Whether there is a change of an entry, be it its removal."""
        return self._store is not None and self._store.get(packed) is not None

    def get(self, packed: bytes, below: Readable) -> bytes | None:
        found = self._store.get(packed) if self._store is not None else None
        if found is None:
            return below.get(packed)
        return None if found[:1] == _GONE else found[1:]

    def scan(
        self, prefix: bytes, below: Readable, start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Both layers as one, in order."""
        if self._store is None:
            yield from below.scan(prefix, start)
            return
        lower = below.scan(prefix, start)
        pending = next(lower, None)
        for packed, value in self._store.scan(prefix, start):
            while pending is not None and pending[0] < packed:
                yield pending
                pending = next(lower, None)
            if pending is not None and pending[0] == packed:
                pending = next(lower, None)
            if value[:1] != _GONE:
                yield packed, value[1:]
        while pending is not None:
            yield pending
            pending = next(lower, None)
