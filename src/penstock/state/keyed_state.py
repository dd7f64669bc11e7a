"""The keyed state of one operator in one subtask: made by descriptor, snapshot as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from xxhash import xxh3_64_intdigest

from penstock.common.parts import in_parts
from penstock.common.typeinfo import Types
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.errors import StateError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.declared_types import DeclaredTypes
from penstock.state.keys import decode_key
from penstock.state.list_state import LiveListState, packed_elements
from penstock.state.live import KeyedTable, LiveTable, Table, naming
from penstock.state.map_state import LiveMapState
from penstock.state.memory import memory_in_use
from penstock.state.namespaces import NamespacedBase, NamespaceScope
from penstock.state.panes import ElementPanes, PaneTable, Serializer
from penstock.state.state_types import WITH_TTL
from penstock.state.time_buffer import BY_TIME, TimeBuffer
from penstock.state.timers import TimerTable
from penstock.state.ttl import Lifetime, stamped_serializer
from penstock.state.value_state import (
    ExpiringValueState,
    LiveAggregatingState,
    LiveReducingState,
    LiveValueState,
    TypedValueState,
)
from penstock.state.waiting import WaitingTable
from penstock.storage.entries import Entry, unpack_key

# So many entries are written at once, however few memory shall hold: each time makes a file.
_LEAST_AT_ONCE = 10_000

# How many entries of a state with a time to live are looked at in one epoch, but for the rest of
# their key group, and how many are removed at most.
_SWEEP = 1000

T = TypeVar("T", bound=Table)
K = TypeVar("K", bound=KeyedTable)


def recorded_kind(descriptor: StateDescriptor) -> str:
    """What is recorded of a descriptor beside its type. A time to live is part of it, since its
    stamps are in the stored bytes; how long it is may change."""
    kind = type(descriptor).__name__.removesuffix("StateDescriptor").lower()
    return kind if descriptor.ttl_config is None else kind + WITH_TTL


def _holds(state: Any) -> bool:
    """Whether there is something under the current key."""
    if isinstance(state, LiveMapState):
        return not state.is_empty()
    if isinstance(state, LiveListState):
        return bool(state.get())
    if isinstance(state, LiveReducingState | LiveAggregatingState):
        state = state.below
    return state.value() is not None


def _nothing() -> None:
    pass


def _whole(raw: bytes) -> Iterable[bytes]:
    return (raw,)


class Place(NamedTuple):
    """What states have a value for: each key, or each key and namespace."""

    scope: Any
    base: Any
    prefix: str = ""
    """Keeps the names of one place apart from those of another."""


class KeyedState:
    """All keyed states of an operator, found by name."""

    def __init__(
        self,
        scope: KeyScope,
        base: StateBase,
        key_groups: tuple[int, int],
        now: Callable[[], int],
        chunk_number: Callable[[], int],
        keep: int,
        recorded: Callable[[], Mapping[str, Any]] = dict,
        memory: int = 0,
    ) -> None:
        """`recorded` gives the types of the states as the base has them. Of each state `keep`
        values may be live objects, and more while the process has less than `memory`.
        """
        self.scope = scope
        self.base = base
        self._key_groups = key_groups
        self._now = now
        self._chunk_number = chunk_number
        self._keep = keep
        self._memory = memory
        self._tidy_at = keep
        self.declared = DeclaredTypes(base, now, recorded)
        self._per_key = Place(scope, base)
        self._states: dict[str, tuple[StateDescriptor, Any]] = {}
        self._tables: list[Table] = []
        self._keyed_tables: dict[str, KeyedTable] = {}
        self._swept_states: dict[str, tuple[Lifetime, Callable[[bytes], Iterable[bytes]]]] = {}
        self._sweeps: dict[str, int] = {}
        base.own(key_groups)

    def place(self, scope: NamespaceScope, prefix: str) -> Place:
        """A place for states per key and namespace."""
        return Place(scope, NamespacedBase(self.base), prefix)

    def get(self, descriptor: StateDescriptor, place: Place | None = None) -> Any:
        """The state of a descriptor; the same object for the same name and place."""
        place = place or self._per_key
        name = place.prefix + descriptor.get_name()
        known = self._states.get(name)
        if known is not None:
            if known[0] != descriptor:
                raise StateError(
                    f"state {descriptor.get_name()!r} is declared twice and differently: "
                    f"{known[0]!r} and {descriptor!r}; give each state its own name"
                )
            return known[1]
        self.declared.add(name, recorded_kind(descriptor), descriptor.type_info)
        state = self._make(descriptor, name, place)
        self._states[name] = (descriptor, state)
        return state

    def timers(self, name: str) -> TimerTable:
        """Timers of one kind of time."""
        return self._added(TimerTable(name, self.scope, self.base, self._key_groups))

    def panes(self, name: str, serializer: Serializer) -> PaneTable:
        """One value per window and key, in the order of the windows' time."""
        return self._added(PaneTable(name, self.base, self._key_groups, serializer))

    def element_panes(self, name: str, serializer: Serializer) -> ElementPanes:
        """A list per window and key, in the order of the windows' time."""
        return self._added(
            ElementPanes(name, self.base, self._key_groups, serializer, self._chunk_number)
        )

    def table(self, name: str, serializer: Serializer) -> LiveTable:
        """One value per key, for an operator's own use."""
        return self._added(LiveTable(name, self.scope, self.base, *serializer))

    def _added(self, table: T) -> T:
        self._tables.append(table)
        return table

    def waiting(self, name: str) -> WaitingTable:
        """Records that are held back until their time has come."""
        serializer = Types.PICKLED_BYTE_ARRAY().serializer()
        return self._added(
            WaitingTable(
                name, self.scope, self.base, self._key_groups, serializer, self._chunk_number
            )
        )

    def buffer(self, name: str) -> TimeBuffer:
        """Records in the order of their time."""
        pickled = Types.PICKLED_BYTE_ARRAY()
        self.declared.add_layout(name, BY_TIME, pickled, None)
        return self._added(TimeBuffer(name, self.scope, self.base, pickled.serializer()))

    def types(self) -> dict[str, Any]:
        """Kind and type of each state, as recorded in checkpoints."""
        return self.declared.all()

    def rewritten(self) -> Iterator[Entry]:
        """All entries of states whose type has changed, but for those that were written before in
        this epoch. They are to be stored before the epoch's last changes."""
        return self.base.rewritten()

    def all_keys(self, name: str, between: Callable[[], None] = _nothing) -> Iterator[Any]:
        """Every key that has a value of a state, or had one at the base.

        `between` is called now and then, where it may write what has changed so far.
        """
        table = self._keyed_tables[name]
        changed = table.changed_keys()
        yield from changed
        seen = set(changed)
        first, last = self._key_groups
        for group in range(first, last + 1):
            between()
            before = None
            for packed, _ in self.base.keys(name, (group, group)):
                if table.held > self._keep:
                    table.forget()
                key_bytes = unpack_key(packed).key
                if key_bytes != before:  # a key's map entries stand together
                    before = key_bytes
                    key = decode_key(key_bytes)
                    if key not in seen:
                        yield key

    def holders(
        self, descriptor: StateDescriptor, between: Callable[[], None] = _nothing
    ) -> Iterator[tuple[Any, Any]]:
        """Every key that has something in a state, each as the current key, and the state."""
        state, scope = self.get(descriptor), self.scope
        for scope.key in self.all_keys(descriptor.get_name(), between):
            if _holds(state):
                yield scope.key, state

    def end_epoch(self) -> None:
        self.declared.end_epoch()
        self.base.end_epoch()

    def overflowing(self) -> bool:
        """Whether there is more in memory than shall be; `spill` then helps."""
        keep = self._keep
        if not any(table.pending > keep or table.held > keep for table in self._tables):
            return False
        return self._is_short_of_memory()

    def _is_short_of_memory(self) -> bool:
        return not self._memory or memory_in_use() > self._memory

    def changes(self) -> Iterator[Entry]:
        """Every change since the last time; to be taken to the end."""
        keep = self._keep if self._is_short_of_memory() else sys.maxsize
        for table in self._tables:
            yield from table.snapshot(keep)
        if sum(table.held for table in self._tables) > self._tidy_at:
            for table in self._tables:
                table.drop_empty()
            # Not before as much again is held: it looks at all of it.
            self._tidy_at = max(self._keep, 2 * sum(table.held for table in self._tables))

    def in_parts(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        """Entries, so many at a time: as bytes they take several times the memory of the values."""
        return in_parts(entries, max(self._keep, _LEAST_AT_ONCE))

    def spill(self) -> Iterator[list[Entry]]:
        """Make room. If it is the changes that are too many: those so far in parts, which are read
        from disk for the rest of the epoch. To be taken to the end."""
        for table in self._tables:
            if table.held > self._keep:
                table.forget()
        if not any(table.pending > self._keep for table in self._tables):
            return
        for part in self.in_parts(self.changes()):
            self.base.spill.add(part)
            yield part

    def snapshot(self) -> Iterator[Entry]:
        """The epoch's last changes, and what expired without being met. To be taken to the end."""
        if not self._swept_states:
            yield from self.changes()
            return
        changed = set()
        for entry in self.changes():
            changed.add(entry[:6])
            yield entry
        for name in self._swept_states:
            yield from [e for e in self._swept(name) if e[:6] not in changed]

    def _make(self, descriptor: StateDescriptor, name: str, place: Place) -> Any:
        if isinstance(descriptor, ValueStateDescriptor):
            return self._value(descriptor, name, place)
        if isinstance(descriptor, ReducingStateDescriptor):
            reduce = descriptor.get_reduce_function().reduce
            return LiveReducingState(self._value(descriptor, name, place), reduce)
        if isinstance(descriptor, AggregatingStateDescriptor):
            function = descriptor.get_agg_function()
            return LiveAggregatingState(self._value(descriptor, name, place), function)
        if isinstance(descriptor, ListStateDescriptor):
            return self._list(descriptor, name, place)
        if isinstance(descriptor, MapStateDescriptor):
            return self._map(descriptor, name, place)
        raise StateError(f"{descriptor!r} is not a descriptor of keyed state")

    def _value(self, descriptor: StateDescriptor, name: str, place: Place) -> ValueState[Any]:
        lifetime = self._lifetime(descriptor, name)
        dumps, loads = descriptor.type_info.serializer()
        convert = naming(descriptor.get_name(), descriptor.type_info.as_kept().converter())
        if lifetime is not None:
            dumps, loads = stamped_serializer(dumps, loads)
        table = self._by_key(LiveTable(name, place.scope, place.base, dumps, loads))
        if lifetime is not None:
            return ExpiringValueState(table, convert, lifetime)
        return LiveValueState(table) if convert is None else TypedValueState(table, convert)

    def _list(self, descriptor: ListStateDescriptor, name: str, place: Place) -> LiveListState:
        element = descriptor.elem_type_info
        lifetime = self._lifetime(descriptor, name, packed_elements)
        serializer = element.serializer()
        state = LiveListState(
            name,
            place.scope,
            place.base,
            stamped_serializer(*serializer) if lifetime is not None else serializer,
            naming(descriptor.get_name(), element.as_kept().converter()),
            lifetime,
            self._chunk_number,
        )
        return self._by_key(state)

    def _map(self, descriptor: MapStateDescriptor, name: str, place: Place) -> LiveMapState:
        lifetime = self._lifetime(descriptor, name)
        serializer = descriptor.value_type_info.serializer()
        state = LiveMapState(
            name,
            place.scope,
            place.base,
            stamped_serializer(*serializer) if lifetime is not None else serializer,
            naming(descriptor.get_name(), descriptor.key_type_info.converter()),
            naming(descriptor.get_name(), descriptor.value_type_info.as_kept().converter()),
            lifetime,
        )
        return self._by_key(state)

    def _by_key(self, table: K) -> K:
        self._keyed_tables[table.name] = table
        return self._added(table)

    def _lifetime(
        self,
        descriptor: StateDescriptor,
        name: str,
        parts: Callable[[bytes], Iterable[bytes]] = _whole,
    ) -> Lifetime | None:
        """The lifetime of a state's values; `parts` cuts a stored value into stamped ones."""
        config = descriptor.ttl_config
        if config is None:
            return None
        lifetime = Lifetime(config, self._now)
        if config.get_cleanup_strategies().is_cleanup_in_background():
            self._swept_states[name] = (lifetime, parts)
        return lifetime

    def _swept(self, name: str) -> Iterator[Entry]:
        """Tombstones for expired entries of the next few key groups.

        Always whole groups: instances are often new, and one that began in the middle of a group
        could not know where. So it begins at a group that the epoch chooses, since if all began at
        the first, they would look at the same entries again and again.
        """
        lifetime, parts = self._swept_states[name]
        first, last = self._key_groups
        groups = last - first + 1
        at = self._sweeps.get(name)
        if at is None:
            at = xxh3_64_intdigest(self._chunk_number().to_bytes(8, "big")) % groups
        looked = removed = 0
        for _ in range(groups):
            self._sweeps[name] = at
            group = first + at
            for packed, raw in self.base.keys(name, (group, group)):
                looked += 1
                if all(map(lifetime.expired_raw, parts(raw))):
                    yield self._tombstone(name, packed)
                    removed += 1
                    if removed == _SWEEP:  # the rest of the group is for the next epoch
                        return
            at = self._sweeps[name] = (at + 1) % groups
            if looked >= _SWEEP:
                return

    def _tombstone(self, name: str, packed: bytes) -> Entry:
        key = unpack_key(packed)
        return Entry(
            key.key_group, self.base.operator, name, key.key, key.namespace, key.map_key, None
        )
