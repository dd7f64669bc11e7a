"""The queries without an engine: one loop on one core, dicts, nothing durable.

Windows close as the watermark passes their end; it follows every event that moves time on.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from bench.nexmark.answers import GAP_MILLIS, OUT_OF_ORDER_MILLIS, SLIDE_MILLIS, WINDOW_MILLIS
from bench.peers.engines.bare import on_one_core, rows_in
from bench.peers.engines.orders import paths_in, probe_of
from bench.peers.engines.parquet_rows import rows_of
from bench.peers.probe import seen_in

_NEVER = 1 << 62


def q5(params: dict[str, Any]) -> dict[str, Any]:
    """Counts per slide, put together when a window ends: five times less to do than per window."""
    on_one_core()
    probe = probe_of(params)
    slices: dict[int, dict[int, int]] = {}

    def close_until(time: int) -> None:
        if not slices:
            return
        first = min(slices)
        last = min(time, max(slices) + WINDOW_MILLIS)
        for end in range(first + SLIDE_MILLIS, last + 1, SLIDE_MILLIS):
            counts: dict[int, int] = {}
            for start in range(end - WINDOW_MILLIS, end, SLIDE_MILLIS):
                for auction, count in slices.get(start, {}).items():
                    counts[auction] = counts.get(auction, 0) + count
            if counts and end > closed[0]:
                most = max(counts.values())
                for auction, count in counts.items():
                    if count == most:
                        probe.see((end, auction, count))
                closed[0] = end
            slices.pop(end - WINDOW_MILLIS, None)

    closed = [0]
    newest, next_close = 0, _NEVER
    for auction, time in rows_in(params, "bids"):
        start = time - time % SLIDE_MILLIS
        held = slices.get(start)
        if held is None:
            held = slices[start] = {}
            next_close = min(next_close, start + SLIDE_MILLIS + OUT_OF_ORDER_MILLIS)
        held[auction] = held.get(auction, 0) + 1
        if time > newest:
            newest = time
            if time >= next_close:
                close_until(time - OUT_OF_ORDER_MILLIS)
                next_close += SLIDE_MILLIS
    close_until(_NEVER)
    probe.write()
    return seen_in(params["scratch"])


def q7(params: dict[str, Any]) -> dict[str, Any]:
    on_one_core()
    probe = probe_of(params)
    windows: dict[int, tuple[int, list[Any]]] = {}

    def close_until(time: int) -> None:
        for start in sorted(windows):
            if start + WINDOW_MILLIS <= time:
                for bid in windows.pop(start)[1]:
                    probe.see(bid)

    newest, next_close = 0, _NEVER
    for bid in rows_in(params, "bids"):
        _, _, price, time = bid
        start = time - time % WINDOW_MILLIS
        held = windows.get(start)
        if held is None:
            windows[start] = (price, [bid])
            next_close = min(windows) + WINDOW_MILLIS + OUT_OF_ORDER_MILLIS
        elif price > held[0]:
            windows[start] = (price, [bid])
        elif price == held[0]:
            held[1].append(bid)
        if time > newest:
            newest = time
            if time >= next_close:
                close_until(time - OUT_OF_ORDER_MILLIS)
                next_close = min(windows, default=_NEVER) + WINDOW_MILLIS + OUT_OF_ORDER_MILLIS
    close_until(_NEVER)
    probe.write()
    return seen_in(params["scratch"])


def q8(params: dict[str, Any]) -> dict[str, Any]:
    """Both streams file by file, as if they came together."""
    on_one_core()
    probe = probe_of(params)
    people: dict[int, dict[int, str]] = {}
    sellers: dict[int, set[int]] = {}

    def close_until(time: int) -> None:
        for start in sorted(people.keys() | sellers.keys()):
            if start + WINDOW_MILLIS <= time:
                came, sold = people.pop(start, {}), sellers.pop(start, set())
                for person in came.keys() & sold:
                    probe.see((person, came[person], start))

    newest = 0
    for number in range(params["files"]):
        for person, name, time in _file(params, "people", number):
            people.setdefault(time - time % WINDOW_MILLIS, {})[person] = name
            newest = max(newest, time)
        for seller, time in _file(params, "auctions", number):
            sellers.setdefault(time - time % WINDOW_MILLIS, set()).add(seller)
        close_until(newest - OUT_OF_ORDER_MILLIS)
    close_until(_NEVER)
    probe.write()
    return seen_in(params["scratch"])


def _file(params: dict[str, Any], stream: str, number: int) -> Iterator[Any]:
    return rows_of(paths_in(params, stream)[number])


def q11(params: dict[str, Any]) -> dict[str, Any]:
    """Open sessions of each bidder in the order of time: beginning, end, bids."""
    on_one_core()
    probe = probe_of(params)
    sessions: dict[int, list[list[int]]] = {}
    due: list[tuple[int, int]] = []

    def place(bidder: int, time: int) -> None:
        begin, end, count = time, time + GAP_MILLIS, 1
        apart = []
        for session in sessions.get(bidder, ()):
            if session[0] <= end and session[1] >= begin:
                begin, end = min(begin, session[0]), max(end, session[1])
                count += session[2]
            else:
                apart.append(session)
        sessions[bidder] = sorted([*apart, [begin, end, count]])
        heapq.heappush(due, (end, bidder))

    def close_until(time: int) -> None:
        while due and due[0][0] <= time:
            _, bidder = heapq.heappop(due)
            still = []
            for session in sessions.pop(bidder, ()):
                begin, end, count = session
                if end <= time:
                    probe.see((bidder, count, begin, end))
                else:
                    still.append(session)
                    heapq.heappush(due, (end, bidder))
            if still:
                sessions[bidder] = still

    newest = 0
    for bidder, time in rows_in(params, "bids"):
        mine = sessions.get(bidder)
        if mine is not None and mine[-1][0] <= time <= mine[-1][1]:
            last = mine[-1]
            last[2] += 1
            if time + GAP_MILLIS > last[1]:
                last[1] = time + GAP_MILLIS
        else:
            place(bidder, time)
        if time > newest:
            newest = time
            if due and due[0][0] <= time - OUT_OF_ORDER_MILLIS:
                close_until(time - OUT_OF_ORDER_MILLIS)
    close_until(_NEVER)
    probe.write()
    return seen_in(params["scratch"])
