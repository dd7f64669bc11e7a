"""Map state: every entry stored on its own, read when it is asked for."""

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


class _Settled:
    """What is known of one key's stored map. Values may be `_ABSENT`: known not to be there."""

    __slots__ = ("complete", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.complete = False


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
        found = self._find(self._converted(key))
        return None if found is _ABSENT else found

    def contains(self, key: Any) -> bool:
        return self._find(self._converted(key)) is not _ABSENT

    def put(self, key: Any, value: Any) -> None:
        key = self._converted(key)
        if self._convert_value is not None:
            value = self._convert_value(value)
        if self._lifetime is not None:
            value = self._lifetime.stamp(value)
        self._set(key, value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._set(self._converted(key), _ABSENT)

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
            self._set(key, _ABSENT)

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

    def present_keys(self) -> list[Any]:
        """The keys of all entries, found without reading values; expired ones are among them."""
        settled = self._settled_of(self._scope.key)
        stored: Iterable[Any] = settled.values
        if not settled.complete:
            found = self._base.scan(self._base.address(self.name, self._scope.key))
            stored = (self._key_of(map_key) for map_key, _ in found)
        keys: dict[Any, Any] = dict.fromkeys(stored)
        keys.update(self._changed.get(self._scope.key, {}))
        return [key for key, change in keys.items() if change is not _ABSENT]

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

    def _find(self, key: Any) -> Any:
        changes = self._changed.get(self._scope.key)
        if changes is not None and key in changes:
            value = changes[key]
        else:
            settled = self._settled_of(self._scope.key)
            value = settled.values.get(key, _UNKNOWN)
            if value is _UNKNOWN:
                if settled.complete:
                    return _ABSENT
                value = settled.values[key] = self._load(key)
                self._settled_entries += 1
        return value if self._lifetime is None else self._seen(key, value)

    def _seen(self, key: Any, value: Any) -> Any:
        """What the reader of an entry gets; its lifetime may end or begin anew by that."""
        if value is _ABSENT or self._lifetime is None:
            return value
        seen, keep, changed = self._lifetime.read(value)
        if changed:
            self._set(key, _ABSENT if keep is None else keep)
        return _ABSENT if keep is None and seen is None else seen

    def _load(self, key: Any) -> Any:
        address = self._base.address(self.name, self._scope.key)
        raw = self._base.get(address, encode_map_key(key))
        return _ABSENT if raw is None else load_value(self.name, self._loads, raw)

    def _all(self) -> dict[Any, Any]:
        """All entries of the current key, the changed ones included."""
        settled = self._settled_of(self._scope.key)
        if not settled.complete:
            stored = self._base.scan(self._base.address(self.name, self._scope.key))
            before = len(settled.values)
            settled.values = {
                self._key_of(map_key): load_value(self.name, self._loads, raw)
                for map_key, raw in stored
            }
            settled.complete = True
            self._settled_entries += len(settled.values) - before
        return {**settled.values, **self._changed.get(self._scope.key, {})}
