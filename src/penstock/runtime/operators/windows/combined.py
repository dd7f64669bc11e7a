"""Windows whose records were combined by Spark, by key and slice, before they came: partial results
are merged into what a window holds. State is the same as of windows that take records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common.parts import in_parts
from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.operators.windows.aligned import AlignedWindows
from penstock.runtime.operators.windows.sliced import SlicedWindows
from penstock.runtime.partials import Merged
from penstock.runtime.watermarks import WATERMARK, Control

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_MOST_ROWS, _MOST_BYTES = 1_000_000, 64 << 20
"""That wait. Rows with sets of values in them are large."""
_AT_ONCE = 8192


class CombinedAligned(AlignedWindows):
    """Tumbling windows, or sliding ones that are kept one by one.

    Batches wait until time moves, which it does at the end of an epoch: then what came from all
    tasks is merged by Arrow, and only what that leaves is looked at row by row.
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
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows > _MOST_ROWS or self._bytes > _MOST_BYTES:
            self._merge_waiting()

    def control(self, control: Control) -> None:
        if control[0] == WATERMARK:
            self._merge_waiting()
        super().control(control)

    def end_epoch(self) -> None:
        self._merge_waiting()
        super().end_epoch()

    def _merge_waiting(self) -> None:
        if not self._waiting:
            return
        for part in in_parts(self._merged(self._waiting), _AT_ONCE):
            self._add_rows(part)
            self._host.make_room()
        self._waiting.clear()
        self._rows = self._bytes = 0

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
