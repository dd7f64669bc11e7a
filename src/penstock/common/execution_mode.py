"""Flink 1.x's choice of how batch jobs exchange data. Not `RuntimeExecutionMode`."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """Without effect here: Spark decides."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3
