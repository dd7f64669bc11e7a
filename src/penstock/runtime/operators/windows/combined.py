"""Windows whose records were combined by key and slice before they came: partial results are merged
into what a window holds. State is the same as of windows that take records."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
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
_SMALL_WINDOW = 64
"""Rows."""

Result = tuple[Any, tuple[Any]]
"""A key, with what the window's function gets."""


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
        self._over: dict[int, Iterable[Result]] = {}
        """The results of windows that are about to fire."""

    def _before(self, watermark: int) -> None:
        """Windows that will be over are made ready; what is of others goes on waiting."""
        due = self._take_due(self._ended_until(watermark))
        if not due:
            return
        rows = self._partials.grouped(due)
        if rows is None:
            self._merge_batches(due)
            return
        self._know()
        late_until, panes = self._ended_until(self.time.watermark), self._table.panes
        starts = self._partials.starts_in(rows)
        ready = [s for s in np.unique(starts).tolist() if s > late_until and s not in panes]
        fresh = np.isin(starts, ready)
        if not fresh.all():
            self._merge_batches([_chosen(rows, ~fresh)])
            rows = _chosen(rows, fresh)
        self._make_ready(rows, len(ready))

    def _take_due(self, ended_until: int) -> list[Any]:
        """The rows of windows that begin until then; others go on waiting."""
        due, waiting = [], []
        for batch in self._waiting:
            now = self._partials.starts_in(batch) <= ended_until
            if now.any():
                due.append(_chosen(batch, now))
            if not now.all():
                waiting.append(_chosen(batch, ~now))
        self._waiting = waiting
        self._rows = sum(batch.num_rows for batch in waiting)
        self._bytes = sum(batch.nbytes for batch in waiting)
        return due

    def _make_ready(self, rows: Any, windows: int) -> None:
        if not windows:
            return
        rows = rows.take(column_of(np.argsort(self._partials.starts_in(rows), kind="stable")))
        starts = self._partials.starts_in(rows)
        bounds = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(starts)]
        # Of small windows all at once: to begin with one costs as much as many rows.
        small = len(starts) < _SMALL_WINDOW * windows
        results = list(self._results(rows)) if small else []
        for begin, end in pairwise(bounds):
            start = int(starts[begin])
            check_span(start, start + self._size)
            own = results[begin:end] if small else _Later(self._results, rows, begin, end)
            self._over[start] = own
            heapq.heappush(self._ends, start)

    def _results(self, rows: Any) -> Iterator[Result]:
        for keys, results in self._partials.results(rows):
            records = self._aggregate.records(results)
            yield from zip(keys, zip(records, strict=True), strict=True)

    def _fire(self, start: int, contents: Iterable[tuple[Any, Any]]) -> None:
        results = self._over.get(start)
        if results is None:
            super()._fire(start, contents)
            return
        window = TimeWindow(start, start + self._size)
        self._host.emit_run(self._evaluation.results_of_inputs(window, results))

    def _all_held(self, start: int) -> Iterable[tuple[Any, Any]]:
        return self._over[start] if start in self._over else super()._all_held(start)

    def _forget(self, start: int) -> None:
        if self._over.pop(start, None) is None:
            super()._forget(start)


class _Later:
    """Results of some rows, made whenever they are asked for."""

    def __init__(self, make: Callable[[Any], Iterator[Result]], *rows: Any) -> None:
        self._make, (self._batch, self._begin, self._end) = make, rows

    def __iter__(self) -> Iterator[Result]:
        return self._make(self._batch.slice(self._begin, self._end - self._begin))


def _chosen(batch: Any, which: Any) -> Any:
    """The rows for which it is true."""
    return batch if which.all() else batch.take(column_of(np.flatnonzero(which)))
