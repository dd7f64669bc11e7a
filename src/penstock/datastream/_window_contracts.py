"""The contracts of what assigns windows, fires them and takes elements out of them.

The window operator implements the contexts; users implement the rest, or take what is ready-made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from penstock.datastream._windows import Window

if TYPE_CHECKING:
    from penstock.common.serializer import TypeSerializer
    from penstock.datastream.functions import RuntimeContext
    from penstock.datastream.state import State, StateDescriptor
    from penstock.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


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


class _Clocks(ABC):
    """What triggers and evictors can ask."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Milliseconds since the epoch on the task's clock."""

    @abstractmethod
    def get_metric_group(self) -> MetricGroup:
        """Where it registers its own metrics."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """The event-time watermark in milliseconds."""


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated. Keeps what it must remember in partitioned state."""

    class TriggerContext(_Clocks):
        """Clocks, timers and state of the window at hand."""

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


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
        """The windows of `element`; its timestamp is the smallest long if it has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger if the user names none."""

    def get_window_serializer(self) -> TypeSerializer[W] | None:
        """How windows are stored; None lets the runtime choose by the windows' class."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows follow the watermark."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


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


class DeltaFunction(ABC, Generic[T]):
    """How far apart two values are."""

    @abstractmethod
    def get_delta(self, old_data_point: T, new_data_point: T) -> float:
        """The distance from an older value to a newer one."""


class TimestampedValue(NamedTuple):
    """An element of a window as evictors see it."""

    value: Any
    timestamp: int | None
    """Milliseconds, None if the element has no timestamp."""


class Evictor(ABC, Generic[T, W]):
    """Takes elements out of a window that fires, before its function is called or after.

    Both methods get the window's elements as a list, in the order of their arrival. They either
    take elements out of that list and return None, or return the list of those to keep. What is
    taken out before is not seen by the function, and what is taken out at all is gone for good.

    With an evictor a window keeps every element, also under `reduce` and `aggregate`, which are
    then computed when it fires.
    """

    class EvictorContext(_Clocks):
        """Clocks and metrics."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        ctx: Evictor.EvictorContext,
    ) -> list[TimestampedValue] | None:
        """Before the window function; `size` is the number of elements."""

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: W,
        ctx: Evictor.EvictorContext,
    ) -> list[TimestampedValue] | None:
        """After the window function; `size` is the number of elements."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
