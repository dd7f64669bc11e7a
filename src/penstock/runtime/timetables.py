"""How old what is still to come can be, as a task of a Spark source knows it when it is through.

Such a task can tell its time only at the end of an epoch: what it reads comes in any order, and
other tasks read the rest of the source. But receivers begin when all who send to them have ended.
So each sender tells them, before all records, the least timestamp of each payload and those behind
it. From that a receiver knows, payload by payload, which times are over.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP

_STEPS = 64
"""By about so many steps goes the time of a source within an epoch: each has its cost, and few
suffice for little to be held."""
_FIRST_PLACE = MIN_TIMESTAMP + 1
"""Before it is the timetable."""


class Timetable:
    """Of what one sender sends to one receiver in an epoch."""

    def __init__(self) -> None:
        self._payloads: list[tuple[int, int]] = []
        self._behind = _FIRST_PLACE
        self.in_part = 0
        """How many records have left since a part began."""

    def begin_part(self) -> None:
        """What leaves from now on is in no order with what has left."""
        self._behind = _FIRST_PLACE
        self.in_part = 0

    def note(self, timestamps: list[Any]) -> int:
        """A payload leaves: the time that says its place, which is not before that of another one
        of its part."""
        try:
            least = int(min(timestamps))
        except TypeError:  # some have none
            least = MIN_TIMESTAMP
        self._behind = min(max(least, self._behind), MAX_TIMESTAMP)
        self._payloads.append((self._behind, least))
        self.in_part += len(timestamps)
        return self._behind

    def take(self) -> list[int]:
        """For each payload the least timestamp that is still to come, its own included.

        In the order in which they arrive: by place, then as they left."""
        arriving = sorted(self._payloads, key=lambda payload: payload[0])
        times = list(accumulate((least for _, least in reversed(arriving)), min))
        self._payloads.clear()
        self.begin_part()
        return times[::-1]


class Arrivals:
    """What a receiver knows from the timetables of all senders of an edge."""

    def __init__(self) -> None:
        self.expected = 0
        """How many payloads in all."""
        self._times: dict[int, list[int]] = {}
        self._next: dict[int, int] = {}
        """Of each sender that is not through: which line of its timetable is next."""
        self._passed = 0

    def expect(self, sender: int, time: int) -> None:
        """The timetable of a sender goes on."""
        self._times.setdefault(sender, []).append(time)
        self._next.setdefault(sender, 0)
        self.expected += 1

    def passed(self, sender: int) -> bool:
        """A payload is through: whether it is time for a step."""
        if sender not in self._next:
            return False
        self._next[sender] += 1
        if self._next[sender] == len(self._times[sender]):
            del self._next[sender]
        self._passed += 1
        return not self._next or self._passed % max(self.expected // _STEPS, 1) == 0

    @property
    def least(self) -> int | None:
        """The least timestamp that is still to come; None if none is."""
        return min((self._times[sender][at] for sender, at in self._next.items()), default=None)
