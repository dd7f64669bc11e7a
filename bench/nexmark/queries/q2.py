"""q2, selection: auction and price of the bids on one in 123 auctions, by their number."""

from __future__ import annotations

from bench.nexmark.streams import Streams
from penstock.datastream import DataStream

EVERY = 123


def build(streams: Streams) -> DataStream:
    bids = streams.bids("auction", "price")
    return bids.filter(lambda bid: bid[0] % EVERY == 0).map(lambda bid: (bid[0], bid[1]))
