"""Windows, timers and joins without an engine: dicts, one core. See `bare.py`."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from bench.peers.engines.bare import on_one_core, rows_in
from bench.peers.engines.orders import paths_in, probe_of
from bench.peers.engines.parquet_rows import rows_of
from bench.peers.functions import (
    GAP_MILLIS,
    NEAR_MILLIS,
    OUT_OF_ORDER_MILLIS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    added,
    average_of,
    end_of_window,
    merged,
    nothing_yet,
    paired,
    prepared,
    sensor_of,
    time_of,
)
from bench.peers.probe import seen_in

_NEVER = 1 << 62


def tumbling(params: dict[str, Any]) -> dict[str, Any]:
    return _aligned(params, SIZE_MILLIS, SIZE_MILLIS)


def sliding(params: dict[str, Any]) -> dict[str, Any]:
    return _aligned(params, SIZE_MILLIS, SLIDE_MILLIS)


def _aligned(params: dict[str, Any], size: int, slide: int) -> dict[str, Any]:
    """Windows first, then keys: so one is closed as a whole."""
    on_one_core()
    probe = probe_of(params)
    windows: dict[int, dict[str, Any]] = {}
    newest, close_at = 0, _NEVER
    for row in rows_in(params):
        reading = prepared(row)
        at = time_of(reading)
        key = sensor_of(reading)
        latest = at - at % slide
        for start in (latest,) if size == slide else range(latest, at - size, -slide):
            window = windows.get(start)
            if window is None:
                window = windows[start] = {}
                close_at = min(windows) + size + OUT_OF_ORDER_MILLIS
            held = window.get(key)
            window[key] = added(nothing_yet() if held is None else held, reading)
        if at > newest:
            newest = at
            if at >= close_at:
                _close(windows, at - OUT_OF_ORDER_MILLIS - size, probe)
                close_at = min(windows, default=_NEVER) + size + OUT_OF_ORDER_MILLIS
    _close(windows, _NEVER, probe)
    probe.write()
    return seen_in(params["scratch"])


def _close(windows: dict[int, dict[str, Any]], last_start: int, probe: Any) -> None:
    for start in sorted(windows):
        if start > last_start:
            break
        for held in windows.pop(start).values():
            probe.see(average_of(held))


def sessions(params: dict[str, Any]) -> dict[str, Any]:
    """Each key's sessions: start, end, accumulator. A heap knows who must be looked at next."""
    on_one_core()
    probe = probe_of(params)
    open_ones: dict[str, list[list[Any]]] = {}
    due: list[tuple[int, str]] = []
    newest = 0
    for row in rows_in(params):
        reading = prepared(row)
        at = time_of(reading)
        key = sensor_of(reading)
        mine = open_ones.get(key)
        if mine is not None and mine[-1][0] <= at <= mine[-1][1]:
            last = mine[-1]
            last[1] = max(last[1], at + GAP_MILLIS)
            last[2] = added(last[2], reading)
        else:
            _place(open_ones, due, key, reading)
        if at > newest:
            newest = at
            if due[0][0] + OUT_OF_ORDER_MILLIS <= at:
                _end_sessions(open_ones, due, at - OUT_OF_ORDER_MILLIS, probe)
    _end_sessions(open_ones, due, _NEVER, probe)
    probe.write()
    return seen_in(params["scratch"])


def _place(open_ones: dict[str, Any], due: list[Any], key: str, reading: Any) -> None:
    """A record that does not just prolong the key's last session."""
    start, end = reading[1], reading[1] + GAP_MILLIS
    held = added(nothing_yet(), reading)
    apart = []
    for other in open_ones.get(key, ()):
        if other[0] <= end and other[1] >= start:
            start, end = min(start, other[0]), max(end, other[1])
            held = merged(other[2], held)
        else:
            apart.append(other)
    open_ones[key] = sorted([*apart, [start, end, held]], key=lambda session: session[0])
    heapq.heappush(due, (end, key))


def _end_sessions(open_ones: dict[str, Any], due: list[Any], until: int, probe: Any) -> None:
    while due and due[0][0] <= until:
        _, key = heapq.heappop(due)
        left = []
        for session in open_ones.pop(key, ()):
            if session[1] <= until:
                probe.see(average_of(session[2]))
            else:
                left.append(session)
                heapq.heappush(due, (session[1], key))
        if left:
            open_ones[key] = left


def timers(params: dict[str, Any]) -> dict[str, Any]:
    """Counts by time and key, and a heap of the times: what timers come down to."""
    on_one_core()
    probe = probe_of(params)
    counts: dict[int, dict[str, int]] = {}
    ends: list[int] = []
    newest = 0
    for row in rows_in(params):
        reading = prepared(row)
        at = time_of(reading)
        key = sensor_of(reading)
        end = end_of_window(at)
        held = counts.get(end)
        if held is None:
            held = counts[end] = {}
            heapq.heappush(ends, end)
        held[key] = held.get(key, 0) + 1
        if at > newest:
            newest = at
            if ends[0] + OUT_OF_ORDER_MILLIS < at:
                end = heapq.heappop(ends)
                for key, count in counts.pop(end).items():
                    probe.see((key, end, count))
    for end in sorted(ends):
        for key, count in counts[end].items():
            probe.see((key, end, count))
    probe.write()
    return seen_in(params["scratch"])


def interval_join(params: dict[str, Any]) -> dict[str, Any]:
    """File by file in turn; what is older than both can still reach is forgotten."""
    on_one_core()
    probe = probe_of(params)
    kept: dict[str, tuple[list[Any], list[Any]]] = {}
    for is_left, rows in _in_turn(params):
        for row in rows:
            reading = prepared(row)
            key, at = sensor_of(reading), time_of(reading)
            sides = kept.get(key)
            if sides is None:
                sides = kept[key] = ([], [])
            lefts, rights = sides
            if is_left:
                lefts.append(reading)
                for right in rights:
                    if at <= right[1] <= at + NEAR_MILLIS:
                        probe.see(paired(reading, right))
            else:
                rights.append(reading)
                for left in lefts:
                    if at - NEAR_MILLIS <= left[1] <= at:
                        probe.see(paired(left, reading))
        if not is_left:
            _forget(kept, at - 2 * OUT_OF_ORDER_MILLIS - NEAR_MILLIS)
    probe.write()
    return seen_in(params["scratch"])


def _in_turn(params: dict[str, Any]) -> Iterator[tuple[bool, Any]]:
    both = zip(paths_in(params, "left"), paths_in(params, "right"), strict=True)
    for left, right in both:
        yield True, rows_of(left)
        yield False, rows_of(right)


def _forget(kept: dict[str, tuple[list[Any], list[Any]]], oldest: int) -> None:
    for sides in kept.values():
        for side in sides:
            side[:] = [reading for reading in side if reading[1] >= oldest]
