"""Broadcast state: maps of a subtask rather than of a key, alike on every subtask.

Held in memory as a whole, and stored as a whole with each epoch.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from penstock.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
)
from penstock.errors import ReadOnlyStateError, StateError
from penstock.state.keys import check_key
from penstock.state.live import dump_value, load_value, naming
from penstock.state.state_types import check_types

KIND = "broadcast"


class _Readable(ReadOnlyBroadcastState[Any, Any]):
    def __init__(self, descriptor: MapStateDescriptor, entries: dict[Any, Any]) -> None:
        self._name = descriptor.get_name()
        self._entries = entries
        self._convert_key = naming(self._name, descriptor.key_type_info.converter())

    def get(self, key: Any) -> Any:
        return self._entries.get(self._key(key))

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

    def __init__(self, descriptor: MapStateDescriptor, changed: Callable[[], None]) -> None:
        super().__init__(descriptor, {})
        self.view = ReadOnlyView(descriptor, self._entries)
        self.descriptor = descriptor
        self.type = {"kind": KIND, "type": descriptor.type_info.describe()}
        self._changed = changed
        self._convert_value = naming(self._name, descriptor.value_type_info.converter())
        self._key_serializer = descriptor.key_type_info.serializer()
        self._value_serializer = descriptor.value_type_info.serializer()

    def put(self, key: Any, value: Any) -> None:
        if self._convert_value is not None:
            value = self._convert_value(value)
        self._entries[self._key(key)] = value
        self._changed()

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._entries.pop(self._key(key), None)
        self._changed()

    def clear(self) -> None:
        self._entries.clear()
        self._changed()

    def dumped(self) -> list[tuple[bytes, bytes]]:
        dumps_key, dumps = self._key_serializer[0], self._value_serializer[0]
        return [
            (dump_value(self._name, dumps_key, key), dump_value(self._name, dumps, value))
            for key, value in self._entries.items()
        ]

    def load(self, pairs: list[tuple[bytes, bytes]]) -> None:
        loads_key, loads = self._key_serializer[1], self._value_serializer[1]
        for key, value in pairs:
            loaded = load_value(self._name, loads_key, key)
            self._entries[loaded] = load_value(self._name, loads, value)


class BroadcastStates:
    """All broadcast states of an operator in a subtask."""

    def __init__(
        self, operator: str, descriptors: Iterable[MapStateDescriptor], stored: bytes | None
    ) -> None:
        self._states = {d.get_name(): LiveBroadcastState(d, self._change) for d in descriptors}
        self._stored = stored
        """The last snapshot, as long as it is true."""
        kept = {} if stored is None else pickle.loads(stored)
        check_types(operator, {name: type_ for name, (type_, _) in kept.items()}, self.types())
        for name in self._states.keys() & kept.keys():
            self._states[name].load(kept[name][1])
        # A later version of the program may declare them again.
        self._undeclared = {k: v for k, v in kept.items() if k not in self._states}

    def of(self, descriptor: MapStateDescriptor) -> LiveBroadcastState:
        if not isinstance(descriptor, MapStateDescriptor):
            raise StateError(f"expected a MapStateDescriptor, got {descriptor!r}")
        found = self._states.get(descriptor.get_name())
        if found is None or found.descriptor != descriptor:
            declared = ", ".join(repr(state.descriptor) for state in self._states.values())
            raise StateError(
                f"there is no broadcast state {descriptor!r}; broadcast(...) was given {declared}"
            )
        return found

    def types(self) -> dict[str, Any]:
        """Kind and type of each state."""
        return {name: state.type for name, state in self._states.items()}

    def snapshot(self) -> bytes | None:
        if self._stored is None:
            held = {n: (s.type, s.dumped()) for n, s in self._states.items() if not s.is_empty()}
            if held or self._undeclared:
                self._stored = pickle.dumps({**self._undeclared, **held}, 5)
        return self._stored

    def _change(self) -> None:
        self._stored = None
