"""Which promise a job keeps about each record when something fails."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee for state and for sinks that take part in checkpoints."""

    EXACTLY_ONCE = 0
    """Every record counts once in state and output."""
    AT_LEAST_ONCE = 1
    """After a failure a record may count again, none is lost."""
    AT_MOST_ONCE = 2
    """After a failure a record may be missing, none counts twice. (Not in Flink's enum.)"""
