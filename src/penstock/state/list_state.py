"""List state: stored in chunks, one for each snapshot that appended, so that adding to a long list
writes what was added and not the list. Chunks are numbered in the order of time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.datastream.state import ListState
from penstock.errors import InvalidArgumentError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.live import dump_value
from penstock.state.ttl import Lifetime, Stamped
from penstock.storage.entries import Entry

_LENGTH = struct.Struct(">I")
# Reading a list with more chunks than this writes it back as one.
_MANY_CHUNKS = 64


class _List:
    """What is known of one key's list: its stored part if it was read, and what was appended."""

    __slots__ = ("appended", "chunks", "replaced", "stored")

    def __init__(self) -> None:
        self.stored: list[Any] | None = None
        self.chunks = 0
        self.appended: list[Any] = []
        self.replaced = False


class LiveListState(ListState[Any]):
    """With a lifetime, every element is kept with the time of its last use."""

    def __init__(
        self,
        name: str,
        scope: KeyScope,
        base: StateBase,
        serializer: tuple[Callable[[Any], bytes], Callable[[bytes], Any]],
        convert: Callable[[Any], Any] | None,
        lifetime: Lifetime | None,
        chunk_number: Callable[[], int],
    ) -> None:
        self.name = name
        self._scope = scope
        self._base = base
        self._dumps, self._loads = serializer
        self._convert = convert
        self._lifetime = lifetime
        self._chunk_number = chunk_number
        self._lists: dict[Any, _List] = {}
        self._dirty: set[Any] = set()

    def get(self) -> Iterable[Any]:
        found = self._read(self._current())
        if self._lifetime is None:
            return list(found)
        return self._fresh(found, self._lifetime)

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        self._current().appended.extend(self._checked(values))
        self._dirty.add(self._scope.key)

    def update(self, values: list[Any]) -> None:
        checked = self._checked(values)
        current = self._current()
        current.stored = []
        current.appended = checked
        current.replaced = True
        self._dirty.add(self._scope.key)

    def clear(self) -> None:
        self.update([])

    @property
    def pending(self) -> int:
        return len(self._dirty)

    def snapshot(self, keep: int) -> list[Entry]:
        entries: list[Entry] = []
        chunk = self._chunk_number().to_bytes(8, "big")
        for key in self._dirty:
            entries.extend(self._changes(key, self._lists[key], chunk))
        self._dirty.clear()
        if len(self._lists) > keep:
            self._lists.clear()
        return entries

    def _changes(self, key: Any, current: _List, chunk: bytes) -> Iterable[Entry]:
        address = self._base.address(self.name, key)
        if current.replaced:
            for old, _ in self._base.scan(address):
                if old != chunk or not current.appended:
                    yield address.entry(None, old)
            current.chunks = 0
        if current.appended:
            yield address.entry(self._pack(current.appended), chunk)
            current.chunks += 1
        if current.stored is not None:
            current.stored.extend(current.appended)
        current.appended = []
        current.replaced = False

    def _current(self) -> _List:
        key = self._scope.key
        found = self._lists.get(key)
        if found is None:
            found = self._lists[key] = _List()
        return found

    def _read(self, current: _List) -> list[Any]:
        if current.stored is None:
            current.stored, current.chunks = [], 0
            for _, raw in self._base.scan(self._base.address(self.name, self._scope.key)):
                current.stored.extend(self._unpack(raw))
                current.chunks += 1
        if current.chunks > _MANY_CHUNKS and not current.replaced:
            current.appended = current.stored + current.appended
            current.stored = []
            current.replaced = True
            self._dirty.add(self._scope.key)
        return current.stored + current.appended

    def _fresh(self, found: list[Stamped], lifetime: Lifetime) -> list[Any]:
        seen, kept, changed = [], [], False
        for stamped in found:
            value, keep, new = lifetime.read(stamped)
            changed = changed or new
            if keep is not None:
                kept.append(keep)
            if keep is not None or value is not None:
                seen.append(value)
        if changed:
            current = self._current()
            current.stored, current.appended, current.replaced = [], list(kept), True
            self._dirty.add(self._scope.key)
        return seen

    def _checked(self, values: Iterable[Any]) -> list[Any]:
        values = [None] if values is None else list(values)
        if any(value is None for value in values):
            raise InvalidArgumentError(
                f"list state {self.name!r} cannot hold None; leave it out or use another value"
            )
        if self._convert is not None:
            values = [self._convert(value) for value in values]
        if self._lifetime is not None:
            values = [self._lifetime.stamp(value) for value in values]
        return values

    def _pack(self, values: list[Any]) -> bytes:
        parts = []
        for value in values:
            data = dump_value(self.name, self._dumps, value)
            parts.append(_LENGTH.pack(len(data)))
            parts.append(data)
        return b"".join(parts)

    def _unpack(self, raw: bytes) -> Iterable[Any]:
        return map(self._loads, packed_elements(raw))


def packed_elements(chunk: bytes) -> Iterator[bytes]:
    """The elements of a stored chunk, each as its own bytes."""
    at = 0
    while at < len(chunk):
        (length,) = _LENGTH.unpack_from(chunk, at)
        at += 4 + length
        yield chunk[at - length : at]
