"""Broadcast state: a map of a subtask rather than of a key, alike on every subtask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from penstock.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
)
from penstock.errors import ReadOnlyStateError
from penstock.state.keys import check_key
from penstock.state.live import dump_value, load_value, naming


class _Readable(ReadOnlyBroadcastState[Any, Any]):
    def __init__(self, descriptor: MapStateDescriptor, entries: dict[Any, Any]) -> None:
        self._name = descriptor.get_name()
        self._entries = entries
        self._convert_key = naming(self._name, descriptor.key_type_info.converter())

    def get(self, key: Any) -> Any:
        if self._convert_key is not None:
            key = self._convert_key(key)
        try:
            return self._entries.get(key)
        except TypeError:
            check_key(key)
            raise

    def contains(self, key: Any) -> bool:
        return self._key(key) in self._entries

    def items(self) -> Iterable[tuple[Any, Any]]:
        return list(self._entries.items())

    def keys(self) -> Iterable[Any]:
        return list(self._entries)

    def values(self) -> Iterable[Any]:
        return list(self._entries.values())

    def is_empty(self) -> bool:
        return not self._entries

    def _key(self, key: Any) -> Any:
        check_key(key)
        return key if self._convert_key is None else self._convert_key(key)


class ReadOnlyView(_Readable):
    """What the data side gets."""

    def clear(self) -> NoReturn:
        raise ReadOnlyStateError.of(self._name, "clear")

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("put", "put_all", "remove"):
            raise ReadOnlyStateError.of(self._name, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise ReadOnlyStateError.of(self._name, "item assignment")

    def __delitem__(self, key: Any) -> NoReturn:
        raise ReadOnlyStateError.of(self._name, "item deletion")


class LiveBroadcastState(_Readable, BroadcastState[Any, Any]):
    """What the broadcast side gets. Values changed in place are not stored until they are put."""

    def __init__(self, descriptor: MapStateDescriptor, kept: tuple[bytes, ...]) -> None:
        super().__init__(descriptor, {})
        self.view = ReadOnlyView(descriptor, self._entries)
        self._convert_value = naming(self._name, descriptor.value_type_info.converter())
        self._dump_key, load_key = descriptor.key_type_info.serializer()
        self._dump_value, load = descriptor.value_type_info.serializer()
        self._kept: tuple[bytes, ...] | None = kept
        """Keys and values in turn as they are stored, as long as nothing has changed."""
        for key, value in zip(kept[::2], kept[1::2], strict=True):
            loaded = load_value(self._name, load_key, key)
            self._entries[loaded] = load_value(self._name, load, value)

    def put(self, key: Any, value: Any) -> None:
        if self._convert_value is not None:
            value = self._convert_value(value)
        self._entries[self._key(key)] = value
        self._kept = None

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._entries.pop(self._key(key), None)
        self._kept = None

    def clear(self) -> None:
        self._entries.clear()
        self._kept = None

    def stored(self) -> tuple[bytes, ...]:
        if self._kept is None:
            self._kept = tuple(self._dumped())
        return self._kept

    def _dumped(self) -> Iterator[bytes]:
        for key, value in self._entries.items():
            yield dump_value(self._name, self._dump_key, key)
            yield dump_value(self._name, self._dump_value, value)
