"""Windows by Penstock with built-in aggregates: Spark combines records before they leave it, or the
tasks that read the files do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench import jobs
from bench.measure import Params, Result
from bench.peers.engines import penstock_files
from bench.peers.engines.penstock_job import answered
from bench.peers.engines.spark_files import frame_of
from bench.peers.functions import OUT_OF_ORDER_MILLIS, SIZE_MILLIS
from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.formats.parquet import ParquetRecords
from penstock.datastream.window import TumblingEventTimeWindows


def as_answer(key: str, window: Any, results: Any) -> Iterator[Any]:
    for result in results:
        yield key, result.latest, (result.number, result.mean)


_WINDOWS = TumblingEventTimeWindows.of(Duration.of_millis(SIZE_MILLIS))
_AGGREGATES = agg.of(latest=agg.max("ts"), number=agg.count(), mean=agg.avg("temp"))
_IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDER_MILLIS))


def run(params: Params) -> Result:
    spark = jobs.session()  # before any Column is made
    env = jobs.environment(params)
    averages = (
        env.from_spark(frame_of(spark, params, "readings"), bounded=True)
        .map([F.col("id"), F.col("ts"), (F.col("temp") * 2 + 0.25).alias("temp")])
        .assign_timestamps_and_watermarks(_IN_TIME.with_timestamp_assigner(F.col("ts")))
        .key_by("id")
        .window(_WINDOWS)
        .aggregate(_AGGREGATES, as_answer)
    )
    return answered(env, averages, params)


def by_tasks(params: Params) -> Result:
    jobs.session()
    env = jobs.environment(params)
    columns = {"id": "id", "ts": "ts", "temp": pc.field("temp") * 2 + 0.25}
    source = penstock_files.source_of(params, "readings", ParquetRecords(columns))
    strategy = _IN_TIME.with_timestamp_assigner("ts")
    averages = (
        env.from_source(source, strategy, "readings")
        .uid(penstock_files.uid_of("readings"))
        .key_by("id")
        .window(_WINDOWS)
        .aggregate(_AGGREGATES, as_answer)
    )
    return penstock_files.answered(env, averages, params)
