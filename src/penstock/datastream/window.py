"""Windows as values, and the contracts of what assigns and fires them.

Ready-made assigners and triggers join this module with the window operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock.common.serializer import TypeSerializer
    from penstock.datastream.functions import RuntimeContext
    from penstock.datastream.state import State, StateDescriptor
    from penstock.metrics import MetricGroup

__all__ = [
    "MAX_LONG_VALUE",
    "MIN_LONG_VALUE",
    "CountWindow",
    "GlobalWindow",
    "MergingWindowAssigner",
    "SessionWindowTimeGapExtractor",
    "TimeWindow",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
]

MAX_LONG_VALUE = (1 << 63) - 1
MIN_LONG_VALUE = -(1 << 63)

T = TypeVar("T")
W = TypeVar("W", bound="Window")
W2 = TypeVar("W2", bound="Window")


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


class TriggerResult(Enum):
    """What a trigger wants done with its window; the value is (fire, purge)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether to evaluate the window and emit results."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether to drop the window's elements."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated. Keeps what it must remember in partitioned state."""

    class TriggerContext(ABC):
        """Clocks, timers and state of the window at hand."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Milliseconds since the epoch on the task's clock."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Where the trigger registers its own metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` once the clock reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` once the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget that timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget that timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of this key and window."""

    class OnMergeContext(TriggerContext):
        """The context while windows are merged."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the merged windows into that of the result."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """An element was added to the window."""

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """A processing-time timer of the window fired."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of the window fired."""

    def can_merge(self) -> bool:
        """Whether it works with merging windows; then `on_merge` must be there too."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Several windows became `window`."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Drop the window's timers and state."""


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each element into windows."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Milliseconds since the epoch on the task's clock."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The task it runs in."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of `element`."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger if the user names none."""

    def get_window_serializer(self) -> TypeSerializer[W] | None:
        """How windows are stored; None lets the runtime choose by the windows' class."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows follow the watermark."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may grow together, as sessions do."""

    class MergeCallback(ABC, Generic[W2]):
        """Told of each merge."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """`to_be_merged` become `merge_result`."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Tell `callback` which of `windows` belong together."""


class SessionWindowTimeGapExtractor(ABC):
    """Gives each element its own session gap."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds."""
