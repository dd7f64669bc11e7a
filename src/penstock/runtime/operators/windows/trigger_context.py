"""What a trigger can ask and do for the window at hand."""

from __future__ import annotations

from typing import Any

from penstock.datastream.state import StateDescriptor
from penstock.datastream.window import Evictor, Trigger, WindowAssigner
from penstock.errors import UnsupportedFeatureError
from penstock.metrics import MetricGroup
from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.state.namespaces import NamespaceScope
from penstock.state.windows import window_bytes


class Clocks:
    """The times that triggers, evictors and assigners see."""

    def __init__(self, host: OperatorHost) -> None:
        self._host = host

    def get_current_processing_time(self) -> int:
        return self._host.clock()

    def get_current_watermark(self) -> int:
        return self._host.time.watermark

    def get_metric_group(self) -> MetricGroup:
        return self._host.context.get_metrics_group()

    def get_runtime_context(self) -> TaskRuntimeContext:
        return self._host.context


class AssignerContext(Clocks, WindowAssigner.WindowAssignerContext):
    """For assigners."""


class EvictorContext(Clocks, Evictor.EvictorContext):
    """For evictors."""


class TriggerContext(Clocks, Trigger.OnMergeContext):
    """State and timers of the current key and the window that was entered last."""

    def __init__(self, host: OperatorHost) -> None:
        super().__init__(host)
        assert host.keyed_state is not None
        self._keyed_state = host.keyed_state
        self._scope = NamespaceScope(host.scope)
        self._place = host.keyed_state.place(self._scope, "trigger/")
        self._merged: list[Any] = []
        self.deleted = False
        """Whether the trigger has deleted a timer since the window was entered."""
        self.event_timers = host.keyed_state.timers("_event_timers")
        self.processing_timers = host.keyed_state.timers("_processing_timers")

    def enter(self, window: Any, merged: list[Any] | None = None) -> None:
        """Work for a window; `merged` are those that have just become it."""
        self._scope.namespace = window_bytes(window)
        self._merged = merged or []
        self.deleted = False

    def register_processing_time_timer(self, time: int) -> None:
        self.processing_timers.register(time, self._scope.namespace)

    def register_event_time_timer(self, time: int) -> None:
        self.event_timers.register(time, self._scope.namespace)

    def delete_processing_time_timer(self, time: int) -> None:
        self.deleted = True
        self.processing_timers.delete(time, self._scope.namespace)

    def delete_event_time_timer(self, time: int) -> None:
        self.deleted = True
        self.event_timers.delete(time, self._scope.namespace)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._keyed_state.get(state_descriptor, self._place)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        state = self.get_partitioned_state(state_descriptor)
        if not hasattr(state, "absorb"):
            raise UnsupportedFeatureError.of(
                f"merging the trigger's state {state_descriptor.get_name()!r}",
                "use list, reducing or aggregating state in a trigger of merging windows",
            )
        move(state, self._scope, [window_bytes(window) for window in self._merged])


def move(state: Any, scope: NamespaceScope, sources: list[bytes]) -> None:
    """Move what a state holds in other namespaces of the key to the current one."""
    target = scope.namespace
    taken = []
    for scope.namespace in sources:
        if scope.namespace != target:
            taken.append(state.take())
    scope.namespace = target
    for content in taken:
        state.absorb(content)
