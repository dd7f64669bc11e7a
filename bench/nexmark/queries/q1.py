"""q1, currency conversion: every bid, its price in euros instead of dollars."""

from __future__ import annotations

from typing import Any

from bench.nexmark.streams import Streams
from penstock.datastream import DataStream

EUROS_PER_DOLLAR = 0.908


def in_euros(bid: Any) -> tuple[int, int, float, str, int]:
    auction, bidder, price, extra, time = bid
    return auction, bidder, price * EUROS_PER_DOLLAR, extra, time


def build(streams: Streams) -> DataStream:
    return streams.bids("auction", "bidder", "price", "extra").map(in_euros)
