"""Assigners of windows by time: tumbling, sliding and session, in event or processing time.

What an assigner was made with can be read from it (`size`, `slide`, `offset`, `gap`: all in
milliseconds), so that the window operator can compute its windows without a call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from penstock.common.serializer import TypeSerializer
from penstock.common.time import to_signed_millis
from penstock.datastream._time_triggers import (
    EventTimeTrigger,
    ProcessingTimeTrigger,
    Span,
    positive_millis,
)
from penstock.datastream._window_contracts import (
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    Trigger,
    WindowAssigner,
)
from penstock.datastream._window_serializers import TimeWindowSerializer
from penstock.datastream._windows import MIN_LONG_VALUE, TimeWindow
from penstock.errors import InvalidArgumentError, InvalidProgramError

T = TypeVar("T")

Gap = SessionWindowTimeGapExtractor | Callable[[Any], int]


class _TimeWindows(WindowAssigner[T, TimeWindow]):
    """Windows by time, on one of two clocks."""

    @abstractmethod
    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time by which an element is put into windows."""

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _InEventTime(_TimeWindows[T]):
    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        if timestamp is None or timestamp == MIN_LONG_VALUE:
            raise InvalidProgramError.no_timestamps()
        return timestamp

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _InProcessingTime(_TimeWindows[T]):
    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


def _offset(offset: Span | None, period: int, what: str, whose: str) -> int:
    """The offset in milliseconds; beyond one period it would only hide a mistake."""
    millis = 0 if offset is None else to_signed_millis(offset, what)
    if abs(millis) >= period:
        raise InvalidArgumentError.of(
            what, f"shorter than the {whose} ({period} ms), in either direction", offset
        )
    return millis


class _Tumbling(_TimeWindows[T]):
    """One window for each element."""

    def __init__(self, size: Span, offset: Span | None = None) -> None:
        name = type(self).__name__
        self.size = positive_millis(size, f"the size of {name}")
        self.offset = _offset(offset, self.size, f"the offset of {name}", "size")

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self._time(timestamp, context)
        start = time - (time - self.offset) % self.size
        return (TimeWindow(start, start + self.size),)

    def __repr__(self) -> str:
        offset = f", offset={self.offset}" if self.offset else ""
        return f"{type(self).__name__}({self.size}{offset})"


class TumblingEventTimeWindows(_InEventTime[T], _Tumbling[T]):
    """Windows of one size, side by side, by the elements' timestamps."""

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingEventTimeWindows[Any]:
        """Windows begin at multiples of `size` since 1970 (UTC), moved by `offset`.

        For days of a time zone that is eight hours ahead, the offset is minus eight hours.
        """
        return TumblingEventTimeWindows(size, offset)


class TumblingProcessingTimeWindows(_InProcessingTime[T], _Tumbling[T]):
    """Windows of one size, side by side, by the task's clock."""

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingProcessingTimeWindows[Any]:
        """Windows begin at multiples of `size` since 1970 (UTC), moved by `offset`."""
        return TumblingProcessingTimeWindows(size, offset)


class _Sliding(_TimeWindows[T]):
    """As many windows for each element as overlap at its time."""

    def __init__(self, size: Span, slide: Span, offset: Span | None = None) -> None:
        name = type(self).__name__
        self.size = positive_millis(size, f"the size of {name}")
        self.slide = positive_millis(slide, f"the slide of {name}")
        self.offset = _offset(offset, self.slide, f"the offset of {name}", "slide")

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self._time(timestamp, context)
        size = self.size
        last = time - (time - self.offset) % self.slide
        return [TimeWindow(start, start + size) for start in range(last, time - size, -self.slide)]

    def __repr__(self) -> str:
        offset = f", offset={self.offset}" if self.offset else ""
        return f"{type(self).__name__}({self.size}, {self.slide}{offset})"


class SlidingEventTimeWindows(_InEventTime[T], _Sliding[T]):
    """Windows of one size, a new one every slide, by the elements' timestamps."""

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingEventTimeWindows[Any]:
        """A slide longer than the size leaves gaps, whose elements are in no window."""
        return SlidingEventTimeWindows(size, slide, offset)


class SlidingProcessingTimeWindows(_InProcessingTime[T], _Sliding[T]):
    """Windows of one size, a new one every slide, by the task's clock."""

    @staticmethod
    def of(
        size: Span, slide: Span, offset: Span | None = None
    ) -> SlidingProcessingTimeWindows[Any]:
        """A slide longer than the size leaves gaps, whose elements are in no window."""
        return SlidingProcessingTimeWindows(size, slide, offset)


class _Sessions(_TimeWindows[T], MergingWindowAssigner[T, TimeWindow]):
    """Each element opens a window as long as the gap; windows that meet become one."""

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


class _FixedGap(_Sessions[T]):
    def __init__(self, session_gap: Span) -> None:
        self.gap = positive_millis(session_gap, f"the gap of {type(self).__name__}")

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        start = self._time(timestamp, context)
        return (TimeWindow(start, start + self.gap),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.gap})"


class _DynamicGap(_Sessions[T]):
    def __init__(self, session_window_time_gap_extractor: Gap) -> None:
        extractor = session_window_time_gap_extractor
        if isinstance(extractor, SessionWindowTimeGapExtractor):
            self._extract: Callable[[Any], int] = extractor.extract
        elif callable(extractor) and not isinstance(extractor, type):
            self._extract = extractor
        else:
            raise InvalidArgumentError.of(
                f"the gap of {type(self).__name__}",
                "a SessionWindowTimeGapExtractor or a callable that gives milliseconds",
                extractor,
            )

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        start = self._time(timestamp, context)
        gap = self._extract(element)
        if not isinstance(gap, int) or isinstance(gap, bool) or gap <= 0:
            raise InvalidArgumentError.of(
                "the session gap of an element", "a positive int, in milliseconds", gap
            )
        return (TimeWindow(start, start + gap),)


class EventTimeSessionWindows(_InEventTime[T], _FixedGap[T]):
    """A window as long as elements follow each other within the gap, by their timestamps."""

    @staticmethod
    def with_gap(size: Span) -> EventTimeSessionWindows[Any]:
        return EventTimeSessionWindows(size)

    @staticmethod
    def with_dynamic_gap(extractor: Gap) -> DynamicEventTimeSessionWindows[Any]:
        """Each element says how long it keeps its session open."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_InProcessingTime[T], _FixedGap[T]):
    """A window as long as elements follow each other within the gap, by the task's clock."""

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows[Any]:
        return ProcessingTimeSessionWindows(size)

    @staticmethod
    def with_dynamic_gap(extractor: Gap) -> DynamicProcessingTimeSessionWindows[Any]:
        """Each element says how long it keeps its session open."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_InEventTime[T], _DynamicGap[T]):
    """Sessions by the elements' timestamps, where each element has a gap of its own."""

    @staticmethod
    def with_dynamic_gap(extractor: Gap) -> DynamicEventTimeSessionWindows[Any]:
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_InProcessingTime[T], _DynamicGap[T]):
    """Sessions by the task's clock, where each element has a gap of its own."""

    @staticmethod
    def with_dynamic_gap(extractor: Gap) -> DynamicProcessingTimeSessionWindows[Any]:
        return DynamicProcessingTimeSessionWindows(extractor)
