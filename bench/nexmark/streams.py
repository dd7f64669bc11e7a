"""The three kinds of events as streams: what the queries begin with, on either executor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.nexmark.files import SPARK_SCHEMA
from bench.nexmark.generator import AUCTION, BID, PERSON
from bench.nexmark.source import EventSource
from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment

OUT_OF_ORDER = Duration.of_seconds(4)
"""More than events are ever delayed by, so none is late."""


def _time_of(event: Any, _: int) -> int:
    time: int = event[-1]
    return time


BY_EVENT_TIME = WatermarkStrategy.for_bounded_out_of_orderness(
    OUT_OF_ORDER
).with_timestamp_assigner(_time_of)


@dataclass(frozen=True)
class Streams:
    """Streams of tuples: the columns asked for, and behind them when the event happened."""

    env: StreamExecutionEnvironment
    directory: str
    spark: Any = None
    """A session, by which events are read; without, they are read by Python."""
    files_per_epoch: int = 8
    linger: float = 0.0
    """Seconds between the last event and the end of the input, for what follows the clock."""

    def people(self, *columns: str, event_time: bool = False) -> DataStream:
        return self._stream(PERSON, "people", columns, event_time)

    def auctions(self, *columns: str, event_time: bool = False) -> DataStream:
        return self._stream(AUCTION, "auctions", columns, event_time)

    def bids(self, *columns: str, event_time: bool = False) -> DataStream:
        return self._stream(BID, "bids", columns, event_time)

    def _stream(self, kind: int, name: str, asked: tuple[str, ...], event_time: bool) -> DataStream:
        columns = (*asked, "date_time")
        strategy = BY_EVENT_TIME if event_time else WatermarkStrategy.no_watermarks()
        if self.spark is None or self.linger:
            source = EventSource(self.directory, kind, columns, self.linger)
            return self.env.from_source(source, strategy, name)
        events = (
            self.spark.readStream.schema(SPARK_SCHEMA)
            .option("maxFilesPerTrigger", self.files_per_epoch)
            .parquet(self.directory)
        )
        mine = events.where(f"event_type = {kind}").select(*columns)
        return self.env.from_spark(
            mine, record_type=tuple, watermark_strategy=strategy, bounded=True
        )
