"""Windows with any assigner, trigger and evictor, on either clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import Types
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    MAX_LONG_VALUE,
    MIN_LONG_VALUE,
    MergingWindowAssigner,
    TriggerResult,
    Window,
)
from penstock.errors import InvalidArgumentError, InvalidProgramError
from penstock.runtime.codec import own_copy
from penstock.runtime.operators.base import OpenOperator, OperatorHost, close_function
from penstock.runtime.operators.windows.contents import Contents, EvictableContents
from penstock.runtime.operators.windows.evaluation import Evaluation
from penstock.runtime.operators.windows.lateness import LateRecords
from penstock.runtime.operators.windows.merging import WindowSet
from penstock.runtime.operators.windows.trigger_context import AssignerContext, TriggerContext
from penstock.runtime.watermarks import WATERMARK, Control
from penstock.state.rewriting import Lift
from penstock.state.windows import window_bytes, window_of

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing


class GeneralWindows(OpenOperator):
    """Each record is put into windows one by one, and each window asks its trigger."""

    layout = "windows of a custom kind, trigger or evictor"

    @staticmethod
    def held(elements: bool) -> dict[str, Lift]:
        """Contents are in state under a descriptor, which sees to it itself."""
        return {}

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        assert host.keyed_state is not None
        self._host = host
        self._scope = host.scope
        self._combine = windowing.combine
        self._assigner = windowing.assigner
        self._event_time = windowing.assigner.is_event_time()
        self._trigger = windowing.trigger
        self._lateness = windowing.allowed_lateness
        self._assigner_context = AssignerContext(host)
        self._trigger_context = TriggerContext(host)
        self._evaluation = Evaluation(windowing, host)
        self._late = LateRecords(windowing, host)
        self._contents = (
            Contents(windowing, host)
            if windowing.evictor is None
            else EvictableContents(windowing, host, windowing.evictor)
        )
        merging = isinstance(windowing.assigner, MergingWindowAssigner)
        self._sets = (
            host.context.get_state(
                ValueStateDescriptor("_merging_windows", Types.PICKLED_BYTE_ARRAY())
            )
            if merging
            else None
        )

    # Records

    def process(self, value: Any) -> None:
        timestamp = self._scope.timestamp
        if timestamp is None:
            if self._event_time:
                raise InvalidProgramError.no_timestamps()
            timestamp = MIN_LONG_VALUE
        key = self._scope.key
        windows = self._windows_of(value, timestamp)
        add = self._add if self._sets is None else self._add_merging
        own = [value]
        if len(windows) > 1:  # a function may change it in one of them
            own = [own_copy(value, "a record that goes into several windows") for _ in windows]
        added = False
        for window, record in zip(windows, own, strict=False):
            added = add(key, window, record, timestamp) or added
        if not added and self._is_late(timestamp):
            self._scope.timestamp = timestamp
            self._late.handle(value)

    def _windows_of(self, value: Any, timestamp: int) -> list[Any]:
        assigned: Any = self._assigner.assign_windows(value, timestamp, self._assigner_context)
        windows = None if isinstance(assigned, Window | None) else list(assigned)
        if windows is None or not all(isinstance(window, Window) for window in windows):
            raise InvalidArgumentError.of(
                f"what {self._assigner!r} assigns", "a collection of windows", assigned
            )
        return windows

    def run(self, values: Iterable[Any]) -> None:
        process = self.process
        for value in values:
            process(value)

    def _add(self, key: Any, window: Any, value: Any, timestamp: int) -> bool:
        """Put a record into a window, unless the window is gone."""
        if self._is_gone(window):
            return False
        self._contents.enter(window)
        self._put(key, window, value, timestamp)
        return True

    def _add_merging(self, key: Any, new: Any, value: Any, timestamp: int) -> bool:
        with self._window_set() as windows:
            window = windows.add(new, self._merge)
            if self._is_gone(window):
                windows.retire(window)
                return False
            self._contents.enter(windows.state_window(window))
        self._put(key, window, value, timestamp)
        return True

    def _put(self, key: Any, window: Any, value: Any, timestamp: int) -> None:
        self._contents.add(value, timestamp)
        context = self._trigger_context
        context.enter(window)
        result = self._trigger.on_element(value, timestamp, window, context)
        self._follow(result, key, window)
        # The user's functions may have left the key's or the record's place.
        self._scope.key, self._scope.timestamp = key, timestamp
        context.enter(window)
        self._register_cleanup(window)

    def _merge(self, window: Any, merged: list[Any], kept: Any, given_up: list[Any]) -> None:
        """Windows have become one."""
        reached = self._host.time.watermark if self._event_time else self._clock_passed()
        if self._cleanup_time(window) <= reached:
            raise InvalidProgramError(
                f"the window assigner {self._assigner!r} merged windows into {window!r}, which "
                f"ends before the current time {reached}; merging must not bring an end forward"
            )
        context = self._trigger_context
        context.enter(window, merged)
        self._trigger.on_merge(window, context)
        for part in merged:
            if part != window:
                context.enter(part)
                self._trigger.clear(part, context)
                self._delete_cleanup(part)
        self._contents.enter(kept)
        self._contents.merge(given_up)

    def _follow(self, result: TriggerResult, key: Any, window: Any) -> None:
        """Do what the trigger wants."""
        if result.__class__ is not TriggerResult:
            raise InvalidArgumentError.of(
                f"what the methods of {self._trigger!r} return", "a TriggerResult", result
            )
        if result.is_fire():
            self._contents.evaluate(
                window,
                lambda held: self._host.emit_run(self._evaluation.results(window, [(key, held)])),
            )
        if result.is_purge():
            self._scope.key = key
            self._contents.clear()

    # Time

    def _clock_passed(self) -> int:
        """The last millisecond of the clock that is over. In the current one records may still
        come, and would open a window that ends with it a second time."""
        return self._host.clock() - 1

    def _is_gone(self, window: Any) -> bool:
        """Whether a window's state has been cleaned up."""
        return self._event_time and self._cleanup_time(window) <= self._host.time.watermark

    def _is_late(self, timestamp: int) -> bool:
        return self._event_time and timestamp + self._lateness <= self._host.time.watermark

    def _cleanup_time(self, window: Any) -> int:
        end: int = window.max_timestamp()
        return min(end + self._lateness, MAX_LONG_VALUE) if self._event_time else end

    def _register_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return  # never
        if self._event_time:
            self._trigger_context.register_event_time_timer(time)
        else:
            self._trigger_context.register_processing_time_timer(time)

    def _delete_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return
        if self._event_time:
            self._trigger_context.delete_event_time_timer(time)
        else:
            self._trigger_context.delete_processing_time_timer(time)

    def begin_epoch(self) -> None:
        self._fire_processing(self._trigger_context.processing_timers.due(self._clock_passed()))

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self.time.watermark = time
            context, trigger = self._trigger_context, self._trigger
            due = context.event_timers.due(time)
            self._fire(due, trigger.on_event_time, cleans=self._event_time)
            if time == MAX_LONG_VALUE and self._host.batch:
                # The clock stood still until now, and then all is due.
                self._fire_processing(context.processing_timers.rest())
        self.pass_on(control)

    def next_timer(self, until: int) -> int | None:
        return self._trigger_context.event_timers.first(until)

    def _fire_processing(self, due: Iterator[tuple[int, Any, bytes]]) -> None:
        self._fire(due, self._trigger.on_processing_time, cleans=not self._event_time)

    def _fire(self, due: Iterator[tuple[int, Any, bytes]], ask: Any, cleans: bool) -> None:
        for time, key, namespace in due:
            self._scope.key = key
            self._scope.timestamp = None
            window = window_of(namespace)
            over = cleans and time == self._cleanup_time(window)
            if self._sets is None:
                self._on_timer(ask, time, key, window, window, over)
                continue
            with self._window_set() as windows:
                state_window = windows.state_window(window)
                if state_window is None:
                    continue  # it has been merged into another
                self._on_timer(ask, time, key, window, state_window, over)
                if over:
                    windows.retire(window)
                self._scope.key = key

    def _on_timer(
        self, ask: Any, time: int, key: Any, window: Any, state_window: Any, over: bool
    ) -> None:
        context = self._trigger_context
        context.enter(window)
        self._contents.enter(state_window)
        self._follow(ask(time, window, context), key, window)
        self._scope.key = key
        if over:
            self._clean(window)
        elif context.deleted:  # perhaps the one that cleans up: it may be at the same time
            self._register_cleanup(window)

    def _clean(self, window: Any) -> None:
        """The window is over: contents, trigger, the function's own state."""
        self._contents.clear()
        self._trigger_context.enter(window)
        self._trigger.clear(window, self._trigger_context)
        self._evaluation.clear(window)

    @contextmanager
    def _window_set(self) -> Iterator[WindowSet]:
        """The windows of the current key, written back if they change."""
        assert self._sets is not None
        assert isinstance(self._assigner, MergingWindowAssigner)
        key = self._scope.key
        known = self._sets.value() or ()
        windows = {window_of(w): window_of(s) for w, s in known}
        found = WindowSet(self._assigner, windows)
        yield found
        if found.changed:
            self._scope.key = key
            pairs = tuple((window_bytes(w), window_bytes(s)) for w, s in found.windows.items())
            self._sets.update(pairs or None)

    def parts(self) -> tuple[Any, ...]:
        return self, self._evaluation

    def close(self) -> None:
        self._evaluation.close()
        close_function(self._combine)
