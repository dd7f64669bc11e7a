"""List state: stored in chunks, one for each snapshot that appended, so that adding to a long list
writes what was added and not the list. Chunks are numbered in the order of time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.datastream.state import ListState
from penstock.errors import InvalidArgumentError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.live import dump_value, load_value
from penstock.state.rewriting import Rewrite
from penstock.state.ttl import Lifetime, Stamped
from penstock.storage.entries import Entry

_LENGTH = struct.Struct(">I")
# Reading a list with more chunks than this writes it back as one.
_MANY_CHUNKS = 64


class _Change:
    """What an epoch did to one key's list: appended to it, or put another in its place."""

    __slots__ = ("appended", "replaced")

    def __init__(self) -> None:
        self.appended: list[Any] = []
        self.replaced = False


class _Settled:
    """The stored list of one key."""

    __slots__ = ("chunks", "elements")

    def __init__(self, elements: list[Any], chunks: int) -> None:
        self.elements = elements
        self.chunks = chunks


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
        self._changed: dict[Any, _Change] = {}
        self._settled: dict[Any, _Settled] = {}
        self._changed_elements = 0
        self._settled_elements = 0

    def get(self) -> Iterable[Any]:
        found = self._read(self._scope.key)
        if self._lifetime is None:
            return found
        return self._fresh(found, self._lifetime)

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        checked = self._checked(values)
        self._change_of(self._scope.key).appended.extend(checked)
        self._changed_elements += len(checked)

    def update(self, values: list[Any]) -> None:
        self._replace(self._scope.key, self._checked(values))

    def clear(self) -> None:
        self.update([])

    def changed_keys(self) -> list[Any]:
        return list(self._changed)

    @property
    def pending(self) -> int:
        return max(len(self._changed), self._changed_elements)

    @property
    def held(self) -> int:
        return max(len(self._settled), self._settled_elements)

    def forget(self) -> None:
        self._settled.clear()
        self._settled_elements = 0

    def drop_empty(self) -> None:
        for key in [key for key, settled in self._settled.items() if not settled.elements]:
            del self._settled[key]

    def snapshot(self, keep: int) -> Iterator[Entry]:
        chunk = self._chunk_number().to_bytes(8, "big")
        for key, change in self._changed.items():
            # All at once: what is spilled meanwhile is put where they are looked for.
            yield from list(self._changes(key, change, chunk))
            self._settle(key, change)
        self._changed.clear()
        self._changed_elements = 0
        if self.held > keep:
            self.forget()

    def _changes(self, key: Any, change: _Change, chunk: bytes) -> Iterator[Entry]:
        address = self._base.address(self.name, key)
        if change.replaced:
            for old, _ in self._base.scan(address):
                if old != chunk or not change.appended:
                    yield address.entry(None, old)
        if change.appended:
            yield address.entry(self._pack(change.appended), chunk)

    def _settle(self, key: Any, change: _Change) -> None:
        """Only a list that is wholly known is held."""
        if change.replaced:
            self._settled[key] = _Settled([], 0)
        settled = self._settled.get(key)
        if settled is not None and change.appended:
            settled.elements.extend(change.appended)
            settled.chunks += 1
            self._settled_elements += len(change.appended)

    def _change_of(self, key: Any) -> _Change:
        found = self._changed.get(key)
        if found is None:
            found = self._changed[key] = _Change()
        return found

    def _replace(self, key: Any, elements: list[Any]) -> None:
        change = self._change_of(key)
        self._changed_elements += len(elements) - len(change.appended)
        change.appended = elements
        change.replaced = True
        settled = self._settled.pop(key, None)
        if settled is not None:
            self._settled_elements -= len(settled.elements)

    def _read(self, key: Any) -> list[Any]:
        """All elements, in a list of their own."""
        change = self._changed.get(key)
        if change is not None and change.replaced:
            return list(change.appended)
        settled = self._settled.get(key)
        if settled is None:
            settled = self._settled[key] = self._load(key)
            self._settled_elements += len(settled.elements)
        elements = settled.elements + (change.appended if change is not None else [])
        if settled.chunks > _MANY_CHUNKS:
            self._replace(key, list(elements))
        return elements

    def _load(self, key: Any) -> _Settled:
        settled = _Settled([], 0)
        for _, raw in self._base.scan(self._base.address(self.name, key)):
            settled.elements.extend(self._unpack(raw))
            settled.chunks += 1
        return settled

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
            self._replace(self._scope.key, kept)
        return seen

    def _checked(self, values: Iterable[Any]) -> list[Any]:
        elements = checked_elements(self.name, values, self._convert)
        if self._lifetime is not None:
            elements = [self._lifetime.stamp(value) for value in elements]
        return elements

    def _pack(self, values: list[Any]) -> bytes:
        return packed_chunk(dump_value(self.name, self._dumps, value) for value in values)

    def take(self) -> list[Any]:
        """The current key's elements, which are then gone: another key's list will have them."""
        found = self._read(self._scope.key)
        self._replace(self._scope.key, [])
        return found

    def absorb(self, taken: list[Any]) -> None:
        """Add what was taken from another key."""
        if taken:
            self._change_of(self._scope.key).appended.extend(taken)
            self._changed_elements += len(taken)

    def _unpack(self, raw: bytes) -> Iterable[Any]:
        return (load_value(self.name, self._loads, data) for data in packed_elements(raw))


def checked_elements(
    state: str, values: Iterable[Any], convert: Callable[[Any], Any] | None
) -> list[Any]:
    """A list of their own, of the declared type."""
    elements = [None] if values is None else list(values)
    if any(value is None for value in elements):
        raise InvalidArgumentError(
            f"list state {state!r} cannot hold None; leave it out or use another value"
        )
    return elements if convert is None else [convert(value) for value in elements]


def packed_chunk(elements: Iterable[bytes]) -> bytes:
    """Elements as one chunk."""
    parts = []
    for data in elements:
        parts.append(_LENGTH.pack(len(data)))
        parts.append(data)
    return b"".join(parts)


def in_chunks(rewrite: Rewrite) -> Rewrite:
    """The same for chunks as for their elements."""
    return lambda chunk: packed_chunk(map(rewrite, packed_elements(chunk)))


def packed_elements(chunk: bytes) -> Iterator[bytes]:
    """The elements of a stored chunk, each as its own bytes."""
    at = 0
    while at < len(chunk):
        (length,) = _LENGTH.unpack_from(chunk, at)
        at += 4 + length
        yield chunk[at - length : at]
