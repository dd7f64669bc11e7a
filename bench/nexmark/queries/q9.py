"""q9, winning bids: each auction that found a buyer, with the bid that won, when it has closed."""

from __future__ import annotations

from bench.nexmark.queries.winners import winners
from bench.nexmark.streams import Streams
from penstock.datastream import DataStream

AUCTION = ("item_name", "description", "initial_bid", "reserve", "seller", "category", "extra")


def build(streams: Streams) -> DataStream:
    return winners(streams, *AUCTION)
