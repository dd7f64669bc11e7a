"""q6, average selling price by seller: the mean price of the ten auctions of a seller that closed
last, updated with each one that closes. Of auctions that close at one time the higher number counts
as the later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.queries.winners import winners
from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

LAST = 10

Average = tuple[int, int, float]
"""Seller, auctions closed, mean price of the last ten."""


class LastTen(KeyedProcessFunction):
    """Winners reach a seller from several subtasks, so not quite in the order of their end."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        self._last = runtime_context.get_state(descriptor)

    def process_element(self, sale: Any, ctx: Any) -> Iterator[Average]:
        seller, *closed = sale
        count, last = self._last.value() or (0, ())
        last = tuple(sorted((*last, tuple(closed)))[-LAST:])
        self._last.update((count + 1, last))
        yield seller, count + 1, sum(price for _, _, price in last) / len(last)


def build(streams: Streams) -> DataStream:
    # Seller, and of the auction: end, number, price.
    sales = winners(streams, "seller").map(lambda won: (won[2], won[1], won[0], won[4]))
    return sales.key_by(lambda sale: sale[0]).process(LastTen())


def settled(outputs: Iterable[Average]) -> list[Average]:
    """The last word on each seller; every auction must have been one update."""
    updates = sorted(outputs)
    last = {update[0]: update for update in updates}
    counted = sum(count for _, count, _ in last.values())
    assert counted == len(updates), f"{counted} auctions, {len(updates)} updates"
    return sorted(last.values())
