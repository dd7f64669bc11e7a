"""Timers: stored in the order of their time within each key group, the next few live in memory.

An entry's key is the time, its namespace the key, its map key what the timer belongs to (a window).
So the timers that are due come first in a scan, and looking for them costs what is found. In memory
are all timers up to a horizon; what lies behind it is only in the store, or among the changes.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterator
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keys import decode_key, encode_key
from penstock.storage.entries import Entry, unpack_key

MIN_TIME = -(1 << 63)
MAX_TIME = (1 << 63) - 1
_AT_ONCE = 4096
_BIAS = 1 << 63
TIMES = "from -2**63 to 2**63 - 1 milliseconds"

# Keys of these types come back from their bytes as what they were.
EXACT_KEYS = frozenset({str, int, bytes, type(None)})


def time_bytes(time: int) -> bytes:
    """Eight bytes whose order is that of time."""
    return (time + _BIAS).to_bytes(8, "big")


def time_of(stored: bytes) -> int:
    return int.from_bytes(stored, "big") - _BIAS


Timer = tuple[int, bytes, bytes]
"""Time, bytes of the key, namespace."""


class TimerTable:
    """The timers of one operator and one kind of time in a subtask."""

    def __init__(
        self, name: str, scope: KeyScope, base: StateBase, key_groups: tuple[int, int]
    ) -> None:
        self.name = name
        self._scope = scope
        self._base = base
        self._key_groups = key_groups
        self._heap: list[Timer] = []
        self._keys: dict[Timer, Any] = {}
        """The live timers, with their keys. Those of the heap that are not here were deleted."""
        self._horizon = MIN_TIME - 1
        self._changed: dict[Timer, bytes | None] = {}
        self._over = False
        self._fresh: set[Timer] = set()
        """Those of the changed ones that the store cannot have: gone again, they leave no trace."""

    def register(self, time: int, namespace: bytes = b"") -> None:
        if not MIN_TIME <= time <= MAX_TIME:
            raise InvalidArgumentError.of("the time of a timer", TIMES, time)
        if self._over:
            return
        key = self._scope.key
        timer = (time, encode_key(key), namespace)
        if time <= self._horizon:
            if timer in self._keys:
                return
            self._keys[timer] = key
            heapq.heappush(self._heap, timer)
            if timer not in self._changed:
                self._fresh.add(timer)
        self._changed[timer] = b"" if type(key) in EXACT_KEYS else pickle.dumps(key, 5)

    def delete(self, time: int, namespace: bytes = b"") -> None:
        timer = (time, encode_key(self._scope.key), namespace)
        if time <= self._horizon and timer not in self._keys:
            return
        self._keys.pop(timer, None)
        self._remove(timer)
        if len(self._heap) > 2 * len(self._keys) + _AT_ONCE:
            # Most of it are deleted ones, whose time may be far off.
            self._heap[:] = self._keys
            heapq.heapify(self._heap)

    def _remove(self, timer: Timer) -> None:
        if timer in self._fresh:
            self._fresh.remove(timer)
            del self._changed[timer]
        else:
            self._changed[timer] = None

    def first(self, until: int) -> int | None:
        """The time of the first timer up to a time, None if there is none."""
        heap = self._heap
        while True:
            if heap and heap[0][0] <= until:
                if heap[0] in self._keys:
                    return heap[0][0]
                heapq.heappop(heap)
            elif self._horizon < until:
                self._advance_horizon()
            else:
                return None

    def due(self, until: int) -> Iterator[tuple[int, Any, bytes]]:
        """Take the timers up to a time, in order of time: each with its key and namespace.

        Whoever iterates may register and delete timers meanwhile.
        """
        heap, keys = self._heap, self._keys
        while True:
            if heap and heap[0][0] <= until:
                timer = heapq.heappop(heap)
                if timer in keys:
                    key = keys.pop(timer)
                    self._remove(timer)
                    yield timer[0], key, timer[2]
            elif self._horizon < until:
                self._advance_horizon()
            else:
                return

    def rest(self) -> Iterator[tuple[int, Any, bytes]]:
        """Take all timers, since time ends here: what is registered from now on is never due."""
        self._over = True
        return self.due(MAX_TIME)

    def _advance_horizon(self) -> None:
        """Load the next few timers."""
        before, loaded = self._horizon, 0
        horizon = MAX_TIME
        for timer, raw in heapq.merge(*map(self._stored, self._groups())):
            if loaded >= _AT_ONCE and timer[0] > horizon:
                break
            if loaded < _AT_ONCE:
                loaded += 1
            if loaded >= _AT_ONCE:
                horizon = timer[0]
            if timer not in self._changed:
                self._hold(timer, raw)
        else:
            horizon = MAX_TIME
        for timer, changed in self._changed.items():
            if changed is not None and before < timer[0] <= horizon:
                self._hold(timer, changed)
        heapq.heapify(self._heap)
        self._horizon = horizon

    def _hold(self, timer: Timer, raw: bytes) -> None:
        self._keys[timer] = pickle.loads(raw) if raw else decode_key(timer[1])
        self._heap.append(timer)

    def _groups(self) -> range:
        first, last = self._key_groups
        return range(first, last + 1)

    def _stored(self, group: int) -> Iterator[tuple[Timer, bytes]]:
        """Those behind the horizon."""
        begin = time_bytes(self._horizon + 1)
        for packed, raw in self._base.keys(self.name, (group, group), begin):
            found = unpack_key(packed)
            yield (time_of(found.key), found.namespace, found.map_key), raw

    # As a table of keyed state

    @property
    def pending(self) -> int:
        return len(self._changed)

    @property
    def held(self) -> int:
        return len(self._keys)

    def forget(self) -> None:
        self._heap.clear()
        self._keys.clear()
        self._horizon = MIN_TIME - 1

    def drop_empty(self) -> None:
        """There is nothing of the kind."""

    def snapshot(self, keep: int) -> Iterator[Entry]:
        for timer, raw in self._changed.items():
            yield self._entry(timer, raw)
        self._changed.clear()
        self._fresh.clear()
        if len(self._keys) > keep:
            self.forget()

    def _entry(self, timer: Timer, raw: bytes | None) -> Entry:
        time, key, namespace = timer
        group = self._base.group_of(key)
        return Entry(group, self._base.operator, self.name, time_bytes(time), key, namespace, raw)
