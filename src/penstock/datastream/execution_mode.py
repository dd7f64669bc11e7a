"""Whether a job treats its input as a stream or as a finished batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING emits each update, BATCH final values only, AUTOMATIC asks the sources."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
