"""q20, expand bid with auction: each bid on an auction of category 10, with that auction.

A join without an end: bids wait for their auction, auctions stay for the bids to come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor

CATEGORY = 10
BID = ("auction", "bidder", "price", "channel", "url", "extra")
AUCTION = (
    *("id", "category", "item_name", "description", "initial_bid", "reserve", "expires"),
    *("seller", "extra"),
)


class JoinAuction(KeyedCoProcessFunction):
    """Per auction. Of other categories it remembers only that, so that no bid waits for them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kind = Types.PICKLED_BYTE_ARRAY()
        self._auction = runtime_context.get_state(ValueStateDescriptor("auction", kind))
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", kind))

    def process_element1(self, auction: Any, ctx: Any) -> Iterator[Any]:
        wanted = auction[1] == CATEGORY
        found = auction[1:] if wanted else ()
        self._auction.update(found)
        for bid in self._waiting.get():
            if wanted:
                yield bid + found
        self._waiting.clear()

    def process_element2(self, bid: Any, ctx: Any) -> Iterator[Any]:
        auction = self._auction.value()
        if auction is None:
            self._waiting.add(bid)
        elif auction:
            yield bid + auction


def build(streams: Streams) -> DataStream:
    auctions = streams.auctions(*AUCTION).key_by(lambda auction: auction[0])
    bids = streams.bids(*BID).key_by(lambda bid: bid[0])
    return auctions.connect(bids).process(JoinAuction())
