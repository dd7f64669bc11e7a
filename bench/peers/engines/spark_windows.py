"""Spark's own windowed aggregation, on RocksDB: all of it in the JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench.contenders.transform_with_state import tuned_session
from bench.measure import Params, Result
from bench.peers.engines.orders import paths_in
from bench.peers.engines.spark_files import linked
from bench.peers.engines.spark_state import seconds_of
from bench.peers.functions import OUT_OF_ORDER_MILLIS, SIZE_MILLIS

_END = "end of input"
_MUCH_LATER = 3_600_000


def run(params: Params) -> Result:
    """Windows are emitted once, when they are complete. Answers are added up as they leave."""
    spark = tuned_session()
    files = (
        spark.readStream.schema(params["schemas"]["readings"])
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .parquet(str(_with_end(params)))
    )
    averages = (
        files.select("id", F.timestamp_millis("ts").alias("at"), F.expr("temp * 2 + 0.25 AS temp"))
        .withWatermark("at", f"{OUT_OF_ORDER_MILLIS} milliseconds")
        .groupBy(F.window("at", f"{SIZE_MILLIS} milliseconds"), "id")
        .agg(F.count("*").alias("count"), F.avg("temp").alias("average"))
        .observe(
            "answers",
            F.count(F.lit(1)).alias("outputs"),
            F.sum(F.expr("count * 1000003 + floor(average * 1024)")).alias("checksum"),
        )
    )
    query = (
        averages.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", f"{params['scratch']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = query.recentProgress
    observed: list[Any] = [batch.observedMetrics.get("answers") for batch in batches]
    return {
        "outputs": sum(row["outputs"] for row in observed if row),
        "checksum": sum(row["checksum"] or 0 for row in observed if row),
        "seconds": seconds_of(batches, params),
    }


def _with_end(params: Params) -> Path:
    """The files, and one more with a record of much later: Spark has no end of input in time."""
    directory = linked(params, "readings")
    paths = paths_in(params, "readings")
    last = pq.read_table(paths[-1], columns=["ts"])["ts"][-1].as_py()
    end = pa.table({"id": [_END], "ts": [last + _MUCH_LATER], "temp": [0.0]})
    pq.write_table(end, directory / f"g{len(paths)}.parquet")
    return directory
