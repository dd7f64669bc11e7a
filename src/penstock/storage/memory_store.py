"""A store in a dict, for unit tests and as the model of what a store does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

from penstock.errors import StateError
from penstock.storage.store_records import new_states


class MemoryStore:
    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._order: list[bytes] | None = None
        self._version: str | None = None
        self._states: dict[bytes, tuple[str, str]] = {}
        self._writes = 0

    def version(self) -> str | None:
        return self._version

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        if self._order is None:
            self._order = sorted(self._data)
        order, writes = self._order, self._writes
        for at in range(bisect_left(order, max(prefix, start)), len(order)):
            if writes != self._writes:
                raise StateError("the store was written to during a scan; finish the scan first")
            if not order[at].startswith(prefix):
                return
            yield order[at], self._data[order[at]]

    def apply(self, changes: Iterable[tuple[bytes, bytes | None]], version: str) -> None:
        data = dict(self._data)
        for key, value in changes:
            if value is None:
                data.pop(key, None)
            else:
                data[key] = value
        self._replace(data, version)

    def reset(self) -> None:
        self._replace({}, None)
        self._states = {}

    def _replace(self, data: dict[bytes, bytes], version: str | None) -> None:
        self._data, self._version, self._order = data, version, None
        self._writes += 1

    def register_states(self, names: Mapping[bytes, tuple[str, str]]) -> None:
        self._states.update(new_states(self._states, names))

    def states(self) -> dict[bytes, tuple[str, str]]:
        return dict(self._states)

    def exclusive(self) -> AbstractContextManager[None]:
        return nullcontext()

    def release(self) -> None:
        pass

    def close(self) -> None:
        pass
