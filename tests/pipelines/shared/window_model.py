"""What windows must give, computed in the plainest way: every window is looked at after every step.

No timers, no panes, no state: a list of windows per key, each with its elements. Made to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MIN = -(1 << 63)


class Element(NamedTuple):
    key: str
    time: int
    value: int


class Firing(NamedTuple):
    key: str
    start: int
    end: int
    values: tuple[int, ...]
    """Sorted: in which order merged windows have theirs is nobody's promise."""


@dataclass
class _Window:
    start: int
    end: int
    values: list[int] = field(default_factory=list)
    counted: int = 0
    """Elements since the last firing, where those are counted."""


Spans = Callable[[int], list[tuple[int, int]]]
"""The windows of a timestamp, each from when until before when."""


def aligned(size: int, slide: int, offset: int = 0) -> Spans:
    """All windows that hold a time, newest first, found by trying every start near enough."""
    return lambda time: [
        (start, start + size)
        for start in range(time, time - size, -1)
        if (start - offset) % slide == 0
    ]


def session(gap: int) -> Spans:
    return lambda time: [(time, time + gap)]


class Model:
    """Steps in, firings and late elements out."""

    def __init__(
        self, spans: Spans, lateness: int, merging: bool = False, every: int | None = None
    ) -> None:
        """With `every`, windows fire at so many elements, and not when they end."""
        self._spans = spans
        self._lateness = lateness
        self._merging = merging
        self._every = every
        self._watermark = MIN
        self._windows: dict[str, list[_Window]] = {}

    def element(self, element: Element) -> tuple[list[Firing], list[Element]]:
        windows = self._windows.setdefault(element.key, [])
        firings: list[Firing] = []
        taken = False
        for start, end in self._spans(element.time):
            window = self._window(windows, start, end)
            if self._gone(window):
                continue
            if window not in windows:
                windows.append(window)
            taken = True
            window.values.append(element.value)
            window.counted += 1
            if self._fires_now(window):
                window.counted = 0
                firings.append(_firing(element.key, window))
        late = not taken and element.time + self._lateness <= self._watermark
        return firings, [element] if late else []

    def _window(self, windows: list[_Window], start: int, end: int) -> _Window:
        """The one that is there, or a new one; merged with all that it touches."""
        if not self._merging:
            same = [w for w in windows if (w.start, w.end) == (start, end)]
            return same[0] if same else _Window(start, end)
        touching = [w for w in windows if w.start <= end and start <= w.end]
        for window in touching:
            windows.remove(window)
        return _Window(
            min([start, *(w.start for w in touching)]),
            max([end, *(w.end for w in touching)]),
            [value for w in touching for value in w.values],
            sum(w.counted for w in touching),
        )

    def _fires_now(self, window: _Window) -> bool:
        if self._every is not None:
            return window.counted >= self._every
        return window.end - 1 <= self._watermark

    def _gone(self, window: _Window) -> bool:
        return window.end - 1 + self._lateness <= self._watermark

    def watermark(self, time: int) -> list[Firing]:
        if time <= self._watermark:
            return []
        before, self._watermark = self._watermark, time
        firings = list(self._ended(before)) if self._every is None else []
        for key, windows in self._windows.items():
            self._windows[key] = [window for window in windows if not self._gone(window)]
        return firings

    def _ended(self, before: int) -> Iterator[Firing]:
        for key, windows in sorted(self._windows.items()):
            for window in sorted(windows, key=lambda window: window.end):
                if before < window.end - 1 <= self._watermark:
                    yield _firing(key, window)


def _firing(key: str, window: _Window) -> Firing:
    return Firing(key, window.start, window.end, tuple(sorted(window.values)))
