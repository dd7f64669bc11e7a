"""In which order answers leave: as the records came, or as they are ready. Pure.

Control events keep their place among the records in both: nothing that came before one leaves
behind it, and nothing that came behind it before.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from penstock.runtime.watermarks import Control


class Call:
    """A record that the function was called with."""

    __slots__ = ("deadline", "results", "segment", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value = value
        self.timestamp = timestamp
        self.results: list[Any] | None = None
        """None until it is answered."""
        self.deadline = 0.0
        self.segment: _Segment | None = None


class CallQueue(Protocol):
    """The calls that have not left, and the control events between them."""

    size: int
    """How many calls there are."""

    def add(self, call: Call) -> None: ...

    def add_control(self, control: Control) -> None: ...

    def answered(self, call: Call) -> None:
        """The call has its results."""

    def take(self) -> Call | None:
        """Removes the next call that may leave."""

    def take_control(self) -> Control | None:
        """Removes the next control event, if nothing is before it any more."""


class OrderedQueue:
    """Answers leave as the records came."""

    def __init__(self) -> None:
        self.size = 0
        self._items: deque[Call | Control] = deque()

    def add(self, call: Call) -> None:
        self.size += 1
        self._items.append(call)

    def add_control(self, control: Control) -> None:
        self._items.append(control)

    def answered(self, call: Call) -> None:
        """The call knows it."""

    def take(self) -> Call | None:
        if self._items:
            first = self._items[0]
            if isinstance(first, Call) and first.results is not None:
                self._items.popleft()
                self.size -= 1
                return first
        return None

    def take_control(self) -> Control | None:
        first = self._items[0] if self._items else None
        if first is None or isinstance(first, Call):
            return None
        self._items.popleft()
        return first


class _Segment:
    """The calls between two control events."""

    __slots__ = ("answered", "control", "open")

    def __init__(self) -> None:
        self.open = 0
        """Calls that have not left."""
        self.answered: deque[Call] = deque()
        self.control: Control | None = None
        """What ends it; None for the last one, which takes further calls."""


class UnorderedQueue:
    """Answers leave as they are ready, but not past a control event."""

    def __init__(self) -> None:
        self.size = 0
        self._segments: deque[_Segment] = deque([_Segment()])

    def add(self, call: Call) -> None:
        self.size += 1
        call.segment = self._segments[-1]
        call.segment.open += 1

    def add_control(self, control: Control) -> None:
        self._segments[-1].control = control
        self._segments.append(_Segment())

    def answered(self, call: Call) -> None:
        assert call.segment is not None
        call.segment.answered.append(call)

    def take(self) -> Call | None:
        first = self._segments[0]
        if not first.answered:
            return None
        self.size -= 1
        first.open -= 1
        return first.answered.popleft()

    def take_control(self) -> Control | None:
        first = self._segments[0]
        if first.open or first.control is None:
            return None
        self._segments.popleft()
        return first.control
