"""Map state: every entry stored on its own, read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.state import MapState
from penstock.errors import TypeMismatchError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keys import decode_key, encode_map_key
from penstock.state.live import dump_value
from penstock.state.ttl import Lifetime
from penstock.storage.entries import Entry

_ABSENT = object()


class _Map:
    """What is known of one key's map. Values may be `_ABSENT`: known not to be there."""

    __slots__ = ("complete", "dirty", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.dirty: set[Any] = set()
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
        self._maps: dict[Any, _Map] = {}
        self._dirty: set[Any] = set()

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
        current = self._complete()
        found = []
        for key in list(current.values):
            value = self._find(key)
            if value is not _ABSENT:
                found.append((key, value))
        return found

    def keys(self) -> Iterable[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> Iterable[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return not self.items()

    def clear(self) -> None:
        current = self._complete()
        for key in list(current.values):
            self._set(key, _ABSENT)

    @property
    def pending(self) -> int:
        return len(self._dirty)

    def snapshot(self, keep: int) -> list[Entry]:
        entries = []
        for key in self._dirty:
            address = self._base.address(self.name, key)
            current = self._maps[key]
            for map_key in current.dirty:
                value = current.values[map_key]
                raw = None if value is _ABSENT else dump_value(self.name, self._dumps, value)
                entries.append(address.entry(raw, encode_map_key(map_key)))
                if value is _ABSENT and current.complete:
                    del current.values[map_key]
            current.dirty.clear()
        self._dirty.clear()
        if sum(map(len, (m.values for m in self._maps.values()))) > keep:
            self._maps.clear()
        return entries

    def _converted(self, key: Any) -> Any:
        return key if self._convert_key is None else self._convert_key(key)

    def _key_of(self, raw: bytes) -> Any:
        """The map key as it was put, as far as its type tells: 1.0 is stored as 1."""
        try:
            return self._converted(decode_key(raw))
        except TypeMismatchError:
            return decode_key(raw)

    def _current(self) -> _Map:
        key = self._scope.key
        found = self._maps.get(key)
        if found is None:
            found = self._maps[key] = _Map()
        return found

    def _set(self, key: Any, value: Any) -> None:
        current = self._current()
        current.values[key] = value
        current.dirty.add(key)
        self._dirty.add(self._scope.key)

    def _find(self, key: Any) -> Any:
        current = self._current()
        value: Any = current.values.get(key)
        if value is None and key not in current.values:
            value = _ABSENT if current.complete else self._load(key)
            if value is not _ABSENT or not current.complete:
                current.values[key] = value
        if value is _ABSENT or self._lifetime is None:
            return value
        seen, keep, changed = self._lifetime.read(value)
        if changed:
            self._set(key, _ABSENT if keep is None else keep)
        return _ABSENT if keep is None and seen is None else seen

    def _load(self, key: Any) -> Any:
        raw = self._base.get(self._base.address(self.name, self._scope.key), encode_map_key(key))
        return _ABSENT if raw is None else self._loads(raw)

    def _complete(self) -> _Map:
        """The map with all its stored entries read."""
        current = self._current()
        if not current.complete:
            stored = self._base.scan(self._base.address(self.name, self._scope.key))
            loaded = {self._key_of(map_key): self._loads(raw) for map_key, raw in stored}
            loaded.update(current.values)
            current.values = loaded
            current.complete = True
        return current
