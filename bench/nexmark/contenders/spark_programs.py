"""The queries on Spark's own streaming: its built-in windows, on the JVM, state in RocksDB.

Not a Python peer: no function of the user's runs. It shows what the engine below can do by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.jobs import MASTER
from bench.measure import Params, Result
from bench.nexmark.answers import digest_of
from bench.peers.engines.orders import called, paths_in

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
_LATE = "4 seconds"
_MUCH_LATER = 3_600_000
_WINDOW, _SLIDE, _GAP = "10 seconds", "2 seconds", "10 seconds"

Frames = dict[str, DataFrame]


def run(params: Params) -> Result:
    """From the end of the last cold batch to that of the last one."""
    builder = SparkSession.builder.master(MASTER).appName("nexmark")
    spark = reduce(lambda b, item: b.config(*item), _SETTINGS.items(), builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frames = {stream: _frame(spark, params, stream) for stream in params["inputs"]}
    build: Callable[[Frames], DataFrame] = called(params["spark"])
    answers: list[Any] = []
    ends: list[float] = []

    def take(batch: DataFrame, number: int) -> None:
        answers.extend(tuple(row) for row in batch.collect())
        ends.append(time.perf_counter())

    query = (
        build(frames)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", f"{params['scratch']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    cold = params["cold_files"] // params["files_per_epoch"]
    return {
        "outputs": len(answers),
        "checksum": sum(map(digest_of, answers)),
        "seconds": ends[-1] - ends[cold - 1],
    }


def _frame(spark: SparkSession, params: Params, stream: str) -> DataFrame:
    """A stream of the files, with its time as Spark needs it."""
    files = (
        spark.readStream.schema(params["schemas"][stream])
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .parquet(str(_with_end(params, stream)))
    )
    timed = files.withColumn("at", f.timestamp_millis("date_time"))
    return timed.withWatermark("at", _LATE)


def _with_end(params: Params, stream: str) -> Path:
    """The files, and one with an event of much later: Spark's event time has no end of input."""
    directory = Path(params["scratch"]) / stream
    directory.mkdir()
    paths = paths_in(params, stream)
    for path in paths:
        (directory / path.name).symlink_to(path)
    schema = pq.read_schema(paths[0])
    last = pq.read_table(paths[-1], columns=["date_time"])["date_time"][-1].as_py()
    event = {field.name: "" if pa.types.is_string(field.type) else -1 for field in schema}
    event["date_time"] = last + _MUCH_LATER
    pq.write_table(pa.Table.from_pylist([event], schema), directory / f"g{len(paths)}.parquet")
    return directory


def q5(frames: Frames) -> DataFrame:
    counts = (
        frames["bids"]
        .groupBy(f.window("at", _WINDOW, _SLIDE).alias("w"), "auction")
        .agg(f.count("*").alias("bids"))
    )
    # One slide's counts are of one window: their time is just before its end.
    ranked = counts.groupBy(f.window(f.window_time("w"), _SLIDE).alias("slide")).agg(
        f.max("bids").alias("most"), f.collect_list(f.struct("auction", "bids")).alias("all")
    )
    hot = ranked.select(
        _millis("slide.end").alias("end"), "most", f.explode("all").alias("one")
    ).where("one.bids = most")
    return hot.select("end", "one.auction", "most")


def q7(frames: Frames) -> DataFrame:
    """One bid per window: the data has no two highest ones, else the answers would not be equal."""
    bid = f.struct("price", "auction", "bidder", "date_time")
    highest = frames["bids"].groupBy(f.window("at", _WINDOW)).agg(f.max(bid).alias("bid"))
    return highest.select("bid.auction", "bid.bidder", "bid.price", "bid.date_time")


def q8(frames: Frames) -> DataFrame:
    windows = {
        stream: frame.withColumn("w", f.window("at", _WINDOW)).drop("at", "date_time")
        for stream, frame in frames.items()
    }
    sellers = windows["auctions"].dropDuplicates(["seller", "w"]).withColumnRenamed("w", "sold")
    people = windows["people"].where("id >= 0")  # the event at the end is in both streams
    both = people.join(sellers, f.expr("id = seller AND w = sold"))
    return both.select("id", "name", _millis("w.start"))


def q11(frames: Frames) -> DataFrame:
    sessions = (
        frames["bids"]
        .groupBy(f.session_window("at", _GAP).alias("s"), "bidder")
        .agg(f.count("*").alias("bids"))
    )
    return sessions.select("bidder", "bids", _millis("s.start"), _millis("s.end"))


def _millis(column: str) -> Any:
    return f.unix_millis(column)
