"""Event time as a task sees it: a watermark per input channel, and what follows from all of them.

A channel is one producing subtask on one edge. Every producer tells its watermark and whether it is
idle at the end of every epoch, so nothing about channels outlives an epoch: one that has not been
heard of yet is where the task itself is, since the task is where the slowest channel was.
"""

from __future__ import annotations

from collections.abc import Iterable

MIN_TIMESTAMP = -(1 << 63)
MAX_TIMESTAMP = (1 << 63) - 1

WATERMARK, IDLE, ACTIVE = 0, 1, 2

Control = tuple[int, int]
"""A kind and a time, which only a watermark has."""

Channel = tuple[int, int]
"""Edge and producing subtask."""


class Valve:
    """Lets a watermark through when all channels that are not idle have reached it."""

    def __init__(self, channels: Iterable[Channel], watermark: int = MIN_TIMESTAMP) -> None:
        self.watermark = watermark
        self.idle = False
        self._channels = tuple(channels)
        self._watermarks: dict[Channel, int] = {}
        self._idle: set[Channel] = set()
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget what was heard: it is told again."""
        self._watermarks = dict.fromkeys(self._channels, self.watermark)
        self._idle.clear()

    def receive(self, channel: Channel, control: Control) -> list[Control]:
        """What passes on after a channel said something."""
        kind, time = control
        if kind == WATERMARK:
            self._idle.discard(channel)
            self._watermarks[channel] = max(time, self._watermarks.get(channel, MIN_TIMESTAMP))
        elif kind == IDLE:
            self._idle.add(channel)
        else:
            self._idle.discard(channel)
        return self._changes()

    def _changes(self) -> list[Control]:
        changes: list[Control] = []
        active = [w for c, w in self._watermarks.items() if c not in self._idle]
        if self.idle and active:
            self.idle = False
            changes.append((ACTIVE, 0))
        # If all have gone idle, the one that held back the others does so no more.
        reached = min(active) if active else max(self._watermarks.values(), default=self.watermark)
        if reached > self.watermark:
            self.watermark = reached
            changes.append((WATERMARK, reached))
        if not active and self._watermarks and not self.idle:
            self.idle = True
            changes.append((IDLE, 0))
        return changes
