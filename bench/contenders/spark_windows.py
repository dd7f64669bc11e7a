"""Spark's own windowed aggregation over the same input, state in RocksDB, tuned fairly.

In update mode, which lets Spark give results as they change, so that all are seen at the end; each
is taken to the driver, where the last one of a key and window counts.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench.contenders.transform_with_state import rate_of, tuned_session
from bench.functions import COUNTED
from bench.jobs import files_stream
from bench.measure import Params, Result
from bench.processes import cpu_seconds
from bench.timed_data import OUT_OF_ORDER_MILLIS
from bench.window_functions import (
    AVERAGED,
    CHECKSUM,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    SLIDING,
    checksum,
)

_LOOK_SECONDS: Any = 0.1  # Spark's hint says int


def run(params: Params) -> Result:
    spark = tuned_session()
    size = f"{SIZE_MILLIS} milliseconds"
    slide = f"{SLIDE_MILLIS} milliseconds" if params["kind"] == SLIDING else size
    averages = (
        files_stream(spark, params)
        .select("id", F.timestamp_millis("ts").alias("time"), (F.col("temp") + 0.25).alias("temp"))
        .withWatermark("time", f"{OUT_OF_ORDER_MILLIS} milliseconds")
        .groupBy(F.window("time", size, slide), "id")
        .agg(F.count(F.lit(1)).alias("number"), F.avg("temp").alias("mean"))
        .select("id", F.unix_millis(F.col("window.end")).alias("end"), "number", "mean")
    )
    last: dict[tuple[str, int], tuple[int, float]] = {}

    def take(frame: DataFrame, batch: int) -> None:
        for sensor, end, number, mean in frame.collect():
            last[sensor, end] = number, mean

    started = time.perf_counter()
    query = (
        averages.writeStream.foreachBatch(take)
        .outputMode("update")
        .option("checkpointLocation", f"{params['scratch']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    cold_cpu = 0.0
    while not query.awaitTermination(_LOOK_SECONDS):
        if not cold_cpu and len(query.recentProgress) >= params["cold_epochs"]:
            cold_cpu = sum(cpu_seconds().values())
    warm_cpu = sum(cpu_seconds().values()) - cold_cpu
    seconds = time.perf_counter() - started
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    rows = sum(batch["numInputRows"] for batch in batches)
    warm = batches[params["cold_epochs"] :]
    return {
        "records": rows,
        "seconds": seconds,
        "rate": rows / seconds,
        "warm_rate": rate_of(warm),
        "cpu_micros": warm_cpu / sum(batch["numInputRows"] for batch in warm) * 1e6,
        "epoch_rates": [rate_of([batch]) for batch in batches],
        "taken": _taken(last),
    }


def _taken(last: dict[tuple[str, int], tuple[int, float]]) -> dict[str, int]:
    """As the sink of Penstock's jobs tells it."""
    return {
        COUNTED: len(last),
        AVERAGED: sum(number for number, _ in last.values()),
        CHECKSUM: sum(
            checksum((sensor, number, mean), end - 1)
            for (sensor, end), (number, mean) in last.items()
        ),
    }
