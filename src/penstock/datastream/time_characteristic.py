"""Flink 1.x's setting of what time means for a program; newer programs use watermark strategies."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """ProcessingTime: no periodic watermarks. IngestionTime: sources stamp records by the clock."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
