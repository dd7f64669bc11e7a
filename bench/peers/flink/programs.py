"""The programs as PyFlink's API has them. Penstock runs this very file: `pyflink` is its own there.

Each takes the streams of rows by name and gives the stream of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream
from pyflink.datastream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

from bench.peers.functions import (
    GAP_MILLIS,
    OUT_OF_ORDER_MILLIS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    added,
    average_of,
    is_warm,
    merged,
    nothing_yet,
    prepared,
    sensor_of,
    words_of,
)

READING = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])
"""Declared, since PyFlink is slower with pickled records."""
COUNT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
AVERAGE = Types.PICKLED_BYTE_ARRAY()
_SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MILLIS))


class Prepare(MapFunction):
    def map(self, value: Any) -> Any:
        return prepared(value)


class TimeOfReading(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


class Count(KeyedProcessFunction):
    """Updates the key's state for every record, and says how many there were."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count and sum", Types.PICKLED_BYTE_ARRAY())
        self._state = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count, total = self._state.value() or (0, 0.0)
        count += 1
        self._state.update((count, total + value[2]))
        yield value[0], value[1], count


class CountAndAverage(AggregateFunction):
    def create_accumulator(self) -> Any:
        return nothing_yet()

    def add(self, value: Any, accumulator: Any) -> Any:
        return added(accumulator, value)

    def get_result(self, accumulator: Any) -> Any:
        return average_of(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return merged(acc_a, acc_b)


def map_filter(rows: dict[str, DataStream]) -> DataStream:
    return rows["readings"].map(Prepare(), output_type=READING).filter(is_warm)


def keyed_count(rows: dict[str, DataStream]) -> DataStream:
    return (
        rows["readings"]
        .map(Prepare(), output_type=READING)
        .key_by(sensor_of, key_type=Types.STRING())
        .process(Count(), output_type=COUNT)
    )


class CountWords(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value[0], value[1], count


def word_count(rows: dict[str, DataStream]) -> DataStream:
    return (
        rows["lines"]
        .flat_map(words_of, output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(word_of, key_type=Types.STRING())
        .process(CountWords(), output_type=COUNT)
    )


def word_of(pair: Any) -> str:
    return pair[0]


class WholeSession(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterator[Any]:
        yield average_of(reduce(added, elements, nothing_yet()))


def _windowed(rows: dict[str, DataStream], assigner: Any) -> Any:
    return timed(rows["readings"]).key_by(sensor_of, key_type=Types.STRING()).window(assigner)


def _averaged(rows: dict[str, DataStream], assigner: Any) -> DataStream:
    return _windowed(rows, assigner).aggregate(
        CountAndAverage(), accumulator_type=Types.PICKLED_BYTE_ARRAY(), output_type=AVERAGE
    )


def timed(rows: DataStream) -> DataStream:
    """Readings with the time that they have in them."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MILLIS)
    ).with_timestamp_assigner(TimeOfReading())
    return rows.map(Prepare(), output_type=READING).assign_timestamps_and_watermarks(strategy)


def tumbling(rows: dict[str, DataStream]) -> DataStream:
    return _averaged(rows, TumblingEventTimeWindows.of(Time.milliseconds(SIZE_MILLIS)))


def sliding(rows: dict[str, DataStream]) -> DataStream:
    size, slide = Time.milliseconds(SIZE_MILLIS), Time.milliseconds(SLIDE_MILLIS)
    return _averaged(rows, SlidingEventTimeWindows.of(size, slide))


def sessions(rows: dict[str, DataStream]) -> DataStream:
    return _averaged(rows, _SESSIONS)


def sessions_by_process(rows: dict[str, DataStream]) -> DataStream:
    return _windowed(rows, _SESSIONS).process(WholeSession(), output_type=AVERAGE)
