"""q11, user sessions: how many bids a bidder made before pausing for 10 seconds or more.

Bidder, bids, time of the first bid, and 10 seconds after the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.nexmark.queries.q5 import Count
from bench.nexmark.streams import Streams
from penstock.common import Duration
from penstock.datastream import DataStream
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import EventTimeSessionWindows

GAP = Duration.of_seconds(10)


class WithBidderAndSpan(ProcessWindowFunction):
    def process(
        self, key: int, context: Any, elements: Iterable[int]
    ) -> Iterator[tuple[int, int, int, int]]:
        window = context.window()
        for count in elements:
            yield key, count, window.start, window.end


def user_sessions(bids: DataStream) -> DataStream:
    return (
        bids.key_by(lambda bid: bid[0])
        .window(EventTimeSessionWindows.with_gap(GAP))
        .aggregate(Count(), WithBidderAndSpan())
    )


def build(streams: Streams) -> DataStream:
    return user_sessions(streams.bids("bidder", event_time=True))
