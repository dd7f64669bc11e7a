"""How old what is still to come can be, as a task of a Spark source knows it when it is through.

Such a task can tell its time only at the end of an epoch: what it reads comes in any order, and
other tasks read the rest of the source. But receivers begin when all who send to them have ended.
So each sender tells them, before all records, the least timestamp of each payload and those behind
it. From that a receiver knows, payload by payload, which times are over.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from penstock.runtime.watermarks import MIN_TIMESTAMP


class Timetable:
    """Of what one sender sends to one receiver in an epoch."""

    def __init__(self) -> None:
        self._payloads: list[tuple[int, int]] = []

    def note(self, timestamps: list[Any], behind: int) -> int:
        """A payload leaves: the time that says its place, which is not before another one's."""
        try:
            least = int(min(timestamps))
        except TypeError:  # some have none
            least = MIN_TIMESTAMP
        place = max(least, behind, MIN_TIMESTAMP + 1)  # before all of them is the timetable
        self._payloads.append((place, least))
        return place

    def take(self) -> list[int]:
        """For each payload the least timestamp that is still to come, its own included.

        In the order in which they arrive: by place, then as they left."""
        arriving = sorted(self._payloads, key=lambda payload: payload[0])
        times = list(accumulate((least for _, least in reversed(arriving)), min))
        self._payloads.clear()
        return times[::-1]


class Arrivals:
    """What a receiver knows from the timetables of all senders of an edge."""

    def __init__(self) -> None:
        self._times: dict[int, list[int]] = {}
        self._came: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._last: int | None = None

    def expect(self, sender: int, time: int) -> None:
        """The timetable of a sender goes on."""
        self._times.setdefault(sender, []).append(time)
        self._next.setdefault(sender, time)

    def arrive(self, sender: int) -> int | None:
        """A payload is there, and is about to be worked on: the least timestamp of it and of all
        that are still to come. None if that is not known."""
        if self._last is not None:
            self._gone(self._last)
        self._last = sender
        return min(self._next.values()) if sender in self._next else None

    def _gone(self, sender: int) -> None:
        if sender not in self._next:
            return
        at = self._came[sender] = self._came.get(sender, 0) + 1
        times = self._times[sender]
        if at < len(times):
            self._next[sender] = times[at]
        else:
            del self._next[sender]
