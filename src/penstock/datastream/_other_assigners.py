"""Assigners of windows without time: by count, and the one window that holds everything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from penstock.common.serializer import TypeSerializer
from penstock.common.typeinfo import Types
from penstock.datastream._time_triggers import EndOfStreamTrigger
from penstock.datastream._triggers import (
    CountTrigger,
    NeverTrigger,
    PurgingTrigger,
    positive_count,
)
from penstock.datastream._window_contracts import Trigger, WindowAssigner
from penstock.datastream._window_serializers import CountWindowSerializer, GlobalWindowSerializer
from penstock.datastream._windows import CountWindow, GlobalWindow
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import InvalidArgumentError

T = TypeVar("T")


class _CountWindows(WindowAssigner[T, CountWindow]):
    """Numbers the elements of each key, in state of that key."""

    size: int
    _seen: ValueStateDescriptor

    def _number(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """How many elements the key had before this one."""
        seen = context.get_runtime_context().get_state(self._seen)
        count = seen.value() or 0
        seen.update(count + 1)
        return count

    def get_default_trigger(self, env: Any) -> Trigger[T, CountWindow]:
        # A full window gets no more elements, so that nothing of it needs to be kept.
        return PurgingTrigger(CountTrigger(self.size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows[T]):
    """Every `size` elements of a key are a window."""

    _seen = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    def __init__(self, window_size: int) -> None:
        self.size = positive_count(window_size, "the size of CountTumblingWindowAssigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner[Any]:
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        return (CountWindow(self._number(context) // self.size),)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.size})"


class CountSlidingWindowAssigner(_CountWindows[T]):
    """Windows of `size` elements of a key, a new one every `slide` elements.

    The first window begins with the first element, so that none fires before it is full.
    """

    _seen = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    def __init__(self, window_size: int, window_slide: int) -> None:
        self.size = positive_count(window_size, "the size of CountSlidingWindowAssigner")
        self.slide = positive_count(window_slide, "the slide of CountSlidingWindowAssigner")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner[Any]:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = self._number(context)
        last = number // self.slide
        first = max(0, (number - self.size) // self.slide + 1)
        return [CountWindow(id) for id in range(last, first - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.size}, {self.slide})"


class GlobalWindows(WindowAssigner[T, GlobalWindow]):
    """All elements of a key are in one window, which never ends. It needs a trigger."""

    def __init__(self, default_trigger: Trigger[T, GlobalWindow] | None = None) -> None:
        if not isinstance(default_trigger, Trigger | None):
            raise InvalidArgumentError.of(
                "the default trigger of GlobalWindows", "a Trigger", default_trigger
            )
        self._default_trigger = default_trigger

    @staticmethod
    def create() -> GlobalWindows[Any]:
        """Without a trigger of its own: it never fires unless one is given by `trigger(...)`."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows[Any]:
        """Fires once, when the input has ended."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return (GlobalWindow.get(),)

    def get_default_trigger(self, env: Any) -> Trigger[T, GlobalWindow]:
        return NeverTrigger() if self._default_trigger is None else self._default_trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False
