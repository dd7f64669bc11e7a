"""Operator state: lists and maps of a subtask rather than of a key, by descriptor.

Held in memory as a whole, and stored as a whole with each epoch. What an element is and how it is
dealt out anew are `redistribution`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.datastream.state import (
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    StateDescriptor,
)
from penstock.errors import StateError, UnsupportedFeatureError
from penstock.state.broadcast_state import LiveBroadcastState
from penstock.state.list_state import checked_elements
from penstock.state.live import dump_value, load_value, naming, naming_state
from penstock.state.redistribution import (
    COPY,
    SPLIT,
    UNION,
    StoredState,
    StoredStates,
    gathered,
)
from penstock.state.state_types import recorded_type, rewrite_of_values

_KINDS = {SPLIT: "operator list", UNION: "union list", COPY: "broadcast"}


class LiveOperatorList(ListState[Any]):
    """A list of the subtask. Elements changed in place are not stored until they are put.

    What is added or put is this subtask's; what a union brought from others is theirs to store.
    """

    def __init__(
        self, descriptor: ListStateDescriptor, kept: tuple[bytes, ...], held: tuple[bytes, ...]
    ) -> None:
        """`held` is what it holds at first; `kept`, the part of that which this subtask stored."""
        self._name = descriptor.get_name()
        self._dumps, loads = descriptor.elem_type_info.serializer()
        self._convert = naming(self._name, descriptor.elem_type_info.converter())
        self._kept = kept
        self._settled = [load_value(self._name, loads, element) for element in held]
        self._new: list[Any] = []

    def get(self) -> list[Any]:
        return self._settled + self._new

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: list[Any]) -> None:
        self._new.extend(checked_elements(self._name, values, self._convert))

    def update(self, values: list[Any]) -> None:
        self._new = checked_elements(self._name, values, self._convert)
        self._settled, self._kept = [], ()

    def clear(self) -> None:
        self.update([])

    def stored(self) -> tuple[bytes, ...]:
        added = tuple(dump_value(self._name, self._dumps, value) for value in self._new)
        self._kept += added
        self._settled += self._new
        self._new = []
        return self._kept


@dataclass(frozen=True)
class _Declared:
    descriptor: StateDescriptor
    rule: str
    state: Any

    @property
    def type(self) -> dict[str, Any]:
        return _type(self.descriptor, self.rule)


class OperatorStates(OperatorStateStore):
    """All operator states of an operator in a subtask."""

    def __init__(
        self, operator: str, kept: StoredStates, everywhere: Callable[[], Sequence[StoredStates]]
    ) -> None:
        """`kept` is what this subtask has stored, `everywhere` what each of the subtasks has."""
        self._operator = operator
        self._kept = kept
        self._everywhere = everywhere
        self._declared: dict[str, _Declared] = {}

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        state: ListState[Any] = self._state(state_descriptor, ListStateDescriptor, SPLIT)
        return state

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        state: ListState[Any] = self._state(state_descriptor, ListStateDescriptor, UNION)
        return state

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> LiveBroadcastState:
        state: LiveBroadcastState = self._state(state_descriptor, MapStateDescriptor, COPY)
        return state

    def found(self, descriptor: StateDescriptor) -> Any:
        """What the state holds now: a list, or a dict of a broadcast state."""
        known = self._declared.get(descriptor.get_name())
        if known is None or known.descriptor != descriptor:
            declared = [known.descriptor for known in self._declared.values()]
            raise StateError(
                f"{self._operator} has no operator state {descriptor!r}; it has {declared}"
            )
        listed = isinstance(descriptor, ListStateDescriptor)
        return known.state.get() if listed else dict(known.state.items())

    def types(self) -> dict[str, Any]:
        """Kind and type of each state."""
        return {name: declared.type for name, declared in self._declared.items()}

    def stored(self) -> StoredStates:
        """All of them as they are now. A later version of the program may declare again what this
        one does not."""
        now = {
            name: StoredState(declared.rule, declared.type, declared.state.stored())
            for name, declared in self._declared.items()
        }
        return {**self._kept, **now}

    def _state(self, descriptor: Any, expected: type[StateDescriptor], rule: str) -> Any:
        if not isinstance(descriptor, expected):
            raise StateError(f"expected a {expected.__name__}, got {descriptor!r}")
        name = descriptor.get_name()
        found = self._declared.get(name)
        if found is None:
            found = self._declared[name] = self._declare(descriptor, rule)
        elif found.rule != rule or found.descriptor != descriptor:
            raise StateError(
                f"operator state {name!r} is declared twice: as {_KINDS[found.rule]} "
                f"{found.descriptor!r} and as {_KINDS[rule]} {descriptor!r}; use two names"
            )
        return found.state

    def _declare(self, descriptor: StateDescriptor, rule: str) -> _Declared:
        name = descriptor.get_name()
        if descriptor.ttl_config is not None:
            raise UnsupportedFeatureError.of(
                f"a time to live of operator state ({name!r})",
                "it is for state of a key; remove outdated elements in snapshot_state",
            )
        subtasks = self._everywhere() if rule == UNION else [self._kept]
        kept = gathered([self._fitted(self._kept, descriptor, rule)], name)
        held = gathered([self._fitted(s, descriptor, rule) for s in subtasks], name)
        if isinstance(descriptor, ListStateDescriptor):
            return _Declared(descriptor, rule, LiveOperatorList(descriptor, kept, held))
        assert isinstance(descriptor, MapStateDescriptor)
        return _Declared(descriptor, rule, LiveBroadcastState(descriptor, kept))

    def _fitted(self, states: StoredStates, descriptor: StateDescriptor, rule: str) -> StoredStates:
        """What a subtask has stored of a state, as values of the declared type."""
        name = descriptor.get_name()
        stored = states.get(name)
        if stored is None:
            return {}
        rewrite = rewrite_of_values(
            self._operator, name, stored.type, _KINDS[rule], descriptor.type_info
        )
        if rewrite is None:
            return {name: stored}
        every = naming_state(name, rewrite)
        # A broadcast state is keys and values in turn.
        elements = (
            every(element) if rule != COPY or index % 2 else element
            for index, element in enumerate(stored.elements)
        )
        return {name: replace(stored, elements=tuple(elements))}


def _type(descriptor: StateDescriptor, rule: str) -> dict[str, Any]:
    return recorded_type(_KINDS[rule], descriptor.type_info)
