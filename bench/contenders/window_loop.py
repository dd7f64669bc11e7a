"""Windows without an engine: one loop in one process on one core, dicts, nothing durable.

The watermark follows every record, and a window's results are out as soon as it has passed.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from bench import data
from bench.contenders.bare_loop import rows_of
from bench.functions import Reading, sensor_of
from bench.measure import Params, Result
from bench.timed_data import OUT_OF_ORDER_MILLIS
from bench.window_functions import (
    GAP_MILLIS,
    SESSIONS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    SLIDING,
    TAKEN,
    TUMBLING,
    Calibrate,
    CheckingSink,
    CountAndAverage,
    TimeOfReading,
)
from penstock.datastream.functions import SinkFunction
from penstock.metrics import MetricGroup

_NEVER = 1 << 62


def run(params: Params) -> Result:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    sink = CheckingSink()
    sink.open(_Context())  # type: ignore[arg-type]
    windows = _KINDS[params["kind"]](sink)
    ends, busy = [time.perf_counter()], [time.process_time()]
    for path in data.files_of(params["input"], params["files"]):
        windows.add(rows_of(path))
        ends.append(time.perf_counter())
        busy.append(time.process_time())
    windows.close_until(_NEVER)
    cold = params["cold_files"]
    warm = (len(ends) - 1 - cold) * data.ROWS_PER_FILE
    return {
        "rate": (len(ends) - 1) * data.ROWS_PER_FILE / (ends[-1] - ends[0]),
        "warm_rate": warm / (ends[-1] - ends[cold]),
        "cpu_micros": (busy[-1] - busy[cold]) / warm * 1e6,
        "taken": {name: sink.taken(name) for name in TAKEN},
    }


class _Context:
    """As much of a runtime context as the sink asks for."""

    def get_metrics_group(self) -> MetricGroup:
        return MetricGroup()


class _Emitted(SinkFunction.Context):
    """The result being written."""

    def __init__(self) -> None:
        self.time = 0

    def timestamp(self) -> int:
        return self.time

    def current_processing_time(self) -> int:
        return int(time.time() * 1000)

    def current_watermark(self) -> int:
        return self.time


class _Windows:
    """What both kinds of windows have in common."""

    def __init__(self, sink: CheckingSink) -> None:
        self._change = Calibrate().map
        self._stamp = TimeOfReading().extract_timestamp
        self._aggregate = CountAndAverage()
        self._invoke = sink.invoke
        self._emitted = _Emitted()
        self._newest = -_NEVER

    def _emit(self, accumulator: Any, end: int) -> None:
        self._emitted.time = end - 1
        self._invoke(self._aggregate.get_result(accumulator), self._emitted)


class Aligned(_Windows):
    """Tumbling windows, or sliding ones. Windows first, then keys: so one is closed as a whole."""

    def __init__(self, sink: CheckingSink, size: int, slide: int) -> None:
        super().__init__(sink)
        self._size = size
        self._slide = slide
        self._open: dict[int, dict[str, Any]] = {}

    def add(self, rows: Iterable[Reading]) -> None:
        if self._size == self._slide:
            self._add_to_one(rows)
        else:
            self._add_to_several(rows)

    def _add_to_one(self, rows: Iterable[Reading]) -> None:
        change, stamp, size = self._change, self._stamp, self._size
        create, fold = self._aggregate.create_accumulator, self._aggregate.add
        windows, newest = self._open, self._newest
        close_at = self._close_at()
        for row in rows:
            value = change(row)
            at = stamp(value, 0)
            key = sensor_of(value)
            start = at - at % size
            window = windows.get(start)
            if window is None:
                window = windows[start] = {}
                close_at = self._close_at()
            held = window.get(key)
            window[key] = fold(value, create() if held is None else held)
            if at > newest:
                newest = at
                if at >= close_at:
                    self.close_until(at - OUT_OF_ORDER_MILLIS)
                    close_at = self._close_at()
        self._newest = newest

    def _add_to_several(self, rows: Iterable[Reading]) -> None:
        change, stamp, size, slide = self._change, self._stamp, self._size, self._slide
        create, fold = self._aggregate.create_accumulator, self._aggregate.add
        windows, newest = self._open, self._newest
        close_at = self._close_at()
        for row in rows:
            value = change(row)
            at = stamp(value, 0)
            key = sensor_of(value)
            for start in range(at - at % slide, at - size, -slide):
                window = windows.get(start)
                if window is None:
                    window = windows[start] = {}
                    close_at = self._close_at()
                held = window.get(key)
                window[key] = fold(value, create() if held is None else held)
            if at > newest:
                newest = at
                if at >= close_at:
                    self.close_until(at - OUT_OF_ORDER_MILLIS)
                    close_at = self._close_at()
        self._newest = newest

    def _close_at(self) -> int:
        """The timestamp that ends the first window."""
        first = min(self._open, default=_NEVER)
        return first + self._size + OUT_OF_ORDER_MILLIS

    def close_until(self, end: int) -> None:
        for start in sorted(self._open):
            if start + self._size > end:
                break
            for held in self._open.pop(start).values():
                self._emit(held, start + self._size)


class Sessions(_Windows):
    """Each key's sessions: start, end, accumulator. A heap knows who must be looked at next."""

    def __init__(self, sink: CheckingSink, gap: int) -> None:
        super().__init__(sink)
        self._gap = gap
        self._open: dict[str, list[list[Any]]] = {}
        self._due: list[tuple[int, str]] = []

    def add(self, rows: Iterable[Reading]) -> None:
        change, stamp, gap = self._change, self._stamp, self._gap
        fold, sessions, newest = self._aggregate.add, self._open, self._newest
        close_at = self._close_at()
        for row in rows:
            value = change(row)
            at = stamp(value, 0)
            key = sensor_of(value)
            mine = sessions.get(key)
            if mine is not None and mine[-1][0] <= at <= mine[-1][1]:
                last = mine[-1]
                if at + gap > last[1]:
                    last[1] = at + gap
                last[2] = fold(value, last[2])
            else:
                self._place(key, value, at)
                close_at = self._close_at()
            if at > newest:
                newest = at
                if at >= close_at:
                    self.close_until(at - OUT_OF_ORDER_MILLIS)
                    close_at = self._close_at()
        self._newest = newest

    def _place(self, key: str, value: Reading, at: int) -> None:
        """A record that does not just prolong the key's last session."""
        start, end = at, at + self._gap
        held = self._aggregate.add(value, self._aggregate.create_accumulator())
        apart = []
        for other in self._open.get(key, ()):
            if other[0] <= end and other[1] >= start:
                start, end = min(start, other[0]), max(end, other[1])
                held = self._aggregate.merge(other[2], held)
            else:
                apart.append(other)
        self._open[key] = sorted([*apart, [start, end, held]], key=lambda session: session[0])
        heapq.heappush(self._due, (end, key))

    def _close_at(self) -> int:
        return self._due[0][0] + OUT_OF_ORDER_MILLIS if self._due else _NEVER

    def close_until(self, end: int) -> None:
        while self._due and self._due[0][0] <= end:
            due, key = heapq.heappop(self._due)
            open_ones = []
            for session in self._open.pop(key, ()):
                if session[1] <= end:
                    self._emit(session[2], session[1])
                else:
                    open_ones.append(session)
                    if session[1] > due:
                        heapq.heappush(self._due, (session[1], key))
            if open_ones:
                self._open[key] = open_ones


_KINDS: dict[str, Callable[[CheckingSink], Any]] = {
    TUMBLING: lambda sink: Aligned(sink, SIZE_MILLIS, SIZE_MILLIS),
    SLIDING: lambda sink: Aligned(sink, SIZE_MILLIS, SLIDE_MILLIS),
    SESSIONS: lambda sink: Sessions(sink, GAP_MILLIS),
}
