"""q4, average price for a category: of the winning bids of all auctions closed so far, updated with
each auction that closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.queries.winners import winners
from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor

Average = tuple[int, int, float]
"""Category, auctions closed, mean price."""


class AverageSoFar(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY())
        self._sum = runtime_context.get_state(descriptor)

    def process_element(self, won: Any, ctx: Any) -> Iterator[Average]:
        count, total = self._sum.value() or (0, 0)
        count, total = count + 1, total + won[1]
        self._sum.update((count, total))
        yield won[0], count, total / count


def build(streams: Streams) -> DataStream:
    prices = winners(streams, "category").map(lambda won: (won[2], won[4]))
    return prices.key_by(lambda won: won[0]).process(AverageSoFar())


def settled(outputs: Iterable[Average]) -> list[Average]:
    """The last word on each category; every auction must have been one update."""
    updates = sorted(outputs)
    last = {update[0]: update for update in updates}
    counted = sum(count for _, count, _ in last.values())
    assert counted == len(updates), f"{counted} auctions, {len(updates)} updates"
    return sorted(last.values())
