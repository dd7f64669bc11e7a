"""What a profiled task tells the driver: how long it was seen in which stack. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Of one task in one epoch. Beyond that, time is only told by operator and kind of work.
MOST_STACKS = 4_000
MOST_FRAMES = 48

OPERATOR = ""
"""The kind of work that is the operator's own: its code and the user's."""
WAITING = "waiting for input"
HANDING_OVER = "handing rows over"
OPENING = "opening functions"
DECODE = "decode"
ENCODE = "encode"
ROUTING = "keys and routing"
STATE_READ = "state read"
STATE_WRITE = "state write"
SEGMENT = "segment writing"
CATCH_UP = "store catch-up"
COORDINATION = "task coordination"

NOT_WORK = (WAITING, HANDING_OVER)
"""Kinds in which the task depends on others."""


@dataclass(frozen=True)
class Spot:
    """Where a task was seen: its vertex, the operator it worked for, on what, and its stack."""

    vertex: int
    operator: str | None
    """Its uid; None if the time is no operator's."""
    kind: str
    frames: tuple[str, ...] = ()
    """From the operator's call inward; a kind of work in brackets where it begins."""


@dataclass
class TaskProfile:
    """Of one attempt at a task."""

    micros: dict[Spot, int] = field(default_factory=dict)
    samples: int = 0
    records: dict[str, int] = field(default_factory=dict)
    """Operator uid → how many records it took, of those behind the head of a chain."""

    def add(self, spot: Spot, micros: int, most: int = MOST_STACKS) -> None:
        if spot not in self.micros and len(self.micros) >= most:
            spot = Spot(spot.vertex, spot.operator, spot.kind)
        self.micros[spot] = self.micros.get(spot, 0) + micros

    def count(self, records: Mapping[str, int]) -> None:
        for uid, number in records.items():
            self.records[uid] = self.records.get(uid, 0) + number
