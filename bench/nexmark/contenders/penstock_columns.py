"""Queries in Penstock's columnar lane: those that count or compare by built-in aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench import jobs
from bench.measure import Params, Result
from bench.nexmark.queries.q5 import SIZE, SLIDE, Hot, hottest_of
from bench.nexmark.streams import OUT_OF_ORDER
from bench.peers.engines.penstock_job import answered
from bench.peers.engines.spark_files import frame_of
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.window import SlidingEventTimeWindows


def with_auction_and_end(auction: int, window: Any, results: Any) -> Iterator[Hot]:
    for result in results:
        yield window.end, auction, result.bids


def q5(params: Params) -> Result:
    spark = jobs.session()  # before any Column is made
    env = jobs.environment(params)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(OUT_OF_ORDER).with_timestamp_assigner(
        F.col("date_time")
    )
    counts = (
        env.from_spark(frame_of(spark, params, "bids"), bounded=True)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("auction")
        .window(SlidingEventTimeWindows.of(SIZE, SLIDE))
        .aggregate(agg.of(bids=agg.count()), with_auction_and_end)
    )
    return answered(env, hottest_of(counts), params)
