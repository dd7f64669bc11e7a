"""q5, hot items: which auctions had the most bids in the last 10 seconds, every 2 seconds.

All of them if several have as many. A window's bids are counted per auction, then the counts of one
window are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Duration
from penstock.datastream import DataStream
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

SIZE, SLIDE = Duration.of_seconds(10), Duration.of_seconds(2)

Hot = tuple[int, int, int]
"""End of the window, auction, bids."""


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithAuctionAndEnd(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Hot]:
        for count in elements:
            yield context.window().end, key, count


class Hottest(AggregateFunction):
    """Keeps the most bids that an auction had, and the auctions that had as many."""

    def create_accumulator(self) -> tuple[int, int, tuple[int, ...]]:
        return 0, 0, ()

    def add(self, value: Hot, accumulator: Any) -> Any:
        end, auction, count = value
        _, most, auctions = accumulator
        if count > most:
            return end, count, (auction,)
        return (end, most, (*auctions, auction)) if count == most else accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        if acc_a[1] == acc_b[1]:
            return acc_a[0], acc_a[1], acc_a[2] + acc_b[2]
        return max(acc_a, acc_b, key=lambda held: held[1])


def hot_items(bids: DataStream) -> DataStream:
    counts = (
        bids.key_by(lambda bid: bid[0])
        .window(SlidingEventTimeWindows.of(SIZE, SLIDE))
        .aggregate(Count(), WithAuctionAndEnd())
    )
    return hottest_of(counts)


def hottest_of(counts: DataStream) -> DataStream:
    # A count's timestamp is the last of its window, so one slide's counts are of one window.
    hottest = (
        counts.key_by(lambda hot: hot[0])
        .window(TumblingEventTimeWindows.of(SLIDE))
        .aggregate(Hottest())
    )
    return hottest.flat_map(lambda hot: [(hot[0], auction, hot[1]) for auction in hot[2]])


def build(streams: Streams) -> DataStream:
    return hot_items(streams.bids("auction", event_time=True))
