"""The queries as dataflows of Bytewax.

Its own event-time windows follow a clock for each key, and a key that is silent stays open until
the wall clock or the end of the input closes it: auctions and bidders are silent soon, for ever.
So windows are kept here by a stateful step over groups of keys, whose time is that of the slowest
process that reads; an event is marked with the process that read it before keys are exchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from bench.nexmark.answers import GAP_MILLIS, OUT_OF_ORDER_MILLIS, SLIDE_MILLIS, WINDOW_MILLIS
from bench.peers.engines import bytewax_flow

_GROUPS = 16
_NAMES = [str(group) for group in range(_GROUPS)]
_NEVER = 1 << 62

_READERS = "NEXMARK_READERS"
"""Variable of the environment: how many processes read."""

Rows = dict[str, Stream[Any]]


def run(params: dict[str, Any]) -> dict[str, Any]:
    os.environ[_READERS] = str(params["processes"])
    return bytewax_flow.run(params)


def q5(rows: Rows) -> Stream[Any]:
    counts = op.stateful_batch("count", _grouped(rows["bids"], 0), lambda _: _HotOfGroup())
    hottest = op.stateful_batch("hottest", _by_window(counts), lambda _: _Gathered(_hottest))
    return op.key_rm("answer", hottest)


def q7(rows: Rows) -> Stream[Any]:
    highest = op.stateful_batch("highest", _grouped(rows["bids"], 0), lambda _: _HighestOfGroup())
    of_all = op.stateful_batch("of all", _by_window(highest), lambda _: _Gathered(_highest))
    return op.key_rm("answer", of_all)


def q8(rows: Rows) -> Stream[Any]:
    people, auctions = (
        _grouped(rows["people"], 0),
        _grouped(rows["auctions"], 0, "auctions by group"),
    )
    both = op.merge("both", people, auctions)
    return op.key_rm("answer", op.stateful_batch("new", both, lambda _: _NewUsers()))


def q11(rows: Rows) -> Stream[Any]:
    sessions = op.stateful_batch("sessions", _grouped(rows["bids"], 0), lambda _: _Sessions())
    return op.key_rm("answer", sessions)


def _grouped(rows: Stream[Any], key: int, name: str = "by group") -> Stream[Any]:
    """By group of keys, each with the process that read it, and what it read it from: a step before
    any exchange."""

    def grouped(row: Any) -> Any:
        return _NAMES[row[key] % _GROUPS], (reader, row)

    reader = (os.getpid(), name)
    return op.map(name, rows, grouped)


def _by_window(reports: Stream[Any]) -> Stream[Any]:
    return op.map("by window", op.key_rm("no group", reports), lambda r: (str(r[0]), r))


class _Group(op.StatefulBatchLogic[Any, Any, Any]):
    """Windows of some keys. Closes them when every process that reads has gone past their end, in
    each of the streams."""

    streams = 1

    def __init__(self) -> None:
        self._newest: dict[Any, int] = {}
        """By process that reads, and stream."""
        self._readers = int(os.environ[_READERS]) * self.streams
        self._next_close = 0

    def on_batch(self, values: list[Any]) -> tuple[Iterable[Any], bool]:
        newest = self._newest
        for reader, row in values:
            self.add(row)
            time = row[-1]
            if time > newest.get(reader, 0):
                newest[reader] = time
        if len(newest) < self._readers:
            return (), False
        reached = min(newest.values()) - OUT_OF_ORDER_MILLIS
        if reached >= self._next_close:
            self._next_close = reached + 100
            return self.closed(reached), False
        return (), False

    def on_eof(self) -> tuple[Iterable[Any], bool]:
        return self.closed(_NEVER), True

    def snapshot(self) -> None:
        return None

    def add(self, row: Any) -> None:
        raise NotImplementedError

    def closed(self, until: int) -> list[Any]:
        """The results of windows that end at a time or before."""
        raise NotImplementedError


class _HotOfGroup(_Group):
    """Counts per slide, put together when a window ends."""

    def __init__(self) -> None:
        super().__init__()
        self._slices: dict[int, dict[int, int]] = {}
        self._last_end = 0

    def add(self, row: Any) -> None:
        auction, time = row
        start = time - time % SLIDE_MILLIS
        held = self._slices.get(start)
        if held is None:
            held = self._slices[start] = {}
        held[auction] = held.get(auction, 0) + 1

    def closed(self, until: int) -> list[Any]:
        slices, found = self._slices, []
        if not slices:
            return found
        first = max(min(slices), self._last_end) + SLIDE_MILLIS
        first -= first % SLIDE_MILLIS
        for end in range(first, min(until, max(slices) + WINDOW_MILLIS) + 1, SLIDE_MILLIS):
            counts: dict[int, int] = {}
            for start in range(end - WINDOW_MILLIS, end, SLIDE_MILLIS):
                for auction, count in slices.get(start, {}).items():
                    counts[auction] = counts.get(auction, 0) + count
            slices.pop(end - WINDOW_MILLIS, None)
            most = max(counts.values(), default=0)
            found.append((end, most, [a for a, count in counts.items() if count == most]))
            self._last_end = end
        return found


class _HighestOfGroup(_Group):
    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[int, tuple[int, list[Any]]] = {}

    def add(self, row: Any) -> None:
        price, time = row[2], row[3]
        end = time - time % WINDOW_MILLIS + WINDOW_MILLIS
        held = self._windows.get(end)
        if held is None or price > held[0]:
            self._windows[end] = (price, [row])
        elif price == held[0]:
            held[1].append(row)

    def closed(self, until: int) -> list[Any]:
        ends = [end for end in sorted(self._windows) if end <= until]
        return [(end, *self._windows.pop(end)) for end in ends]


class _NewUsers(_Group):
    streams = 2

    def __init__(self) -> None:
        super().__init__()
        self._people: dict[int, dict[int, str]] = {}
        self._sellers: dict[int, set[int]] = {}

    def add(self, row: Any) -> None:
        time = row[-1]
        start = time - time % WINDOW_MILLIS
        if len(row) == 3:
            self._people.setdefault(start, {})[row[0]] = row[1]
        else:
            self._sellers.setdefault(start, set()).add(row[0])

    def closed(self, until: int) -> list[Any]:
        found = []
        for start in sorted(self._people.keys() | self._sellers.keys()):
            if start + WINDOW_MILLIS <= until:
                people = self._people.pop(start, {})
                sellers = self._sellers.pop(start, set())
                found += [(each, people[each], start) for each in people.keys() & sellers]
        return found


class _Sessions(_Group):
    """Open sessions of each bidder: beginning, end, bids."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, list[list[int]]] = {}

    def add(self, row: Any) -> None:
        bidder, time = row
        mine = self._open.get(bidder)
        if mine is not None and mine[-1][0] <= time <= mine[-1][1]:
            last = mine[-1]
            last[2] += 1
            if time + GAP_MILLIS > last[1]:
                last[1] = time + GAP_MILLIS
        else:
            self._place(bidder, time)

    def _place(self, bidder: int, time: int) -> None:
        begin, end, count = time, time + GAP_MILLIS, 1
        apart = []
        for session in self._open.get(bidder, ()):
            if session[0] <= end and session[1] >= begin:
                begin, end = min(begin, session[0]), max(end, session[1])
                count += session[2]
            else:
                apart.append(session)
        self._open[bidder] = sorted([*apart, [begin, end, count]])

    def closed(self, until: int) -> list[Any]:
        found = []
        for bidder in [b for b, mine in self._open.items() if mine[0][1] <= until]:
            still = []
            for session in self._open.pop(bidder):
                begin, end, count = session
                if end <= until:
                    found.append((bidder, count, begin, end))
                else:
                    still.append(session)
            if still:
                self._open[bidder] = still
        return found


class _Gathered(op.StatefulBatchLogic[Any, Any, Any]):
    """What all groups found for one window; answered when the last of them has reported."""

    def __init__(self, answer: Callable[[list[Any]], list[Any]]) -> None:
        self._answer = answer
        self._reports: list[Any] = []

    def on_batch(self, values: list[Any]) -> tuple[Iterable[Any], bool]:
        self._reports += values
        if len(self._reports) < _GROUPS:
            return (), False
        return self._answer(self._reports), True

    def on_eof(self) -> tuple[Iterable[Any], bool]:
        return self._answer(self._reports), True

    def snapshot(self) -> None:
        return None


def _hottest(reports: list[Any]) -> list[Any]:
    most = max(count for _, count, _ in reports)
    return [
        (end, auction, most) for end, n, auctions in reports if n == most for auction in auctions
    ]


def _highest(reports: list[Any]) -> list[Any]:
    highest = max(price for _, price, _ in reports)
    return [bid for _, price, bids in reports if price == highest for bid in bids]
