"""Windows by Penstock with Columns and built-in aggregates: Spark combines before records leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench import jobs
from bench.measure import Params, Result
from bench.peers.engines.penstock_job import answered
from bench.peers.engines.spark_files import frame_of
from bench.peers.functions import OUT_OF_ORDER_MILLIS, SIZE_MILLIS
from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.window import TumblingEventTimeWindows


def as_answer(key: str, window: Any, results: Any) -> Iterator[Any]:
    for result in results:
        yield key, result.latest, (result.number, result.mean)


def run(params: Params) -> Result:
    spark = jobs.session()  # before any Column is made
    env = jobs.environment(params)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MILLIS)
    ).with_timestamp_assigner(F.col("ts"))
    averages = (
        env.from_spark(frame_of(spark, params, "readings"), bounded=True)
        .map([F.col("id"), F.col("ts"), (F.col("temp") * 2 + 0.25).alias("temp")])
        .assign_timestamps_and_watermarks(strategy)
        .key_by("id")
        .window(TumblingEventTimeWindows.of(Duration.of_millis(SIZE_MILLIS)))
        .aggregate(
            agg.of(latest=agg.max("ts"), number=agg.count(), mean=agg.avg("temp")), as_answer
        )
    )
    return answered(env, averages, params)
