"""The functions of the window benchmark; engine and bare loop run the same classes."""

from __future__ import annotations

import zlib
from typing import Any

from bench.functions import COUNTED, Reading
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.functions import (
    AggregateFunction,
    MapFunction,
    RuntimeContext,
    SinkFunction,
)

TUMBLING, SLIDING, SESSIONS = "tumbling", "sliding", "sessions"
SIZE_MILLIS = 60_000
SLIDE_MILLIS = 6_000
GAP_MILLIS = 15_000

AVERAGED, CHECKSUM = "averaged", "checksum"
TAKEN = (COUNTED, AVERAGED, CHECKSUM)
"""What the sink tells: results, records in them, and a sum over what the results say."""

_Sum = tuple[str, int, float]
"""Sensor, count, total."""


class Calibrate(MapFunction):
    """Adds what floats can add exactly, unlike a change to Fahrenheit."""

    def map(self, value: Reading) -> Reading:
        return value[0], value[1], value[2] + 0.25


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value: Reading, record_timestamp: int) -> int:
        return value[1]


class CountAndAverage(AggregateFunction):
    def create_accumulator(self) -> _Sum:
        return "", 0, 0.0

    def add(self, value: Reading, accumulator: _Sum) -> _Sum:
        return value[0], accumulator[1] + 1, accumulator[2] + value[2]

    def get_result(self, accumulator: _Sum) -> _Sum:
        sensor, count, total = accumulator
        return sensor, count, total / count

    def merge(self, acc_a: _Sum, acc_b: _Sum) -> _Sum:
        return acc_b[0] or acc_a[0], acc_a[1] + acc_b[1], acc_a[2] + acc_b[2]


def checksum(value: _Sum, timestamp: int | None) -> int:
    """Of a result, whose timestamp is the last of its window."""
    return zlib.crc32(repr((value, timestamp)).encode())


class CheckingSink(SinkFunction):
    """Adds up what arrives, in whatever order; gauges tell what came since they were last asked."""

    def __init__(self) -> None:
        self._sums = dict.fromkeys(TAKEN, 0)

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        for name in TAKEN:
            group.gauge(name, lambda name=name: self.taken(name))  # type: ignore[misc]

    def invoke(self, value: _Sum, context: SinkFunction.Context) -> None:
        sums = self._sums
        sums[COUNTED] += 1
        sums[AVERAGED] += value[1]
        sums[CHECKSUM] += checksum(value, context.timestamp())

    def taken(self, name: str) -> Any:
        taken, self._sums[name] = self._sums[name], 0
        return taken
