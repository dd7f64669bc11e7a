"""Windows as values: what a window is, told apart from who assigns, fires or stores it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock.datastream._window_contracts import MergingWindowAssigner

MAX_LONG_VALUE = (1 << 63) - 1
MIN_LONG_VALUE = -(1 << 63)


class Window(ABC):
    """A finite bucket of a stream. Windows are keys of state: equal, hashable, picklable."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last timestamp that still belongs here."""


class TimeWindow(Window):
    """From `start` (inclusive) to `end` (exclusive), in milliseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch; touching sessions are one session."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Start of the window of `window_size`, aligned to `offset`, that holds `timestamp`."""
        if window_size <= 0:
            raise InvalidArgumentError.of("the window size", "greater than 0", window_size)
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(
        windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Tell `callback` of each group of two or more overlapping windows."""
        for cover, group in _overlapping(windows):
            if len(group) > 1:
                callback.merge(group, cover)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeWindow) and self.start == other.start and self.end == other.end

    def __lt__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


def _overlapping(windows: Iterable[TimeWindow]) -> list[tuple[TimeWindow, set[TimeWindow]]]:
    """Groups of windows that hang together, each with the window that covers it."""
    groups: list[tuple[TimeWindow, set[TimeWindow]]] = []
    for window in sorted(windows):
        if groups and groups[-1][0].intersects(window):
            cover, members = groups[-1]
            groups[-1] = (cover.cover(window), members | {window})
        else:
            groups.append((window, {window}))
    return groups


class CountWindow(Window):
    """The `id`-th window by count of a key."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and self.id == other.id

    def __lt__(self, other: CountWindow) -> bool:
        return self.id < other.id

    def __hash__(self) -> int:
        return hash((CountWindow, self.id))

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window that holds everything."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The window; all instances are equal."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __lt__(self, other: GlobalWindow) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(GlobalWindow)

    def __repr__(self) -> str:
        return "GlobalWindow()"


_GLOBAL_WINDOW = GlobalWindow()
