"""Windows whose records were combined by Spark, by key and slice, before they came: partial results
are merged into what a window holds. State is the same as of windows that take records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.operators.windows.aligned import AlignedWindows
from penstock.runtime.operators.windows.sliced import SlicedWindows

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing


class CombinedAligned(AlignedWindows):
    """Tumbling windows, or sliding ones that are kept one by one."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        super().__init__(windowing, host)
        self.run = self._merging

    def _merging(self, values: Iterable[Any]) -> None:
        """The loop over partial results, each of which lies in the same windows as its slice."""
        scope, merge = self._host.scope, self._merge
        windows: dict[int, list[tuple[int, dict[Any, Any]]]] = {}
        for _, start, records, partial in values:
            panes = windows.get(start)
            if panes is None:
                panes = windows[start] = self._windows_of(start, start)[0]
            key = scope.key
            for begin, changed in panes:
                held = changed.get(key)
                if held is None:
                    held = self._held(begin, changed, key)
                changed[key] = merge(held, partial)
            if not panes:
                self._late.drop(records)


class CombinedSliced(SlicedWindows, CombinedAligned):
    """Sliding windows put together from slices."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        super().__init__(windowing, host)
        self.run = self._merging
