"""q7, highest bid: the bids with the highest price in every 10 seconds.

All of them if several have it. Taken first within groups of auctions, so that all subtasks share
the work, then over the groups.
"""

from __future__ import annotations

from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Duration
from penstock.datastream import DataStream
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import TumblingEventTimeWindows

SIZE = Duration.of_seconds(10)
GROUPS = 64

Bid = tuple[int, int, int, int]
"""Auction, bidder, price, time."""
Highest = tuple[int, tuple[Bid, ...]]
"""A price, and the bids that have it."""


class HighestBids(AggregateFunction):
    def create_accumulator(self) -> Highest:
        return 0, ()

    def add(self, value: Bid, accumulator: Highest) -> Highest:
        price = value[2]
        highest, bids = accumulator
        if price < highest:
            return accumulator
        return (highest, (*bids, value)) if price == highest else (price, (value,))

    def get_result(self, accumulator: Highest) -> Highest:
        return accumulator

    def merge(self, acc_a: Highest, acc_b: Highest) -> Highest:
        if acc_a[0] == acc_b[0]:
            return acc_a[0], acc_a[1] + acc_b[1]
        return max(acc_a, acc_b)


class HighestOfAll(HighestBids):
    """The same over what groups have found."""

    def add(self, value: Any, accumulator: Highest) -> Highest:
        return self.merge(accumulator, value)


def highest_bids(bids: DataStream) -> DataStream:
    windows = TumblingEventTimeWindows.of(SIZE)
    highest = (
        bids.key_by(lambda bid: bid[0] % GROUPS)
        .window(windows)
        .aggregate(HighestBids())
        .window_all(windows)
        .aggregate(HighestOfAll())
    )
    return highest.flat_map(lambda found: found[1])


def build(streams: Streams) -> DataStream:
    return highest_bids(streams.bids("auction", "bidder", "price", event_time=True))
