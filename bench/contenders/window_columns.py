"""Windows by Penstock, with Columns and built-in aggregates, which Spark combines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench.contenders.window_job import ASSIGNERS, results_of
from bench.jobs import environment, files_stream, session
from bench.measure import Params, Result
from bench.timed_data import OUT_OF_ORDER_MILLIS
from bench.window_functions import CheckingSink
from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg


def as_tuple(key: str, window: Any, results: Any) -> Iterator[tuple[str, int, float]]:
    for result in results:
        yield key, result.number, result.mean


def run(params: Params) -> Result:
    spark = session()
    env = environment(params)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MILLIS)
    ).with_timestamp_assigner(F.col("ts"))
    (
        env.from_spark(files_stream(spark, params), bounded=True)
        .map([F.col("id"), F.col("ts"), (F.col("temp") + 0.25).alias("temp")])
        .assign_timestamps_and_watermarks(strategy)
        .key_by("id")
        .window(ASSIGNERS[params["kind"]])
        .aggregate(agg.of(number=agg.count(), mean=agg.avg("temp")), as_tuple)
        .add_sink(CheckingSink())
    )
    assert "partial results merged" in env.explain(), "the columnar lane is not taken"
    return results_of(env, params)
