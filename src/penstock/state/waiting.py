"""Records that wait for their time, kept in the order in which they will be handed over.

That order is total: time, key, channel, arrival. In the store an entry's key is the time, its
namespace the record's key, its map key the place among records of that time and key; so what is due
comes first in a scan. Records that came since the last snapshot are in memory only; most are handed
over before the next one and never written. A written one stays in memory too, unless there are too
many: then those beyond a horizon are only in the store, and come back when time gets near them.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.state.backend import Channel, KeyScope, StateBase
from penstock.state.live import dump_value, load_value
from penstock.state.timers import MAX_TIME, MIN_TIME, time_bytes, time_of
from penstock.storage.entries import Entry, unpack_key

WAITING = "_waiting"
"""The name under which an operator's waiting records are stored."""

_AT_ONCE = 4096
# So many keys remember their bytes; then the memory starts anew.
_MOST_KEYS = 100_000
# Fewer new records than this part of those in order are put in one by one.
_FEW = 16
_CHANNEL = struct.Struct(">BHI")
_ARRIVAL_BYTES = 12

Place = tuple[int, bytes, Channel, int]
"""Time, key's bytes, channel, arrival: where a record stands among the others. No two are equal."""

Record = tuple[int, bytes, Channel, int, Any, Any]
"""A place, and the key and the record themselves, which are never compared."""


class WaitingTable:
    """The waiting records of one operator in a subtask."""

    def __init__(
        self,
        name: str,
        scope: KeyScope,
        base: StateBase,
        key_groups: tuple[int, int],
        serializer: tuple[Callable[[Any], bytes], Callable[[bytes], Any]],
        chunk_number: Callable[[], int],
    ) -> None:
        self.name = name
        self._scope = scope
        self._base = base
        self._key_groups = key_groups
        self._dumps, self._loads = serializer
        self._chunk_number = chunk_number
        self._arrival = 0
        self._key_bytes: dict[Any, bytes] = {}
        self._arrived: list[Record] = []
        self._new: list[Record] = []
        """In order, not written yet."""
        self._settled: list[Record] = []
        """In order, written: all of those up to the horizon."""
        self._horizon = MIN_TIME - 1
        self._gone: list[Place] = []
        """Written, and handed over since."""

    def add(self, values: Iterable[Any], reached: int, refuse: Callable[[Any], None]) -> None:
        """Keep the records of a run, with the scope's key and time. `refuse` is called with those
        that cannot wait: their time was reached before, or they have none that could be."""
        scope, known, append = self._scope, self._key_bytes, self._arrived.append
        channel = scope.channel
        # Beyond what any instance before this one has given: those were of earlier epochs.
        arrival = max(self._arrival, self._chunk_number() << 32)
        for value in values:
            time = scope.timestamp
            if time is None or not reached < time <= MAX_TIME:
                refuse(value)
                continue
            key = scope.key
            try:
                key_bytes = known[key]
            except KeyError:
                key_bytes = self._encoded(key)
            arrival += 1
            append((time, key_bytes, channel, arrival, key, value))
        self._arrival = arrival

    def _encoded(self, key: Any) -> bytes:
        if len(self._key_bytes) >= _MOST_KEYS:
            self._key_bytes.clear()
        found = self._key_bytes[key] = self._base.address(self.name, key).key
        return found

    def take(self, until: int) -> list[Record]:
        """Take records up to a time out of the table, in order: all of one time together, but not
        more at once than there is room for. Nothing if none is due."""
        self._sort_in()
        while True:
            reach = min(until, self._horizon)
            due = self._cut(reach)
            if due or reach == until:
                return due
            self._advance_horizon()

    def _sort_in(self) -> None:
        arrived, new = self._arrived, self._new
        if not arrived:
            return
        if len(arrived) * _FEW < len(new):
            for record in arrived:
                insort(new, record)
        else:
            new += arrived
            new.sort()
        arrived.clear()

    def _cut(self, reach: int) -> list[Record]:
        due, new = _taken(self._settled, reach), _taken(self._new, reach)
        self._gone += [record[:4] for record in due]
        if not due:
            return new
        if new:
            due += new
            due.sort()
        return due

    def _advance_horizon(self) -> None:
        """Read the next few records back. What was handed over lies before the horizon, so none of
        it comes again."""
        first, last = self._key_groups
        found = self._settled
        for place, raw in heapq.merge(*map(self._stored, range(first, last + 1))):
            if len(found) >= _AT_ONCE and place[0] > found[-1][0]:
                self._horizon = found[-1][0]
                return
            key, value = load_value(self.name, self._loads, raw)
            found.append((*place, key, value))
        self._horizon = MAX_TIME

    def _stored(self, group: int) -> Iterator[tuple[Place, bytes]]:
        """What a key group has behind the horizon."""
        begin = time_bytes(self._horizon + 1)
        for packed, raw in self._base.keys(self.name, (group, group), begin):
            found = unpack_key(packed)
            channel: Channel = _CHANNEL.unpack_from(found.map_key)
            arrival = int.from_bytes(found.map_key[_CHANNEL.size :], "big")
            yield (time_of(found.key), found.namespace, channel, arrival), raw

    # As a table of keyed state

    @property
    def pending(self) -> int:
        return len(self._arrived) + len(self._new) + len(self._gone)

    @property
    def held(self) -> int:
        return len(self._settled)

    def forget(self) -> None:
        """The later half: the others are needed soon."""
        settled = self._settled
        if settled:
            self._horizon = settled[len(settled) // 2][0] - 1
            self._settled = _taken(settled, self._horizon)

    def drop_empty(self) -> None:
        """There is nothing of the kind."""

    def snapshot(self, keep: int) -> Iterator[Entry]:
        self._sort_in()
        for gone in self._gone:
            yield self._entry(gone, None)
        for record in self._new:
            yield self._entry(record[:4], dump_value(self.name, self._dumps, record[4:]))
        self._gone.clear()
        if near := _taken(self._new, self._horizon):
            self._settled += near
            self._settled.sort()
        self._new.clear()
        while len(self._settled) > keep:
            self.forget()

    def _entry(self, place: Place, raw: bytes | None) -> Entry:
        time, key_bytes, channel, arrival = place
        return Entry(
            self._base.group_of(key_bytes),
            self._base.operator,
            self.name,
            time_bytes(time),
            key_bytes,
            _CHANNEL.pack(*channel) + arrival.to_bytes(_ARRIVAL_BYTES, "big"),
            raw,
        )


def _taken(records: list[Record], until: int) -> list[Record]:
    """Cut off what begins a list: the records up to a time."""
    end = bisect_left(records, (until + 1,))
    taken = records[:end]
    del records[:end]
    return taken
