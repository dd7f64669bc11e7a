"""Event time as it follows from several channels: the slowest that is not idle decides.

A channel is one producing subtask on one edge, or one split of a source. Every producer tells its
watermark and whether it is idle at the end of every epoch, so nothing about those outlives an
epoch: one that has not been heard of yet is where the task itself is, since the task is where the
slowest channel was. Splits are known to their source alone, which keeps them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

MIN_TIMESTAMP = -(1 << 63)
MAX_TIMESTAMP = (1 << 63) - 1

WATERMARK, IDLE, ACTIVE = 0, 1, 2
AHEAD = 3
"""How old records can be that are still to come in this epoch: a line of a timetable, which only
tasks of a Spark source tell, to those that they send to."""

Control = tuple[int, int]
"""A kind and a time, which only a watermark has."""

Channel = Hashable


class Valve:
    """Lets a watermark through when all channels that are not idle have reached it.

    If all are idle, `leap` lets the newest of their watermarks through: none is held back then.
    """

    def __init__(
        self, channels: Iterable[Channel], watermark: int = MIN_TIMESTAMP, leap: bool = True
    ) -> None:
        self.watermark = watermark
        self.idle = False
        self._leap = leap
        self._channels = tuple(channels)
        self._watermarks: dict[Channel, int] = {}
        self._idle: set[Channel] = set()
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget what was heard: it is told again."""
        self._watermarks = dict.fromkeys(self._channels, self.watermark)
        self._idle.clear()

    def restore(self, channel: Channel, watermark: int, idle: bool) -> None:
        """Where a channel was. Nothing passes on until one says something."""
        self._watermarks[channel] = watermark
        if idle:
            self._idle.add(channel)

    def remove(self, channel: Channel) -> list[Control]:
        """What passes on once a channel is gone."""
        self._watermarks.pop(channel, None)
        self._idle.discard(channel)
        return self.changes()

    def receive(self, channel: Channel, control: Control) -> list[Control]:
        """What passes on after a channel said something."""
        kind, time = control
        if kind == WATERMARK:
            before = self._watermarks.get(channel, MIN_TIMESTAMP)
            self._watermarks[channel] = max(time, before)
            if before > self.watermark and channel not in self._idle:
                return []  # another one is the slowest, and still where it was
            self._idle.discard(channel)
        elif kind == IDLE:
            self._idle.add(channel)
        else:
            self._idle.discard(channel)
        return self.changes()

    def changes(self) -> list[Control]:
        """What has not been passed on yet."""
        changes: list[Control] = []
        active = [w for c, w in self._watermarks.items() if c not in self._idle]
        if self.idle and active:
            self.idle = False
            changes.append((ACTIVE, 0))
        known = active or (self._watermarks.values() if self._leap else ())
        reached = (min if active else max)(known, default=self.watermark)
        if reached > self.watermark:
            self.watermark = reached
            changes.append((WATERMARK, reached))
        if not active and self._watermarks and not self.idle:
            self.idle = True
            changes.append((IDLE, 0))
        return changes
