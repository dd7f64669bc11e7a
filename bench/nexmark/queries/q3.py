"""q3, local item suggestion: who sells in Oregon, Idaho or California in category 10, and which
auctions.

A join without an end: a person may come after the auction, so auctions wait for their seller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.nexmark.streams import Streams
from penstock.common import Types
from penstock.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor

CATEGORY = 10
STATES = frozenset(("OR", "ID", "CA"))

Suggestion = tuple[str, str, str, int]
"""Name, city, state, auction."""


class JoinSellers(KeyedCoProcessFunction):
    """Per seller. Of sellers elsewhere it remembers only that, so that nothing waits for them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kind = Types.PICKLED_BYTE_ARRAY()
        self._seller = runtime_context.get_state(ValueStateDescriptor("seller", kind))
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", kind))

    def process_element1(self, person: Any, ctx: Any) -> Iterator[Suggestion]:
        _, name, city, state, _ = person
        local = state in STATES
        self._seller.update((name, city, state) if local else ())
        waiting = self._waiting.get()
        for auction in waiting:
            if local:
                yield name, city, state, auction
        self._waiting.clear()

    def process_element2(self, auction: Any, ctx: Any) -> Iterator[Suggestion]:
        seller = self._seller.value()
        if seller is None:
            self._waiting.add(auction[1])
        elif seller:
            yield (*seller, auction[1])


def build(streams: Streams) -> DataStream:
    people = streams.people("id", "name", "city", "state")
    auctions = streams.auctions("seller", "id", "category")
    offered = auctions.filter(lambda auction: auction[2] == CATEGORY)
    return (
        people.key_by(lambda p: p[0]).connect(offered.key_by(lambda a: a[0])).process(JoinSellers())
    )
