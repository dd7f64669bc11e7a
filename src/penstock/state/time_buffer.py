"""Records of a key in the order of their time, so that those of a span are found at once.

An entry's map key is the time, in bytes that sort like it. In memory each key has what is stored of
it from a floor on; of what lies below, just the span that is asked for is read, and kept if it
reaches the floor. If there are too many in memory, the earlier half goes: in a stream the later
ones find partners.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from penstock.state.backend import KeyScope, StateBase
from penstock.state.live import dump_value, load_value
from penstock.state.timers import MAX_TIME, MIN_TIME, time_bytes, time_of
from penstock.storage.entries import Entry

BY_TIME = "records by time"
"""The kind under which it is recorded."""

_FEW = 64
"""So many stored times of a key are read at once, whichever is asked for."""


class _Held:
    """What is in memory of one key: all from its floor on, and what has changed."""

    __slots__ = ("changed", "dropped", "floor", "records", "times")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.dropped = MIN_TIME - 1
        """All that is stored up to here is to be removed: none of it need be looked at again."""
        self.records: dict[int, list[Any]] = {}
        self.times: list[int] = []
        """Those of the records, sorted."""
        self.changed: dict[int, bool] = {}
        """Times whose records are to be written, or removed if there are none; and whether any
        of that time are stored."""

    def let_go(self, until: int) -> int:
        """Drop what is written, up to a time; how many records."""
        end = bisect_right(self.times, until)
        earlier = self.times[:end]
        stay = [time for time in earlier if time in self.changed]
        gone = [self.records.pop(time) for time in earlier if time not in self.changed]
        self.times[:end] = stay
        self.floor = max(self.floor, until + 1)
        return sum(map(len, gone))


class TimeBuffer:
    """Always that of the current key."""

    def __init__(
        self,
        name: str,
        scope: KeyScope,
        base: StateBase,
        serializer: tuple[Callable[[Any], bytes], Callable[[bytes], Any]],
    ) -> None:
        self.name = name
        self._scope = scope
        self._base = base
        self._dumps, self._loads = serializer
        self._keys: dict[Any, _Held] = {}
        self._changed: dict[Any, _Held] = {}
        """Those of the keys that have changes."""
        self._floor = MIN_TIME
        """That of the keys that are not in memory."""
        self._pending = 0
        self._settled = 0

    def add(self, time: int, record: Any) -> bool:
        """Put a record in; whether it is the only one in memory."""
        held = self._of_key(time)
        held.dropped = min(held.dropped, time - 1)
        found = held.records.get(time)
        if found is None and time < held.floor and time not in held.changed:
            found = self._reread(held, time)
        if found is None:
            held.records[time] = [record]
            insort(held.times, time)
            if time not in held.changed:
                self._change(held, time, False)
                self._pending += 1
        else:
            if time not in held.changed:
                self._change(held, time, True)
                self._settled -= len(found)
                self._pending += len(found)
            found.append(record)
            self._pending += 1
        return len(held.times) == 1

    def between(self, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """The records from one time to another, both included, with their times."""
        held = self._of_key(first)
        below = self._fetch(held, first, last) if first < held.floor else {}
        times, records = held.times, held.records
        found = times[bisect_left(times, first) : bisect_right(times, last)]
        if below:
            found = sorted([*found, *below])
        for time in found:
            for record in below[time] if time in below else records[time]:
                yield time, record

    def drop(self, last: int) -> int | None:
        """Remove the records up to a time; the time of the first that stays."""
        held = self._of_key(last + 1)
        times = held.times
        end = bisect_right(times, last)
        for time in times[:end]:
            self._remove(held, time)
        del times[:end]
        first = times[0] if times else None
        if held.floor > MIN_TIME:
            below = self._drop_below(held, last)
            first = below if first is None or below is None else min(below, first)
        held.dropped = max(held.dropped, last)
        if not held.changed:
            # A key that comes and goes in an epoch has nothing to be written.
            self._changed.pop(self._scope.key, None)
        return first

    def _drop_below(self, held: _Held, last: int) -> int | None:
        """The same of what is only stored. It need not be read for that."""
        for time, _ in self._stored(held.dropped + 1, held.floor - 1):
            if time not in held.changed:
                if time > last:
                    return time
                self._change(held, time, True)
                self._pending += 1
        held.floor = MIN_TIME
        return held.times[0] if held.times else None

    def _remove(self, held: _Held, time: int) -> None:
        records = len(held.records.pop(time))
        stored = held.changed.get(time)
        if stored is None:
            self._settled -= records
            self._change(held, time, True)
            self._pending += 1
        elif stored:
            self._pending += 1 - records
        else:
            self._pending -= records
            del held.changed[time]

    def _change(self, held: _Held, time: int, stored: bool) -> None:
        if not held.changed:
            self._changed[self._scope.key] = held
        held.changed[time] = stored

    def _of_key(self, time: int) -> _Held:
        """What is held of the current key; of one that is new in memory what is at hand, or from a
        time on if that is much."""
        held = self._keys.get(self._scope.key)
        if held is not None:
            return held
        stored = list(islice(self._stored(self._floor, MAX_TIME), _FEW + 1))
        floor = self._floor
        if len(stored) > _FEW:
            floor = max(floor, time)
            stored = list(self._stored(floor, MAX_TIME))
        held = self._keys[self._scope.key] = _Held(floor)
        held.times = [time for time, _ in stored]
        held.records = {time: self._load(raw) for time, raw in stored}
        self._settled += sum(map(len, held.records.values()))
        return held

    def _fetch(self, held: _Held, first: int, last: int) -> dict[int, list[Any]]:
        """What is stored of a span that begins below the floor, and nowhere in memory.

        If hardly anything lies between the span and the floor, all of it comes into memory instead:
        as time goes on, it will be asked for again."""
        stored: dict[int, bytes] = {}
        behind = 0
        for time, raw in self._stored(first, held.floor - 1):
            if time in held.records or time in held.changed:
                continue
            if time > last:
                behind += 1
                if behind > _FEW:
                    break
            stored[time] = raw
        else:
            found = {time: self._load(raw) for time, raw in stored.items()}
            # Few of those in memory are below the floor.
            at = bisect_left(held.times, held.floor)
            held.times[:at] = sorted([*found, *held.times[:at]])
            held.records.update(found)
            held.floor = first
            self._settled += sum(map(len, found.values()))
            return {}
        return {time: self._load(raw) for time, raw in stored.items() if time <= last}

    def _reread(self, held: _Held, time: int) -> list[Any] | None:
        """The records of a time below the floor, if there are any. They are about to change."""
        address = self._base.address(self.name, self._scope.key)
        raw = self._base.get(address, time_bytes(time))
        if raw is None:
            return None
        found = held.records[time] = self._load(raw)
        insort(held.times, time)
        self._settled += len(found)
        return found

    def _load(self, raw: bytes) -> list[Any]:
        found: list[Any] = load_value(self.name, self._loads, raw)
        return found

    def _stored(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        if first > last or first > MAX_TIME:
            return
        address = self._base.address(self.name, self._scope.key)
        for map_key, raw in self._base.scan(address, time_bytes(max(first, MIN_TIME))):
            time = time_of(map_key)
            if time > last:
                return
            yield time, raw

    # As a table of keyed state

    @property
    def pending(self) -> int:
        return self._pending

    @property
    def held(self) -> int:
        return max(len(self._keys) - len(self._changed), self._settled)

    def forget(self) -> None:
        """The earlier half of what is written, and all keys of which nothing is held."""
        times = sorted(
            time for held in self._keys.values() for time in held.times if time not in held.changed
        )
        if times:
            middle = times[len(times) // 2]
            self._floor = max(self._floor, middle + 1)
            for held in self._keys.values():
                self._settled -= held.let_go(middle)
        self.drop_empty()

    def drop_empty(self) -> None:
        for key in [key for key, held in self._keys.items() if not held.times and not held.changed]:
            del self._keys[key]

    def snapshot(self, keep: int) -> Iterator[Entry]:
        for key, held in self._changed.items():
            address = self._base.address(self.name, key)
            for time in held.changed:
                records = held.records.get(time)
                raw = None if records is None else dump_value(self.name, self._dumps, records)
                yield address.entry(raw, time_bytes(time))
                self._settled += len(records or ())
            held.changed.clear()
        self._changed.clear()
        self._pending = 0
        while self.held > keep:
            self.forget()
