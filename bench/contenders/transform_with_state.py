"""Spark's own keyed state from Python, written to be as fast as it can fairly be.

One state access per key and batch, where the others have one per record, and one output row per
key and batch instead of one per record.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench import data
from bench.functions import ToFahrenheit
from bench.jobs import MASTER
from bench.measure import Params, Result
from bench.processes import cpu_seconds

_SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Progress of every batch is looked at in the end.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
_LOOK_SECONDS: Any = 0.1  # Spark's hint says int


class CountAndSumOfKey(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("count and sum", "count long, total double")
        self._change = ToFahrenheit().map

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        count, total = self._state.get() or (0, 0.0)
        change = self._change
        for row in rows:
            total += change(row)[2]
            count += 1
        self._state.update((count, total))
        yield Row(id=key[0], count=count)

    def close(self) -> None:
        pass


def run(params: Params) -> Result:
    spark = tuned_session()
    frame = (
        spark.readStream.schema(data.SCHEMA)
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .option("pathGlobFilter", data.first_files(params["files"]))
        .parquet(params["input"])
        .groupBy("id")
        .transformWithState(CountAndSumOfKey(), "id string, count long", "Update", "None")
    )
    started = time.perf_counter()
    query = (
        frame.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", f"{params['scratch']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    cold_cpu = 0.0
    while not query.awaitTermination(_LOOK_SECONDS):
        if not cold_cpu and len(query.recentProgress) == params["cold_epochs"]:
            cold_cpu = sum(cpu_seconds().values())
    warm_cpu = sum(cpu_seconds().values()) - cold_cpu
    seconds = time.perf_counter() - started
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    rates = [rate_of([batch]) for batch in batches]
    rows = sum(batch["numInputRows"] for batch in batches)
    warm = sum(batch["numInputRows"] for batch in batches[params["cold_epochs"] :])
    return {
        "outputs": rows,
        "seconds": seconds,
        "rate": rows / seconds,
        "warm_rate": rate_of(batches[params["cold_epochs"] :]),
        "cpu_micros": warm_cpu / warm * 1e6,
        "epoch_rates": rates,
    }


def tuned_session() -> SparkSession:
    """With what is known to make state from Python or RocksDB fast."""
    builder = SparkSession.builder.master(MASTER).appName("bench")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def rate_of(batches: list[Any]) -> float:
    """Rows a second, of batches as a query reports them."""
    rows = sum(int(batch["numInputRows"]) for batch in batches)
    millis = sum(int(batch["durationMs"]["triggerExecution"]) for batch in batches)
    return rows / millis * 1000
