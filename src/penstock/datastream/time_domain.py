"""The two clocks a timer can belong to."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Event time follows the watermark, processing time the machine's clock."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
