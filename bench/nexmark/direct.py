"""What each query must answer: computed over all events at once, by numpy and dicts.

Shares nothing with the programs but the meaning of the queries, not even a constant, so that a slip
in one is not repeated in the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.nexmark.files import VIEWS, paths_of, rows_of, view
from bench.nexmark.generator import AUCTION, BID, PERSON

Answer = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Events:
    """All events of each type, as tables; only some of the types if a query needs no others."""

    people: pa.Table = None
    auctions: pa.Table = None
    bids: pa.Table = None

    @staticmethod
    def of(directory: str | Path) -> Events:
        paths = paths_of(directory)
        return Events(
            *(
                pa.concat_tables(view(path, kind, VIEWS[kind]) for path in paths)
                for kind in (PERSON, AUCTION, BID)
            )
        )


def answer(query: str, events: Events) -> Answer:
    return sorted(_ANSWERS[query](events))


def _rows(table: pa.Table, *columns: str) -> list[Any]:
    return rows_of(table.select(list(columns)))


def _column(table: pa.Table, name: str) -> np.ndarray:
    values: np.ndarray = table.column(name).to_numpy()
    return values


def _q0(events: Events) -> Iterable[Any]:
    return _rows(events.bids, "auction", "bidder", "price", "extra", "date_time")


def _q1(events: Events) -> Iterable[Any]:
    return ((a, b, price * 0.908, extra, t) for a, b, price, extra, t in _q0(events))


def _q2(events: Events) -> Iterable[Any]:
    return (bid for bid in _rows(events.bids, "auction", "price") if bid[0] % 123 == 0)


def _q3(events: Events) -> Iterable[Any]:
    sellers = {
        person: (name, city, state)
        for person, name, city, state in _rows(events.people, "id", "name", "city", "state")
        if state in ("OR", "ID", "CA")
    }
    for auction, seller, category in _rows(events.auctions, "id", "seller", "category"):
        if category == 10 and seller in sellers:
            yield (*sellers[seller], auction)


def _winning_bids(events: Events) -> dict[int, tuple[int, int, int]]:
    """By auction: price, bidder and time of the bid."""
    spans = {
        auction: (begins, ends)
        for auction, begins, ends in _rows(events.auctions, "id", "date_time", "expires")
    }
    best: dict[int, tuple[int, int, int]] = {}
    for auction, bidder, price, time in _rows(
        events.bids, "auction", "bidder", "price", "date_time"
    ):
        begins, ends = spans.get(auction, (1, 0))
        if begins <= time <= ends:
            found = (-price, time, bidder)
            if auction not in best or found < best[auction]:
                best[auction] = found
    return {auction: (-price, bidder, time) for auction, (price, time, bidder) in best.items()}


def _q4(events: Events) -> Iterable[Any]:
    winning = _winning_bids(events)
    prices = defaultdict(list)
    for auction, category in _rows(events.auctions, "id", "category"):
        if auction in winning:
            prices[category].append(winning[auction][0])
    return ((category, len(all), sum(all) / len(all)) for category, all in prices.items())


def _q5(events: Events) -> Iterable[Any]:
    auctions, times = _column(events.bids, "auction"), _column(events.bids, "date_time")
    order = np.argsort(times, kind="stable")
    auctions, times = auctions[order], times[order]
    for start in range(int(times[0]) // 2000 * 2000 - 8000, int(times[-1]) + 1, 2000):
        begin, end = np.searchsorted(times, (start, start + 10_000))
        inside = auctions[begin:end]
        if len(inside):
            names, counts = np.unique(inside, return_counts=True)
            for auction in names[counts == counts.max()].tolist():
                yield start + 10_000, auction, int(counts.max())


def _q6(events: Events) -> Iterable[Any]:
    winning = _winning_bids(events)
    sold = defaultdict(list)
    for auction, ends, seller in _rows(events.auctions, "id", "expires", "seller"):
        if auction in winning:
            sold[seller].append((ends, auction, winning[auction][0]))
    for seller, sales in sold.items():
        last = [price for _, _, price in sorted(sales)][-10:]
        yield seller, len(sales), sum(last) / len(last)


def _q7(events: Events) -> Iterable[Any]:
    windows = _column(events.bids, "date_time") // 10_000
    prices = _column(events.bids, "price")
    # By window, in it the highest price first.
    order = np.lexsort((-prices, windows))
    begins = np.flatnonzero(np.diff(windows[order], prepend=-1))
    highest = np.repeat(prices[order][begins], np.diff(np.append(begins, len(order))))
    best = order[prices[order] == highest]
    yield from _rows(events.bids.take(pa.array(best)), "auction", "bidder", "price", "date_time")


def _q8(events: Events) -> Iterable[Any]:
    active = {
        (seller, time // 10_000) for seller, time in _rows(events.auctions, "seller", "date_time")
    }
    for person, name, time in _rows(events.people, "id", "name", "date_time"):
        if (person, time // 10_000) in active:
            yield person, name, time // 10_000 * 10_000


def _q9(events: Events) -> Iterable[Any]:
    winning = _winning_bids(events)
    for auction in _rows(
        events.auctions,
        *("id", "expires", "item_name", "description", "initial_bid", "reserve", "seller"),
        *("category", "extra", "date_time"),
    ):
        if auction[0] in winning:
            yield (*auction, *winning[auction[0]])


def _q11(events: Events) -> Iterable[Any]:
    bidders, times = _column(events.bids, "bidder"), _column(events.bids, "date_time")
    order = np.lexsort((times, bidders))
    bidders, times = bidders[order], times[order]
    # Sessions that touch are one: a pause of exactly the gap does not end it.
    begins = np.ones(len(times), bool)
    begins[1:] = (bidders[1:] != bidders[:-1]) | (times[1:] - times[:-1] > 10_000)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(times))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(bidders[start]), end - start, int(times[start]), int(times[end - 1]) + 10_000


def _q12(events: Events) -> Iterable[Any]:
    return Counter(_column(events.bids, "bidder").tolist()).items()


def _q18(events: Events) -> Iterable[Any]:
    last: dict[tuple[int, int], Any] = {}
    for auction, bidder, *offer in _rows(
        events.bids, "auction", "bidder", "date_time", "price", "channel", "url", "extra"
    ):
        last[auction, bidder] = max(last.get((auction, bidder), ()), tuple(offer))
    return ((*key, *offer) for key, offer in last.items())


def _q20(events: Events) -> Iterable[Any]:
    wanted = {
        auction: (category, *rest)
        for auction, category, *rest in _rows(
            events.auctions,
            *("id", "category", "item_name", "description", "initial_bid", "reserve", "expires"),
            *("seller", "extra", "date_time"),
        )
        if category == 10
    }
    for bid in _rows(
        events.bids, "auction", "bidder", "price", "channel", "url", "extra", "date_time"
    ):
        if bid[0] in wanted:
            yield bid + wanted[bid[0]]


_ANSWERS: dict[str, Callable[[Events], Iterable[Any]]] = {
    "q0": _q0,
    "q1": _q1,
    "q2": _q2,
    "q3": _q3,
    "q4": _q4,
    "q5": _q5,
    "q6": _q6,
    "q7": _q7,
    "q8": _q8,
    "q9": _q9,
    "q11": _q11,
    "q12": _q12,
    "q18": _q18,
    "q20": _q20,
}
