"""A source whose records come into being at a steady rate, each with the time at which it did; and
a sink that notes how old they are. Both by the clock of this one machine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bench.functions import Reading
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.functions import RuntimeContext, SinkFunction

CREATED = "created"
ARRIVED = "arrived"


class PacedSource(Source):
    """So many readings a second from now on. Records that wait to be read are as in a log: their
    content does not depend on when they are read."""

    gives_timestamps = False

    def __init__(self, rate: float, sensors: int) -> None:
        self.rate = rate
        self.sensors = sensors

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        start = time.time()
        return [Split(str(i), (start, i, parallelism), 0) for i in range(parallelism)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _PacedReader(self.rate, self.sensors)


class _PacedReader(SourceReader):
    def __init__(self, rate: float, sensors: int) -> None:
        self._rate = rate
        self._sensors = sensors

    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        start, offset, step = split.data
        due = int((time.time() - start) * self._rate - offset) // step + 1
        end = min(max(due, position), position + max_records)
        numbers = range(position * step + offset, end * step + offset, step)
        return ReadResult(list(self._records(start, numbers)), end, paused=end == due)

    def _records(self, start: float, numbers: range) -> Iterator[Reading]:
        millis, per_record, sensors = start * 1000, 1000 / self._rate, self._sensors
        for number in numbers:
            yield f"sensor_{number * 7919 % sensors}", int(millis + number * per_record), 20.0


class AgeSink(SinkFunction):
    """Gauges tell, for an epoch, how many of its records were created in which millisecond, and how
    many were how many milliseconds old when they arrived here."""

    def __init__(self) -> None:
        self._created: Counter[int] = Counter()
        self._ages: Counter[int] = Counter()

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        group.gauge(CREATED, self._take_created)
        group.gauge(ARRIVED, self._take_ages)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        created = value[1]
        self._created[created] += 1
        self._ages[int(time.time() * 1000) - created] += 1

    def _take_created(self) -> dict[int, int]:
        found, self._created = self._created, Counter()
        return dict(found)

    def _take_ages(self) -> dict[int, int]:
        found, self._ages = self._ages, Counter()
        return dict(found)
