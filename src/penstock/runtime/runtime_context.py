"""What a function learns about its task, and how it gets at its state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NoReturn

from penstock.datastream.functions import KeyedStateStore, RuntimeContext
from penstock.datastream.side_input import SideInput
from penstock.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.errors import InvalidArgumentError, StateError
from penstock.metrics import MetricGroup
from penstock.runtime.physical import JobSettings, Vertex
from penstock.runtime.side_inputs import TaskSideInput
from penstock.state.keyed_state import KeyedState


class StatesByDescriptor(KeyedStateStore):
    """Checks that a descriptor is of the kind that is asked for."""

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        state: ValueState[Any] = self._state(state_descriptor, ValueStateDescriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        state: ListState[Any] = self._state(state_descriptor, ListStateDescriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        state: MapState[Any, Any] = self._state(state_descriptor, MapStateDescriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        state: ReducingState[Any] = self._state(state_descriptor, ReducingStateDescriptor)
        return state

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        state: AggregatingState[Any, Any] = self._state(
            state_descriptor, AggregatingStateDescriptor
        )
        return state

    def _state(self, descriptor: StateDescriptor, expected: type) -> Any:
        if not isinstance(descriptor, expected):
            raise StateError(f"expected a {expected.__name__}, got {descriptor!r}")
        return self._found(descriptor)

    @abstractmethod
    def _found(self, descriptor: StateDescriptor) -> Any:
        """The state itself."""


class TaskRuntimeContext(StatesByDescriptor, RuntimeContext):
    """The context of one operator in one subtask."""

    def __init__(
        self,
        settings: JobSettings,
        vertex: Vertex,
        subtask: int,
        name: str,
        keyed_state: KeyedState | None,
    ) -> None:
        self._settings = settings
        self._vertex = vertex
        self._subtask = subtask
        self._name = name
        self._keyed_state = keyed_state
        self._metrics = MetricGroup((name, str(subtask)))
        self._stateless_because = "its input is not keyed; call key_by(...) just before it"
        self.attempt = 0
        self.side_inputs: dict[str, TaskSideInput] = {}

    def refuse_state(self, reason: str) -> None:
        """There is no keyed state for this operator, whatever its input."""
        self._keyed_state = None
        self._stateless_because = reason

    def get_job_id(self) -> str:
        return self._settings.job_id

    def get_task_name(self) -> str:
        return self._name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._vertex.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._vertex.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._subtask

    def get_attempt_number(self) -> int:
        return self.attempt

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._name} ({self._subtask + 1}/{self._vertex.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._settings.parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_operator_state_store(self) -> NoReturn:
        """Says where it is."""
        raise StateError.asked_elsewhere("get_operator_state_store")

    def get_side_input(self, side_input: SideInput | str) -> TaskSideInput:
        name = side_input.name if isinstance(side_input, SideInput) else side_input
        if name not in self.side_inputs:
            raise InvalidArgumentError(
                f"operator {self._name!r} has no side input {name!r}; call "
                "with_side_inputs(...) on it, with what env.side_input(...) returned"
            )
        return self.side_inputs[name]

    def _found(self, descriptor: StateDescriptor) -> Any:
        if self._keyed_state is None:
            raise StateError(
                f"operator {self._name!r} has no keyed state, since {self._stateless_because}"
            )
        return self._keyed_state.get(descriptor)
