"""The contents of windows that begin at fixed times, stored in the order of those times.

An entry's key is the window's start, its namespace the key: the windows that are due lie together,
and no timer per key is needed to find them. Beside the contents stands an entry for each window and
key group in which there are any; it tells a new instance which windows are open.

A window that begins and ends within one epoch leaves no trace in the store.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from penstock.state.backend import StateBase
from penstock.state.keys import decode_key
from penstock.state.list_state import in_chunks, packed_chunk, packed_elements
from penstock.state.live import dump_value, load_value
from penstock.state.rewriting import Rewrite
from penstock.state.timers import EXACT_KEYS, time_bytes, time_of
from penstock.storage.entries import Entry, unpack_key

Serializer = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]

_OPEN = b"\x01"


class Pane:
    """The contents of one window, by key."""

    __slots__ = ("changed", "complete", "groups", "settled")

    def __init__(self, groups: set[int]) -> None:
        self.changed: dict[Any, Any] = {}
        """What is new since the last snapshot."""
        self.settled: dict[Any, Any] = {}
        """Stored contents that are also in memory."""
        self.groups = groups
        """The key groups that have stored contents."""
        self.complete = not groups
        """Whether `settled` has all that is stored."""


class PaneTable:
    """One value per window and key."""

    def __init__(
        self, name: str, base: StateBase, key_groups: tuple[int, int], serializer: Serializer
    ) -> None:
        self.name = name
        self._open = f"{name}.open"
        self._base = base
        self._key_groups = key_groups
        self._dumps, self._loads = serializer
        self._panes: dict[int, Pane] | None = None
        self._removals: list[Entry] = []
        self._pending = 0
        self._held = 0

    @property
    def panes(self) -> dict[int, Pane]:
        """The open windows by their start."""
        if self._panes is None:
            self._panes = {}
            for packed, _ in self._base.keys(self._open, self._key_groups):
                found = unpack_key(packed)
                start = time_of(found.key)
                pane = self._panes.setdefault(start, Pane(set()))
                pane.groups.add(found.key_group)
                pane.complete = False
        return self._panes

    def pane(self, start: int) -> Pane:
        panes = self.panes
        found = panes.get(start)
        if found is None:
            found = panes[start] = Pane(set())
        return found

    def find(self, start: int, key: Any) -> Any:
        """What is there of a key that has not changed; None if nothing. It is about to change."""
        self._pending += 1
        return self._find(start, key)

    def _find(self, start: int, key: Any) -> Any:
        pane = self.panes[start]
        found = pane.settled.get(key)
        if found is not None or pane.complete:
            return found
        group, key_bytes = self._base.locate(key)
        if group not in pane.groups:
            return None
        address = self._base.address(self.name, key)
        address.key, address.namespace = time_bytes(start), key_bytes
        raw = self._base.get(address)
        return None if raw is None else load_value(self.name, self._loads, unframed(raw)[1])

    def contents(self, start: int) -> Iterator[tuple[Any, Any]]:
        """Every key of a window, with its value."""
        pane = self.panes[start]
        changed, settled = pane.changed, pane.settled
        yield from changed.items()
        if pane.complete:
            for key, value in settled.items():
                if key not in changed:
                    yield key, value
            return
        for key, raw in self._stored(start, pane):
            if key not in changed:
                yield key, load_value(self.name, self._loads, raw)

    def of_key(self, start: int, key: Any) -> Any:
        """The value of one key."""
        changed = self.panes[start].changed
        return changed[key] if key in changed else self._find(start, key)

    def drop(self, start: int) -> None:
        """The window is over."""
        pane = self.panes.pop(start)
        self._pending -= len(pane.changed)
        self._held -= len(pane.settled)
        if not pane.groups:
            return
        time = time_bytes(start)
        if pane.complete:
            self._removals.extend(
                self._entry(group, time, key_bytes, None)
                for group, key_bytes in map(self._base.locate, pane.settled)
            )
        else:
            self._removals.extend(
                self._entry(found.key_group, time, found.namespace, None, found.map_key)
                for group in sorted(pane.groups)
                for packed, _ in self._base.under(self.name, group, time)
                for found in (unpack_key(packed),)
            )
        self._removals.extend(
            Entry(group, self._base.operator, self._open, time, b"", b"", None)
            for group in sorted(pane.groups)
        )

    def _stored(self, start: int, pane: Pane) -> Iterator[tuple[Any, bytes]]:
        for group in sorted(pane.groups):
            for packed, raw in self._base.under(self.name, group, time_bytes(start)):
                key, content = unframed(raw)
                yield decode_key(unpack_key(packed).namespace) if key is None else key, content

    # As a table of keyed state

    @property
    def pending(self) -> int:
        return self._pending + len(self._removals)

    @property
    def held(self) -> int:
        return self._held

    def forget(self) -> None:
        for pane in (self._panes or {}).values():
            if pane.settled:
                pane.settled.clear()
                pane.complete = False
        self._held = 0

    def drop_empty(self) -> None:
        """There is nothing of the kind."""

    def snapshot(self, keep: int) -> Iterator[Entry]:
        removals, self._removals = self._removals, []
        yield from removals
        for start, pane in (self._panes or {}).items():
            if pane.changed:
                yield from self._changes(start, pane)
                self._settle(pane)
                pane.changed.clear()
        self._pending = 0
        self._held = sum(len(pane.settled) for pane in (self._panes or {}).values())
        if self.held > keep:
            self.forget()

    def _changes(self, start: int, pane: Pane) -> Iterator[Entry]:
        time = time_bytes(start)
        groups = set()
        for key, value in pane.changed.items():
            group, key_bytes = self._base.locate(key)
            groups.add(group)
            yield self._entry(group, time, key_bytes, framed(key, self._pack(value)), self._part())
        for group in groups - pane.groups:
            yield Entry(group, self._base.operator, self._open, time, b"", b"", _OPEN)
        pane.groups |= groups

    def _entry(
        self, group: int, time: bytes, key: bytes, raw: bytes | None, part: bytes = b""
    ) -> Entry:
        return Entry(group, self._base.operator, self.name, time, key, part, raw)

    def _pack(self, value: Any) -> bytes:
        return dump_value(self.name, self._dumps, value)

    def _part(self) -> bytes:
        return b""

    def _settle(self, pane: Pane) -> None:
        pane.settled.update(pane.changed)


class ElementPanes(PaneTable):
    """A list per window and key, stored in chunks: a snapshot writes what was added.

    Stored elements are read once, when the window is evaluated.
    """

    def __init__(
        self,
        name: str,
        base: StateBase,
        key_groups: tuple[int, int],
        serializer: Serializer,
        chunk_number: Callable[[], int],
    ) -> None:
        super().__init__(name, base, key_groups, serializer)
        self._chunk_number = chunk_number
        self.added = 0
        """Elements since the last snapshot; counted by whoever adds them."""

    def find(self, start: int, key: Any) -> list[Any]:
        return []

    def contents(self, start: int) -> Iterator[tuple[Any, list[Any]]]:
        pane = self.panes[start]
        changed = pane.changed
        seen = set()
        for key, chunks in groupby(self._stored(start, pane), key=_key_of):
            elements = [element for _, raw in chunks for element in self._unpack(raw)]
            if key in changed:
                seen.add(key)
                elements += changed[key]
            yield key, elements
        for key, elements in changed.items():
            if key not in seen:
                yield key, list(elements)

    def of_key(self, start: int, key: Any) -> list[Any]:
        pane = self.panes[start]
        group, key_bytes = self._base.locate(key)
        elements: list[Any] = []
        if group in pane.groups:
            address = self._base.address(self.name, key)
            address.key, address.namespace = time_bytes(start), key_bytes
            for _, raw in self._base.scan(address):
                elements.extend(self._unpack(unframed(raw)[1]))
        elements.extend(pane.changed.get(key, ()))
        return elements

    @property
    def pending(self) -> int:
        return self.added + len(self._removals)

    def snapshot(self, keep: int) -> Iterator[Entry]:
        self.added = 0
        return super().snapshot(keep)

    def _pack(self, value: list[Any]) -> bytes:
        return packed_chunk(dump_value(self.name, self._dumps, element) for element in value)

    def _unpack(self, raw: bytes) -> Iterator[Any]:
        return (load_value(self.name, self._loads, data) for data in packed_elements(raw))

    def _part(self) -> bytes:
        return self._chunk_number().to_bytes(8, "big")

    def _settle(self, pane: Pane) -> None:
        pane.complete = False


def framed(key: Any, content: bytes) -> bytes:
    """Content with the key before it, if its bytes do not give it back as it was."""
    if type(key) in EXACT_KEYS:
        return b"\x00" + content
    pickled = pickle.dumps(key, 5)
    return b"".join((b"\x01", len(pickled).to_bytes(4, "big"), pickled, content))


def unframed(raw: bytes) -> tuple[Any, bytes]:
    """Key and content; the key is None if its bytes say all (the key None among them)."""
    if raw[0] == 0:
        return None, raw[1:]
    end = 5 + int.from_bytes(raw[1:5], "big")
    return pickle.loads(raw[5:end]), raw[end:]


def in_panes(rewrite: Rewrite) -> Rewrite:
    """The same for entries of a `PaneTable` as for its values."""
    return _behind_key(rewrite)


def in_element_panes(rewrite: Rewrite) -> Rewrite:
    """The same for entries of `ElementPanes` as for its elements."""
    return _behind_key(in_chunks(rewrite))


def _behind_key(rewrite: Rewrite) -> Rewrite:
    def rewritten(raw: bytes) -> bytes:
        at = 1 if raw[0] == 0 else 5 + int.from_bytes(raw[1:5], "big")
        return raw[:at] + rewrite(raw[at:])

    return rewritten


def _key_of(item: tuple[Any, bytes]) -> Any:
    return item[0]
