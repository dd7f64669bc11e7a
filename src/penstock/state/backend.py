"""What state objects stand on: the current key, and the acknowledged values below.

The store may lag behind; it is brought up to date at the first read that needs it, so an epoch
whose keys are all live never touches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.errors import InvalidKeyError, StateError
from penstock.state.key_groups import key_group_of
from penstock.state.keys import encode_key
from penstock.state.rewriting import Readable, Rewrite, RewrittenStore
from penstock.state.spill import Spill
from penstock.storage.entries import (
    Entry,
    entry_prefix,
    key_prefix,
    pack_key,
    state_id,
    state_prefix,
    unpack_key,
)
from penstock.storage.store import Store

# A named tuple's own constructor takes twice as long.
_make_entry = tuple.__new__

Channel = tuple[int, int, int]
"""Which of an operator's inputs, by which edge, from which producing subtask."""


class _NoKey:
    """Stands for the key of a record that has none. State and timers hash the key whenever they
    are used, so none of them needs a check of its own."""

    def __hash__(self) -> int:
        raise StateError.no_current_key()

    def __repr__(self) -> str:
        return "no key"


NO_KEY = _NoKey()


class KeyScope:
    """The record being worked on: its key, its timestamp, and where it came from."""

    __slots__ = ("channel", "key", "timestamp")

    def __init__(self) -> None:
        self.key: Any = None
        self.timestamp: int | None = None
        self.channel: Channel = (0, 0, 0)


class StateBase:
    """The acknowledged values of one operator in one subtask, and what the epoch has spilled."""

    def __init__(
        self,
        operator: str,
        max_parallelism: int,
        open_store: Callable[[], Store],
        open_spill: Callable[[], Store],
    ) -> None:
        self.spill = Spill(open_spill)
        self.operator = operator
        self._max_parallelism = max_parallelism
        self._open_store = open_store
        self._store: Readable | None = None
        self._rewrites: dict[bytes, Rewrite] = {}
        self._rewritten_states: dict[str, bytes] = {}
        self._key_groups = (0, max_parallelism - 1)

    def own(self, key_groups: tuple[int, int]) -> None:
        """From now on refuse keys of other groups than these, first and last inclusive."""
        self._key_groups = key_groups

    def end_epoch(self) -> None:
        """Let the store go: the next read asks for it at the new base."""
        self.spill.clear()
        self._rewrites, self._rewritten_states = {}, {}
        store, self._store = self._store, None
        if store is not None:
            store.release()

    def address(self, state: str, key: Any, namespace: bytes = b"") -> Address:
        key_group, key_bytes = self.locate(key)
        return Address(self.operator, state, key_group, key_bytes, namespace)

    def entry(self, state: str, key: Any, value: bytes | None, namespace: bytes = b"") -> Entry:
        """A value under a key as it is stored; in one step, since a snapshot makes many."""
        key_group, key_bytes = self.locate(key)
        return _make_entry(
            Entry, (key_group, self.operator, state, key_bytes, namespace, b"", value)
        )

    def locate(self, key: Any) -> tuple[int, bytes]:
        """Key group and bytes of a key, which must be one of this subtask's."""
        key_bytes = encode_key(key)
        key_group = key_group_of(key_bytes, self._max_parallelism)
        first, last = self._key_groups
        if not first <= key_group <= last:
            raise InvalidKeyError.not_deterministic(key)
        return key_group, key_bytes

    def group_of(self, key_bytes: bytes) -> int:
        return key_group_of(key_bytes, self._max_parallelism)

    def value(self, state: str, key: Any, namespace: bytes = b"") -> bytes | None:
        """The only value under a key; in few steps, since every key of a large state is read."""
        key_group, key_bytes = self.locate(key)
        packed = pack_key(key_group, state_id(self.operator, state), key_bytes, namespace)
        return self.spill.get(packed, self.store) if self.spill else self.store.get(packed)

    def get(self, address: Address, map_key: bytes = b"") -> bytes | None:
        return self.spill.get(address.prefix() + map_key, self.store)

    def scan(self, address: Address, begin: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The map entries of one key, from a map key on: (map key, value) in order."""
        prefix = address.prefix()
        skip = len(prefix)
        for packed, value in self.spill.scan(prefix, self.store, prefix + begin):
            yield packed[skip:], value

    def under(self, state: str, group: int, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Packed key and value of all entries under one stored key, whatever their namespace."""
        prefix = entry_prefix(group, state_id(self.operator, state), key)
        return self.spill.scan(prefix, self.store)

    def keys(
        self, state: str, key_groups: tuple[int, int], begin: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Packed key and value of all entries of one state in a range of key groups; in each of
        them from a stored key on, if they are all of its length."""
        name = state_id(self.operator, state)
        for group in range(key_groups[0], key_groups[1] + 1):
            start = pack_key(group, name, begin)
            yield from self.spill.scan(state_prefix(group, name), self.store, start)

    def rewrite(self, state: str, rewrite: Rewrite) -> None:
        """Until the epoch ends, read the acknowledged values of a state as this makes them."""
        known = self._rewritten_states[state] = state_id(self.operator, state)
        self._rewrites[known] = rewrite
        if self._store is not None:
            self._store = self._readable(self._store)

    def rewritten(self) -> Iterator[Entry]:
        """The acknowledged entries of those states as they are to be stored from now on, but for
        those that the epoch has written already."""
        first, last = self._key_groups
        for group in range(first, last + 1):
            for state, known in self._rewritten_states.items():
                for packed, value in self.store.scan(state_prefix(group, known)):
                    if not self.spill.holds(packed):
                        at = unpack_key(packed)
                        yield Entry(
                            group, self.operator, state, at.key, at.namespace, at.map_key, value
                        )

    @property
    def store(self) -> Readable:
        if self._store is None:
            self._store = self._readable(self._open_store())
        return self._store

    def _readable(self, store: Readable) -> Readable:
        if not self._rewrites or isinstance(store, RewrittenStore):
            return store
        return RewrittenStore(store, self._rewrites)


class Address:
    """Where the values of one state under one key stand."""

    __slots__ = ("key", "key_group", "namespace", "operator", "state")

    def __init__(
        self, operator: str, state: str, key_group: int, key: bytes, namespace: bytes
    ) -> None:
        self.operator = operator
        self.state = state
        self.key_group = key_group
        self.key = key
        self.namespace = namespace

    def prefix(self) -> bytes:
        name = state_id(self.operator, self.state)
        return key_prefix(self.key_group, name, self.key, self.namespace)

    def entry(self, value: bytes | None, map_key: bytes = b"") -> Entry:
        return Entry(
            self.key_group, self.operator, self.state, self.key, self.namespace, map_key, value
        )
