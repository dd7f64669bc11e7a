"""The demo's program: readings → running average and alerts per sensor → a live table.

Runs on workers, so it must not know the terminal: the sink's committer hands what was committed
to a `Board` of the driver's process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import Types
from penstock.datastream.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    InitContext,
    ReadResult,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    Split,
    WriterContext,
)
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.demo.board import BOARDS, Average, Board

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

SENSORS = 20
SOURCE_UID = "sensors"
_READINGS_PER_ROUND = 2000  # of one sensor, from warm to cold to warm
_HOT = 30.0
_COOL = 29.0
_JUMP = 3.0
_GLITCH = 4.5
_GLITCHES = 4000  # one in so many readings
_LARGEST_BACKLOG_MILLIS = 2000


def reading(index: int) -> tuple[str, int, float]:
    """The reading number `index` of all; the same each time it is asked for."""
    sensor, number = index % SENSORS, index // SENSORS + 1
    mixed = index * 2_654_435_761 & 0xFFFFFFFF
    noise = mixed / 0xFFFFFFFF
    swing = math.sin(math.tau * (number / _READINGS_PER_ROUND + sensor / SENSORS))
    temperature = 21 + sensor * 0.2 + 6 * swing + 0.4 * noise
    if (mixed >> 8) % _GLITCHES == 17:
        temperature += _GLITCH
    return f"s{sensor + 1:02d}", number, round(temperature, 2)


class SensorReadings(Source):
    """`count` readings at `rate` per second over all subtasks.

    The pace is part of the position. After a longer pause, such as that between a kill and a
    restart, it goes on at that pace and does not make up for what was not read meanwhile.
    """

    def __init__(self, count: int, rate: float) -> None:
        self.count = count
        self.rate = rate

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(str(i), (i, parallelism), (i, None)) for i in range(parallelism)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _SensorReader(self)


class _SensorReader(SourceReader):
    def __init__(self, source: SensorReadings) -> None:
        self._source = source

    def read(
        self, split: Split, position: tuple[int, float | None], max_records: int
    ) -> ReadResult:
        """A position is (next index, milliseconds at which it is due)."""
        index, due_at = position
        _, step = split.data
        now = time.time() * 1000
        millis_each = 1000 * step / self._source.rate
        due_at = now if due_at is None else max(due_at, now - _LARGEST_BACKLOG_MILLIS)
        due = min(max_records, int((now - due_at) / millis_each))
        indexes = range(index, min(index + due * step, self._source.count), step)
        index += len(indexes) * step
        return ReadResult(
            [reading(i) for i in indexes],
            (index, due_at + len(indexes) * millis_each),
            finished=index >= self._source.count,
        )


class RunningAverage(KeyedProcessFunction):
    """Counts and averages the temperatures of each sensor."""

    STATE = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.DOUBLE()]))

    def open(self, runtime_context: RuntimeContext) -> None:
        self._average = runtime_context.get_state(self.STATE)

    def process_element(
        self, value: tuple[str, int, float], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[Any, ...]]:
        sensor, number, temperature = value
        count, mean = self._average.value() or (0, 0.0)
        count += 1
        mean += (temperature - mean) / count
        self._average.update((count, mean))
        yield sensor, number, temperature, mean, count


class TemperatureAlert(KeyedProcessFunction):
    """Tells when a sensor gets hot, or jumps from one reading to the next."""

    STATE = ValueStateDescriptor("last", Types.TUPLE([Types.DOUBLE(), Types.BOOLEAN()]))

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(self.STATE)

    def process_element(
        self, value: tuple[str, int, float], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[Any, ...]]:
        sensor, number, temperature = value
        last, hot = self._last.value() or (temperature, False)
        if temperature - last > _JUMP:
            yield sensor, number, f"jumped by {temperature - last:.1f}°"
        elif temperature > _HOT and not hot:
            yield sensor, number, f"rose above {_HOT:.0f}°"
        self._last.update((temperature, temperature > (_COOL if hot else _HOT)))


class BoardSink(Sink):
    """Shows averages, the newest of each sensor, or alerts on a board of the driver."""

    def __init__(self, board: str, what: str) -> None:
        self._board = board
        self._what = what

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _BoardWriter(self._what)

    def create_committer(self) -> Committer:
        return _BoardCommitter(BOARDS[self._board], self._what)


class _BoardWriter(SinkWriter):
    def __init__(self, what: str) -> None:
        self._all = what == "alerts"
        self._records: dict[Any, tuple[Any, ...]] = {}

    def write(self, value: tuple[Any, ...], context: WriterContext) -> None:
        self._records[value[:2] if self._all else value[0]] = value

    def prepare_commit(self) -> list[Any]:
        records, self._records = self._records, {}
        return [list(records.values())] if records else []


class _BoardCommitter(Committer):
    """The board keeps the newest by sensor and alerts by number: committing twice is harmless."""

    def __init__(self, board: Board, what: str) -> None:
        self._board = board
        self._what = what

    def commit(self, committables: list[Committable]) -> None:
        for record in (record for item in committables for record in item.data):
            if self._what == "alerts":
                self._board.alert(*record)
            else:
                self._board.average(Average(*record))


def build(env: StreamExecutionEnvironment, count: int, rate: float, board: str) -> None:
    """Add the demo's program to an environment."""
    readings = env.from_source(SensorReadings(count, rate), source_name="sensors").uid(SOURCE_UID)
    by_sensor = readings.key_by(0)
    averages = by_sensor.process(RunningAverage()).name("running average").uid("average")
    averages.sink_to(BoardSink(board, "averages")).name("table").uid("table")
    alerts = by_sensor.process(TemperatureAlert()).name("temperature alert").uid("alert")
    alerts.sink_to(BoardSink(board, "alerts")).name("alerts").uid("alerts")
