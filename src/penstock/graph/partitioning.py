"""How records go from the subtasks of one operator to those of the next: each way is a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Partitioning:
    """Base of all ways. ``label`` is what explain shows."""

    @property
    def label(self) -> str:
        return type(self).__name__.upper()


@dataclass(frozen=True)
class Forward(Partitioning):
    """Subtask i to subtask i. ``explicit``: asked for by the user, so it must be possible."""

    explicit: bool = False


@dataclass(frozen=True)
class Rebalance(Partitioning):
    """Round robin over all subtasks."""


@dataclass(frozen=True)
class Shuffle(Partitioning):
    """A random subtask for each record."""


@dataclass(frozen=True)
class Rescale(Partitioning):
    """Round robin over the few subtasks that this subtask is paired with."""


@dataclass(frozen=True)
class Broadcast(Partitioning):
    """Every record to every subtask."""


@dataclass(frozen=True)
class Global(Partitioning):
    """Everything to subtask 0."""


@dataclass(frozen=True)
class Custom(Partitioning):
    """The user's function chooses the subtask by the record's key."""

    partition: Callable[[Any, int], int]
    select: Callable[[Any], Any]


@dataclass(frozen=True)
class ByKey(Partitioning):
    """The subtask that owns the key group of the record's key."""

    select: Callable[[Any], Any]
    key_type: Any = None

    @property
    def label(self) -> str:
        return "HASH"


def rescale_targets(sender: int, senders: int, receivers: int) -> range:
    """The receivers that a sender is paired with: each pair within a contiguous block.

    With more receivers than senders the receivers are dealt out in blocks; with fewer, several
    senders share one receiver.
    """
    if receivers >= senders:
        return range(sender * receivers // senders, (sender + 1) * receivers // senders)
    target = sender * receivers // senders
    return range(target, target + 1)
