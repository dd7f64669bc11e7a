"""Keyed count by Spark's transformWithState, on RocksDB with changelog checkpoints.

One state access per key and batch, where the others have one per record, since anything else would
be slower still. So its answers are those that the state holds at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.contenders.transform_with_state import tuned_session
from bench.measure import Params, Result
from bench.peers.engines.spark_files import frame_of
from bench.peers.functions import prepared

_STATE = "count_and_sum"


class CountOfKey(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState(_STATE, "count long, total double")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        count, total = self._state.get() or (0, 0.0)
        for row in rows:
            total += prepared(row)[2]
            count += 1
        self._state.update((count, total))
        yield Row(id=key[0], count=count)

    def close(self) -> None:
        pass


def run(params: Params) -> Result:
    spark = tuned_session()
    counts = (
        frame_of(spark, params, "readings")
        .groupBy("id")
        .transformWithState(CountOfKey(), "id string, count long", "Update", "None")
    )
    checkpoint = f"{params['scratch']}/checkpoint"
    query = (
        counts.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    stored = spark.read.format("statestore").option("stateVarName", _STATE).load(checkpoint)
    return {
        "final": stored.select(F.sum("value.count")).first()[0],
        "seconds": seconds_of(query.recentProgress, params),
    }


def seconds_of(batches: list[Any], params: Params) -> float:
    """Those of all batches behind the cold ones, those without input included."""
    cold = params["cold_files"] // params["files_per_epoch"]
    return sum(batch["durationMs"]["triggerExecution"] for batch in batches[cold:]) / 1000
