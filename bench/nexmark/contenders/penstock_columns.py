"""Queries in Penstock's columnar lane: those that count or compare by built-in aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from bench import jobs
from bench.measure import Params, Result
from bench.nexmark.queries.q5 import SIZE, SLIDE, Hot, hottest_of
from bench.nexmark.queries.q7 import GROUPS, HighestOfAll
from bench.nexmark.queries.q7 import SIZE as Q7_SIZE
from bench.nexmark.queries.q8 import SIZE as Q8_SIZE
from bench.nexmark.queries.q8 import new_users
from bench.nexmark.streams import OUT_OF_ORDER
from bench.peers.engines import penstock_files
from bench.peers.engines.penstock_job import answered
from bench.peers.engines.spark_files import frame_of
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.formats.parquet import ParquetRecords
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

_IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(OUT_OF_ORDER)


def with_auction_and_end(auction: int, window: Any, results: Any) -> Iterator[Hot]:
    for result in results:
        yield window.end, auction, result.bids


def q5(params: Params) -> Result:
    spark = jobs.session()  # before any Column is made
    env = jobs.environment(params)
    strategy = _IN_TIME.with_timestamp_assigner(F.col("date_time"))
    counts = (
        env.from_spark(frame_of(spark, params, "bids"), bounded=True)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("auction")
        .window(SlidingEventTimeWindows.of(SIZE, SLIDE))
        .aggregate(agg.of(bids=agg.count()), with_auction_and_end)
    )
    return answered(env, hottest_of(counts), params)


_BID = ("auction", "bidder", "price", "date_time")


def as_highest(group: int, window: Any, results: Any) -> Iterator[Any]:
    """A price, and the bids that have it."""
    for (bids,) in results:
        yield bids[0][2], tuple(bids)


def q7_by_tasks(params: Params) -> Result:
    """The highest bids of groups of auctions by columns, then those of all."""
    jobs.session()
    env = jobs.environment(params)
    group = pc.bit_wise_and(pc.field("auction"), GROUPS - 1)
    records = ParquetRecords({**{name: name for name in _BID}, "group": group})
    windows = TumblingEventTimeWindows.of(Q7_SIZE)
    highest = (
        _read(env, params, "bids", records, "date_time")
        .key_by("group")
        .window(windows)
        .aggregate(agg.of(bids=agg.all_max_by(_BID, "price")), as_highest)
        .window_all(windows)
        .aggregate(HighestOfAll())
        .flat_map(lambda found: found[1])
    )
    return penstock_files.answered(env, highest, params)


def seller_alone(seller: int, window: Any, results: Any) -> Iterator[tuple[int]]:
    yield (seller,)


def q8_by_tasks(params: Params) -> Result:
    """Sellers of each window once, as in the query's SQL, and then the join."""
    jobs.session()
    env = jobs.environment(params)
    people = _read(env, params, "people", ParquetRecords(record_type=tuple), 2)
    sellers = (
        _read(env, params, "auctions", ParquetRecords(record_type=tuple), 1)
        .key_by(0)
        .window(TumblingEventTimeWindows.of(Q8_SIZE))
        .aggregate(agg.of(auctions=agg.count()), seller_alone)
    )
    return penstock_files.answered(env, new_users(people, sellers), params)


def _read(env: Any, params: Params, stream: str, records: ParquetRecords, time: Any) -> Any:
    source = penstock_files.source_of(params, stream, records)
    strategy = _IN_TIME.with_timestamp_assigner(time)
    return env.from_source(source, strategy, stream).uid(penstock_files.uid_of(stream))
