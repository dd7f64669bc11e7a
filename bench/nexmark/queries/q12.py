"""q12, processing-time windows: how many bids of each bidder the job took in 10 s of the clock.

Which bids those are is up to the clock. What can be checked is that no bid is missing or twice:
the counts of a bidder, over all windows, add up to his bids. For that the input must end later than
the last window (`Streams.linger`): windows of the clock that are open at the end give nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bench.nexmark.queries.q5 import Count
from bench.nexmark.queries.q11 import WithBidderAndSpan
from bench.nexmark.streams import Streams
from penstock.common import Duration
from penstock.datastream import DataStream
from penstock.datastream.window import TumblingProcessingTimeWindows

SIZE = Duration.of_seconds(10)


def build(streams: Streams, size: Duration = SIZE) -> DataStream:
    return (
        streams.bids("bidder")
        .key_by(lambda bid: bid[0])
        .window(TumblingProcessingTimeWindows.of(size))
        .aggregate(Count(), WithBidderAndSpan())
    )


def settled(outputs: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Bids of each bidder over all windows, of which no two are the same."""
    totals: Counter[int] = Counter()
    windows = set()
    for bidder, count, start, _ in outputs:
        assert (bidder, start) not in windows, f"two results for {bidder} from {start} on"
        windows.add((bidder, start))
        totals[bidder] += count
    return sorted(totals.items())
