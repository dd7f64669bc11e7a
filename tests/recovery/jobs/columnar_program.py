"""Windows whose records are combined, by Spark or by the tasks that read the Parquet files, for a
job that is to be killed.

Nothing is late, so that what they give does not depend on how the input is cut.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pyarrow.compute as pc

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import MapFunction
from penstock.datastream import aggregates as agg
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.parquet import ParquetRecords
from penstock.datastream.window import TumblingEventTimeWindows

SCHEMA = "key string, ts bigint, number bigint"
SIZE = 10_000
BOUND = 3_000
STUCK_AT = 4 * SIZE
"""The start of the window at which the job waits to be killed."""
_AGGREGATE = agg.of(
    n=agg.count(),
    total=agg.sum("next"),
    mean=agg.avg("ts"),
    last=agg.max_by("next", "ts"),
    different=agg.count_distinct("next"),
)


def with_window(key: str, window: Any, results: Any) -> list[Any]:
    return [(key, window.start, *result) for result in results]


class StuckOnce(MapFunction):
    """Waits at one of the results, in the middle of an epoch; not if somebody did so before."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def map(self, value: Any) -> Any:
        if value[1] == STUCK_AT and not os.path.exists(self._marker):
            open(self._marker, "x").close()
            time.sleep(60)
        return value


_IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND))
_WINDOWS = TumblingEventTimeWindows.of(Duration.of_millis(SIZE))


def windowed(env: Any, frame: Any, marker: str) -> Any:
    """`frame` has the columns of the schema above; `marker` is there when the job is stuck."""
    from pyspark.sql import functions as F  # noqa: N812

    return (
        env.from_spark(frame, bounded=True)
        .uid("source")
        .filter(F.col("number") % 7 != 0)
        .map([F.col("key"), F.col("ts"), (F.col("number") + 1).alias("next")])
        .assign_timestamps_and_watermarks(_IN_TIME.with_timestamp_assigner(F.col("ts")))
        .uid("time")
        .key_by(F.col("key"))
        .window(_WINDOWS)
        .aggregate(_AGGREGATE, with_window)
        .uid("windows")
        .map(StuckOnce(marker))
    )


def windowed_files(env: Any, directory: str, marker: str) -> Any:
    """The same over files that the tasks read, with what they can combine."""
    number = pc.field("number")
    records = ParquetRecords(
        {"key": "key", "ts": "ts", "next": number + 1},
        where=number - pc.divide(number, 7) * 7 != 0,
    )
    source = FileSource.for_bulk_file_format(records, directory).in_time_order().build()
    return (
        env.from_source(source, _IN_TIME.with_timestamp_assigner("ts"), "files")
        .uid("source")
        .key_by("key")
        .window(_WINDOWS)
        .aggregate(
            agg.of(
                n=agg.count(), total=agg.sum("next"), mean=agg.avg("ts"), highest=agg.max("next")
            ),
            with_window,
        )
        .uid("windows")
        .map(StuckOnce(marker))
    )
