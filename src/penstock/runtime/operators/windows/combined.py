"""Windows whose records were combined by key and slice before they came: partial results are merged
into what a window holds. State is the same as of windows that take records."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.common.parts import in_parts
from penstock.datastream.window import TimeWindow
from penstock.runtime.aggregates import BuiltInAggregate
from penstock.runtime.grouping import column_of
from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.operators.windows.aligned import AlignedWindows
from penstock.runtime.operators.windows.sliced import SlicedWindows
from penstock.runtime.partials import Merged
from penstock.runtime.watermarks import WATERMARK, Control
from penstock.state.windows import check_span

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_MOST_ROWS, _MOST_BYTES = 1_000_000, 64 << 20
"""That wait. Rows with sets of values in them are large."""
_AT_ONCE = 8192
_MOST_RUNS = 64
"""Runs of rows with one start that are taken one by one; else rows are sorted first."""


class CombinedAligned(AlignedWindows):
    """Tumbling windows, or sliding ones that are kept one by one.

    Batches wait until time moves, or until the end of the epoch: then what came from all tasks is
    merged, and only what that leaves is looked at row by row.
    """

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        super().__init__(windowing, host)
        assert windowing.combined is not None
        self._merged = windowing.combined.merged
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0
        self.run = self._wait

    def _wait(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._count_waiting(batch)

    def _count_waiting(self, batch: Any) -> None:
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows > _MOST_ROWS or self._bytes > _MOST_BYTES:
            self._merge_waiting()

    def control(self, control: Control) -> None:
        if control[0] == WATERMARK:
            self._before(control[1])
        super().control(control)

    def _before(self, watermark: int) -> None:
        """Time is about to move."""
        self._merge_waiting()

    def end_epoch(self) -> None:
        self._merge_waiting()
        super().end_epoch()

    def _merge_waiting(self) -> None:
        """What waits becomes contents of windows."""
        waiting, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        self._merge_batches(waiting)

    def _merge_batches(self, batches: list[Any]) -> None:
        if not batches:
            return
        for part in in_parts(self._merged(batches), _AT_ONCE):
            self._add_rows(part)
            self._host.make_room()

    def _add_rows(self, rows: list[Merged]) -> None:
        """The loop over partial results, each of which lies in the same windows as its slice."""
        merge, find = self._merge, self._table.find
        windows: dict[int, list[tuple[int, dict[Any, Any]]]] = {}
        for key, start, records, partial in rows:
            panes = windows.get(start)
            if panes is None:
                panes = windows[start] = self._windows_of(start, start)[0]
            for begin, changed in panes:
                held = changed.get(key)
                if held is None:
                    held = find(begin, key)
                    if held is None:
                        # In several windows each needs its own: merging may change it.
                        held = self._create() if len(panes) > 1 else None
                changed[key] = partial if held is None else merge(held, partial)
            if not panes:
                self._late.drop(records)


class CombinedSliced(CombinedAligned, SlicedWindows):
    """Sliding windows put together from slices."""


class CombinedTumbling(CombinedAligned):
    """Tumbling windows. One that begins and ends within an epoch never becomes state: its rows wait
    until it is over, and its results are made of their columns."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        super().__init__(windowing, host)
        assert windowing.combined is not None
        assert isinstance(windowing.combine, BuiltInAggregate)
        self._partials = windowing.combined
        self._aggregate = windowing.combine
        self._by_start: dict[int, list[Any]] = {}
        """What waits, by window."""
        self._over: dict[int, Any] = {}
        """The rows of windows that are about to fire, one for each key."""

    def _wait(self, batch: Any) -> None:
        for start, rows in self._in_windows(batch):
            self._by_start.setdefault(start, []).append(rows)
        self._count_waiting(batch)

    def _in_windows(self, batch: Any) -> Iterator[tuple[int, Any]]:
        """The rows of each window."""
        starts = self._partials.starts_in(batch)
        ends = np.flatnonzero(np.diff(starts)) + 1
        if len(ends) > _MOST_RUNS:
            order = np.argsort(starts, kind="stable")
            batch, starts = batch.take(column_of(order)), starts[order]
            ends = np.flatnonzero(np.diff(starts)) + 1
        bounds = [0, *ends.tolist(), len(starts)]
        for begin, end in pairwise(bounds):
            if end > begin:
                yield int(starts[begin]), batch.slice(begin, end - begin)

    def _merge_waiting(self) -> None:
        waiting, self._by_start = self._by_start, {}
        self._rows = self._bytes = 0
        for batches in waiting.values():
            self._merge_batches(batches)

    def _before(self, watermark: int) -> None:
        """Windows that will be over are made ready; others go on waiting."""
        self._know()
        late_until = self._ended_until(self.time.watermark)
        ended_until = self._ended_until(watermark)
        for start in [start for start in self._by_start if start <= ended_until]:
            batches = self._by_start.pop(start)
            self._rows -= sum(batch.num_rows for batch in batches)
            self._bytes -= sum(batch.nbytes for batch in batches)
            rows = None
            if start > late_until and start not in self._table.panes:
                rows = self._partials.grouped(batches)
            if rows is None:
                self._merge_batches(batches)
                continue
            check_span(start, start + self._size)
            (self._over[start],) = rows
            heapq.heappush(self._ends, start)

    def _fire(self, start: int, contents: Iterable[tuple[Any, Any]]) -> None:
        rows = self._over.get(start)
        if rows is None:
            super()._fire(start, contents)
            return
        window = TimeWindow(start, start + self._size)
        self._host.emit_run(self._evaluation.results_of_inputs(window, self._evaluated(rows)))

    def _evaluated(self, rows: Any) -> Iterator[tuple[Any, tuple[Any]]]:
        """Keys, each with what the window's function gets."""
        for keys, results in self._partials.results(rows):
            records = self._aggregate.records(results)
            yield from zip(keys, zip(records, strict=True), strict=True)

    def _all_held(self, start: int) -> Iterable[tuple[Any, Any]]:
        rows = self._over.get(start)
        if rows is None:
            return super()._all_held(start)
        return ((key, held) for key, _, _, held in self._partials.merged([rows]))

    def _forget(self, start: int) -> None:
        if self._over.pop(start, None) is None:
            super()._forget(start)
