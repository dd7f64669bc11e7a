"""Map state: every entry stored on its own, read when it is asked for.

A map that is asked for a second entry is read whole, if it is small: from then on what is not there
is known without looking, and an entry that comes and goes within an epoch leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.datastream.state import MapState
from penstock.errors import TypeMismatchError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keys import decode_key, encode_map_key
from penstock.state.live import dump_value, load_value
from penstock.state.ttl import Lifetime
from penstock.storage.entries import Entry

_ABSENT = object()
_UNKNOWN = object()

_SMALL = 2048
_ENTRY = 128
"""Bytes of a map that is read whole; what an entry counts beside its value."""


class _Settled:
    """What is known of one key's stored map. Values may be `_ABSENT`: known not to be there."""

    __slots__ = ("asked", "complete", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.complete = False
        """Whether all that is stored is among the values; none of them is `_ABSENT` then."""
        self.asked = 0
        """For how many entries the store was asked."""

    def lacks(self, key: Any) -> bool:
        """Whether an entry is known not to be stored."""
        return self.values.get(key, _ABSENT if self.complete else _UNKNOWN) is _ABSENT


class LiveMapState(MapState[Any, Any]):
    """With a lifetime, every entry is kept with the time of its last use."""

    def __init__(
        self,
        name: str,
        scope: KeyScope,
        base: StateBase,
        serializer: tuple[Callable[[Any], bytes], Callable[[bytes], Any]],
        convert_key: Callable[[Any], Any] | None,
        convert_value: Callable[[Any], Any] | None,
        lifetime: Lifetime | None,
    ) -> None:
        self.name = name
        self._scope = scope
        self._base = base
        self._dumps, self._loads = serializer
        self._convert_key = convert_key
        self._convert_value = convert_value
        self._lifetime = lifetime
        # Of each key the changed entries, `_ABSENT` if removed, over what is settled.
        self._changed: dict[Any, dict[Any, Any]] = {}
        self._settled: dict[Any, _Settled] = {}
        self._changed_entries = 0
        self._settled_entries = 0

    def get(self, key: Any) -> Any:
        if self._convert_key is not None:
            key = self._convert_key(key)
        if self._lifetime is None:
            # What `_find` does first, spared for entries that have changed: counters, mostly.
            changes = self._changed.get(self._scope.key)
            if changes is not None and (value := changes.get(key, _ABSENT)) is not _ABSENT:
                return value
        found = self._find(key)
        return None if found is _ABSENT else found

    def contains(self, key: Any) -> bool:
        return self._find(self._converted(key)) is not _ABSENT

    def put(self, key: Any, value: Any) -> None:
        if self._convert_key is not None:
            key = self._convert_key(key)
        if self._convert_value is not None:
            value = self._convert_value(value)
        if self._lifetime is not None:
            value = self._lifetime.stamp(value)
        changes = self._changed.get(self._scope.key)
        if changes is not None and key in changes:
            changes[key] = value
        else:
            self._set(key, value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._drop(self._converted(key))

    def items(self) -> Iterable[tuple[Any, Any]]:
        found = []
        for key, value in self._all().items():
            seen = self._seen(key, value)
            if seen is not _ABSENT:
                found.append((key, seen))
        return found

    def keys(self) -> Iterable[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> Iterable[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return not self.items()

    def clear(self) -> None:
        for key in self._all():
            self._drop(key)

    def changed_keys(self) -> list[Any]:
        return list(self._changed)

    @property
    def pending(self) -> int:
        return max(len(self._changed), self._changed_entries)

    @property
    def held(self) -> int:
        return max(len(self._settled), self._settled_entries)

    def forget(self) -> None:
        self._settled.clear()
        self._settled_entries = 0

    def drop_empty(self) -> None:
        for key, settled in list(self._settled.items()):
            if all(value is _ABSENT for value in settled.values.values()):
                self._settled_entries -= len(settled.values)
                del self._settled[key]

    def snapshot(self, keep: int) -> Iterator[Entry]:
        for key, changes in self._changed.items():
            address = self._base.address(self.name, key)
            settled = self._settled_of(key)
            values, complete = settled.values, settled.complete
            before = len(values)
            for map_key, value in changes.items():
                raw = None if value is _ABSENT else dump_value(self.name, self._dumps, value)
                yield address.entry(raw, encode_map_key(map_key))
                if raw is None and complete:  # what is not there need not be remembered
                    values.pop(map_key, None)
                else:
                    values[map_key] = value
            self._settled_entries += len(values) - before
        self._changed.clear()
        self._changed_entries = 0
        if self.held > keep:
            self.forget()

    def _converted(self, key: Any) -> Any:
        return key if self._convert_key is None else self._convert_key(key)

    def _key_of(self, raw: bytes) -> Any:
        """The map key as it was put, as far as its type tells: 1.0 is stored as 1."""
        try:
            return self._converted(decode_key(raw))
        except TypeMismatchError:
            return decode_key(raw)

    def _settled_of(self, key: Any) -> _Settled:
        found = self._settled.get(key)
        if found is None:
            found = self._settled[key] = _Settled()
        return found

    def _set(self, key: Any, value: Any) -> None:
        changes = self._changed.get(self._scope.key)
        if changes is None:
            changes = self._changed[self._scope.key] = {}
        if key not in changes:
            self._changed_entries += 1
        changes[key] = value

    def _drop(self, key: Any) -> None:
        """Remove an entry; of one that is not stored, nothing is written."""
        settled = self._settled.get(self._scope.key)
        if settled is None or not settled.lacks(key):
            self._set(key, _ABSENT)
            return
        changes = self._changed.get(self._scope.key)
        if changes is not None and key in changes:
            del changes[key]
            self._changed_entries -= 1
            if not changes:
                del self._changed[self._scope.key]

    def _find(self, key: Any) -> Any:
        changes = self._changed.get(self._scope.key)
        value = _UNKNOWN if changes is None else changes.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            value = self._settled_value(key)
        return value if self._lifetime is None else self._seen(key, value)

    def _settled_value(self, key: Any) -> Any:
        settled = self._settled_of(self._scope.key)
        value = settled.values.get(key, _UNKNOWN)
        if value is not _UNKNOWN:
            return value
        if not settled.complete:
            settled.asked += 1
            if settled.asked == 2:
                self._read_if_small(settled)
        if settled.complete:
            return settled.values.get(key, _ABSENT)
        value = settled.values[key] = self._load(key)
        self._settled_entries += 1
        return value

    def _seen(self, key: Any, value: Any) -> Any:
        """What the reader of an entry gets; its lifetime may end or begin anew by that."""
        if value is _ABSENT or self._lifetime is None:
            return value
        seen, keep, changed = self._lifetime.read(value)
        if changed and keep is None:
            self._drop(key)
        elif changed:
            self._set(key, keep)
        return _ABSENT if keep is None and seen is None else seen

    def _load(self, key: Any) -> Any:
        address = self._base.address(self.name, self._scope.key)
        raw = self._base.get(address, encode_map_key(key))
        return _ABSENT if raw is None else load_value(self.name, self._loads, raw)

    def _all(self) -> dict[Any, Any]:
        """All entries of the current key, the changed ones included."""
        settled = self._settled_of(self._scope.key)
        if not settled.complete:
            self._complete(settled, self._scan())
        return {**settled.values, **self._changed.get(self._scope.key, {})}

    def _read_if_small(self, settled: _Settled) -> None:
        found, size = [], 0
        for entry in self._scan():
            size += len(entry[1]) + _ENTRY
            if size > _SMALL:
                return
            found.append(entry)
        self._complete(settled, found)

    def _complete(self, settled: _Settled, stored: Iterable[tuple[bytes, bytes]]) -> None:
        before = len(settled.values)
        settled.values = {
            self._key_of(map_key): load_value(self.name, self._loads, raw)
            for map_key, raw in stored
        }
        settled.complete = True
        self._settled_entries += len(settled.values) - before

    def _scan(self) -> Iterator[tuple[bytes, bytes]]:
        """The stored entries of the current key."""
        return self._base.scan(self._base.address(self.name, self._scope.key))
