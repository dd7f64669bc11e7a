"""The bid that wins each auction, once it has closed: what q4, q6 and q9 begin with.

The highest bid between the auction's beginning and its end, both included; of equal ones the
earliest, then that of the bidder with the lower number. An auction without a bid has no winner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor

Bid = tuple[int, int, int]
"""Price, bidder, time."""


def beats(bid: Bid, other: Bid) -> bool:
    price, bidder, time = bid
    return (-price, time, bidder) < (-other[0], other[2], other[1])


class Winner(KeyedCoProcessFunction):
    """Per auction: (*auction, price, bidder, time of the bid) when event time passes its end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kind = Types.PICKLED_BYTE_ARRAY()
        self._auction = runtime_context.get_state(ValueStateDescriptor("auction", kind))
        self._best = runtime_context.get_state(ValueStateDescriptor("best", kind))
        self._early = runtime_context.get_list_state(ListStateDescriptor("early", kind))

    def process_element1(self, auction: Any, ctx: Any) -> None:
        _, expires, *_, begins = auction
        best = None
        for bid in self._early.get():
            if begins <= bid[2] <= expires and (best is None or beats(bid, best)):
                best = bid
        self._early.clear()
        self._auction.update(auction)
        if best is not None:
            self._best.update(best)
        ctx.timer_service().register_event_time_timer(expires)

    def process_element2(self, bid: Any, ctx: Any) -> None:
        auction = self._auction.value()
        _, *offer, time = bid
        mine = (*offer, time)
        if auction is None:
            # When event time passes the bid, its auction has come, or had been closed before.
            self._early.add(mine)
            ctx.timer_service().register_event_time_timer(time)
        elif auction[-1] <= time <= auction[1]:
            best = self._best.value()
            if best is None or beats(mine, best):
                self._best.update(mine)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        auction = self._auction.value()
        if auction is None:
            self._early.update([bid for bid in self._early.get() if bid[2] > timestamp])
        elif timestamp >= auction[1]:
            best = self._best.value()
            if best is not None:
                yield (*auction, *best)
            self._auction.clear()
            self._best.clear()


def winners(streams: Streams, *columns: str) -> DataStream:
    """(id, expires, *columns, beginning, price, bidder, time of the bid) of every closed auction
    that has a winner."""
    auctions = streams.auctions("id", "expires", *columns, event_time=True)
    bids = streams.bids("auction", "price", "bidder", event_time=True)
    return auctions.key_by(lambda a: a[0]).connect(bids.key_by(lambda b: b[0])).process(Winner())
