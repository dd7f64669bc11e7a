"""Records of a key in the order of their time, so that those of a span are found at once.

Stored as a map of time → records. The times of the keys in use are also in memory, sorted; as a
table of keyed state they are dropped when there are too many, and read again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from penstock.state.backend import KeyScope
from penstock.state.map_state import LiveMapState
from penstock.storage.entries import Entry


class TimeBuffer:
    """Always that of the current key."""

    def __init__(self, name: str, scope: KeyScope, records: LiveMapState) -> None:
        self.name = name
        self._scope = scope
        self._records = records
        self._times: dict[Any, list[int]] = {}
        self._held = 0

    def add(self, time: int, record: Any) -> bool:
        """Put a record in; whether it is the only one."""
        times = self._times_of_key()
        at = bisect_left(times, time)
        if at < len(times) and times[at] == time:
            found = self._records.get(time)
            found.append(record)
            self._records.put(time, found)
            return False
        self._records.put(time, [record])
        times.insert(at, time)
        self._held += 1
        return len(times) == 1

    def between(self, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """The records from one time to another, both included, with their times."""
        times = self._times_of_key()
        for time in times[bisect_left(times, first) : bisect_right(times, last)]:
            for record in self._records.get(time):
                yield time, record

    def drop(self, last: int) -> int | None:
        """Remove the records up to a time; the time of the first that stays."""
        times = self._times_of_key()
        end = bisect_right(times, last)
        for time in times[:end]:
            self._records.remove(time)
        del times[:end]
        self._held -= end
        return times[0] if times else None

    def _times_of_key(self) -> list[int]:
        times = self._times.get(self._scope.key)
        if times is None:
            times = self._times[self._scope.key] = sorted(self._records.present_keys())
            self._held += len(times)
        return times

    # As a table of keyed state: there is nothing in it that is not in the map

    @property
    def pending(self) -> int:
        return 0

    @property
    def held(self) -> int:
        return max(len(self._times), self._held)

    def forget(self) -> None:
        self._times.clear()
        self._held = 0

    def drop_empty(self) -> None:
        for key in [key for key, times in self._times.items() if not times]:
            del self._times[key]

    def snapshot(self, keep: int) -> list[Entry]:
        if self.held > keep:
            self.forget()
        return []
