"""Windows that grow together, such as sessions.

State does not move when windows merge: each window of a key has a state window, under which its
contents lie, and the merged window takes over that of one of the merged ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.window import MergingWindowAssigner

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Called with the result, the merged windows, the state window that stays, those that go."""


class WindowSet:
    """The open windows of one key: window → state window."""

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], windows: dict[Any, Any]) -> None:
        self._assigner = assigner
        self.windows = windows
        self.changed = False

    def state_window(self, window: Any) -> Any:
        return self.windows.get(window)

    def retire(self, window: Any) -> None:
        self.changed = True
        del self.windows[window]

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Add a window; it, or what it was merged into."""
        merges: list[tuple[Any, list[Any]]] = []
        self._assigner.merge_windows([*self.windows, window], _Noting(merges))
        result = window
        for merged, parts in merges:
            known = [part for part in self.windows if part in parts]  # the oldest first
            if window in parts:
                result = merged
            if known and known != [merged]:  # else the new one lies within one that is there
                self.changed = True
                state_windows = [self.windows.pop(part) for part in known]
                self.windows[merged] = state_windows[0]
                on_merge(merged, known, state_windows[0], state_windows[1:])
        if result not in self.windows:
            self.changed = True
            self.windows[result] = result
        return result


class _Noting(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self, merges: list[tuple[Any, list[Any]]]) -> None:
        self._merges = merges

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self._merges.append((merge_result, list(to_be_merged)))
