"""q0, pass through: every bid as it is. What reading and writing alone cost."""

from __future__ import annotations

from bench.nexmark.streams import Streams
from penstock.datastream import DataStream


def build(streams: Streams) -> DataStream:
    return streams.bids("auction", "bidder", "price", "extra")
