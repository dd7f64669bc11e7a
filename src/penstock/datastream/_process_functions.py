"""Process and window functions with their contexts. The runtime implements the contexts.

`process_element`, `on_timer` and the like return an iterable of outputs, a generator, or None.
A side output is `yield tag, value` or, beyond PyFlink, `ctx.output(tag, value)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.datastream._basic_functions import Function, KeyedStateStore

if TYPE_CHECKING:
    from penstock.datastream.output_tag import OutputTag
    from penstock.datastream.state import (
        BroadcastState,
        MapStateDescriptor,
        ReadOnlyBroadcastState,
        State,
        StateDescriptor,
    )
    from penstock.datastream.time_domain import TimeDomain
    from penstock.datastream.timerservice import TimerService

IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class SideOutput(ABC):
    """The part of a context that sends values to side outputs."""

    @abstractmethod
    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit `value` to the side output `tag`."""


class _ElementContext(SideOutput):
    @abstractmethod
    def timer_service(self) -> TimerService:
        """The clocks and, on a keyed stream, the timers."""

    @abstractmethod
    def timestamp(self) -> int:
        """The record's (or timer's) timestamp; the smallest long if the record has none."""


class _KeyedContext(_ElementContext):
    @abstractmethod
    def get_current_key(self) -> Any:
        """The key of the record or timer at hand."""


class ProcessFunction(Function):
    """Handles records one by one; no keyed state, no timers."""

    class Context(_ElementContext):
        """What is known about the record at hand."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """The outputs for `value`."""


class KeyedProcessFunction(Function):
    """Handles the records of a keyed stream with state and timers of the current key."""

    class Context(_KeyedContext):
        """What is known about the record at hand."""

    class OnTimerContext(Context):
        """What is known about the timer that fired."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The clock that the timer belongs to."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Any] | None:
        """The outputs for `value`."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """The outputs for a timer set to `timestamp`."""
        return None


class CoProcessFunction(Function):
    """Handles two connected streams."""

    class Context(_ElementContext):
        """What is known about the record at hand."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """The outputs for a value of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """The outputs for a value of the second stream."""


class KeyedCoProcessFunction(Function):
    """Handles two connected keyed streams that share state and timers of the current key."""

    class Context(_KeyedContext):
        """What is known about the record at hand."""

    class OnTimerContext(Context):
        """What is known about the timer that fired."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The clock that the timer belongs to."""

    @abstractmethod
    def process_element1(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """The outputs for a value of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """The outputs for a value of the second stream."""

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """The outputs for a timer set to `timestamp`."""
        return None


class ProcessJoinFunction(Function):
    """Handles the pairs that an interval join finds. Flink has it in Java only."""

    class Context(SideOutput):
        """What is known about the pair at hand."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The later of both, which outputs have."""

    @abstractmethod
    def process_element(
        self, left: Any, right: Any, ctx: ProcessJoinFunction.Context
    ) -> Iterable[Any] | None:
        """The outputs for a pair."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Turns a keyed window's elements into outputs."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The outputs for one window of one key."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Turns the elements of a window over the whole stream into outputs."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The outputs for one window."""


class _WindowStates(SideOutput):
    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and window; clear it in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Like a `WindowFunction`, with state, clocks and side outputs."""

    class Context(_WindowStates, Generic[W2]):
        """What is known about the window at hand."""

        @abstractmethod
        def window(self) -> W2:
            """The window being evaluated."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Milliseconds since the epoch on the task's clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """The outputs for one window of one key."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the per-window state; called when the window is dropped."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Like an `AllWindowFunction`, with state and side outputs."""

    class Context(_WindowStates, Generic[W2]):
        """What is known about the window at hand."""

        @abstractmethod
        def window(self) -> W2:
            """The window being evaluated."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """The outputs for one window."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the per-window state; called when the window is dropped."""


class BaseBroadcastProcessFunction(Function):
    """What both functions over a stream and a broadcast stream have in common."""

    class BaseContext(SideOutput):
        """Clocks and side outputs."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp; the smallest long if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Milliseconds since the epoch on the task's clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

    class Context(BaseContext):
        """On the broadcast side: broadcast state may be changed."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> BroadcastState[Any, Any]:
            """The broadcast state of that name."""

    class ReadOnlyContext(BaseContext):
        """On the data side: broadcast state may only be read."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """The broadcast state of that name."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Handles a stream beside a broadcast one. Change broadcast state alike on all subtasks."""

    class Context(BaseBroadcastProcessFunction.Context):
        """On the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """On the data side."""

    @abstractmethod
    def process_element(
        self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[OUT] | None:
        """The outputs for a value of the data stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[OUT] | None:
        """The outputs for a broadcast value."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Handles a keyed stream, with state and timers, beside a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context):
        """On the broadcast side: there is no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
        ) -> None:
            """Call `function(key, state)` for every key of this subtask that has such state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """On the data side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The clocks and timers."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record or timer at hand."""

    class OnTimerContext(ReadOnlyContext):
        """What is known about the timer that fired."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The clock that the timer belongs to."""

    @abstractmethod
    def process_element(
        self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[OUT] | None:
        """The outputs for a value of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterable[OUT] | None:
        """The outputs for a broadcast value."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> Iterable[OUT] | None:
        """The outputs for a timer set to `timestamp`."""
        return None
