"""q18, find last bid: the last bid of each bidder on each auction, updated with each that is later.

Of bids at one time the higher one counts as the later, then by channel, page and filling, so that
there is one answer whatever order they arrive in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

Bid = tuple[int, int, int, int, str, str, str]
"""Auction, bidder, time, price, channel, page, filling."""


class Last(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        self._last = runtime_context.get_state(descriptor)

    def process_element(self, bid: Any, ctx: Any) -> Iterator[Bid]:
        auction, bidder, *offer, time = bid
        found = (time, *offer)
        last = self._last.value()
        if last is None or found > last:
            self._last.update(found)
            yield (auction, bidder, *found)


def build(streams: Streams) -> DataStream:
    bids = streams.bids("auction", "bidder", "price", "channel", "url", "extra")
    return bids.key_by(lambda bid: (bid[0], bid[1])).process(Last())


def settled(outputs: Iterable[Bid]) -> list[Bid]:
    """The last word on each bidder and auction."""
    return sorted({(bid[0], bid[1]): bid for bid in sorted(outputs)}.values())
