"""Functions of a stream and a broadcast one, with state that every subtask has alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from penstock.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    State,
    StateDescriptor,
)
from penstock.datastream.timerservice import TimerService
from penstock.errors import InvalidArgumentError, StateError
from penstock.runtime.operators.base import OpenOperator, OperatorHost, open_function
from penstock.runtime.operators.process import (
    ElementContext,
    MayHaveTimers,
    ProcessOperator,
    element_input,
    firing,
    timer_service,
)
from penstock.state.backend import NO_KEY
from penstock.state.broadcast_state import LiveBroadcastState
from penstock.state.operator_state import OperatorStates

_MOST_ASKED = 100


@dataclass(frozen=True)
class BroadcastProcess(MayHaveTimers):
    """A BroadcastProcessFunction or KeyedBroadcastProcessFunction."""

    function: Any
    descriptors: tuple[MapStateDescriptor, ...]
    first_in_batch: int = 1
    """The broadcast side: in batch mode all of it comes before the data."""

    def open(self, host: OperatorHost) -> OpenOperator:
        function = self.function
        states = BroadcastStates(host.checkpoints.states, self.descriptors)
        timers = timer_service(function, host)
        reading = ReadContext(host, timers, states)
        open_function(function, host)
        inputs = (
            element_input(function.process_element, reading, host),
            element_input(
                function.process_broadcast_element, WriteContext(host, reading, states), host
            ),
        )
        return ProcessOperator(function, inputs, firing(function, reading, host))


class BroadcastStates:
    """The broadcast states that the function's contexts give it."""

    def __init__(self, states: OperatorStates, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        self._descriptors = descriptors
        self._states = {d.get_name(): states.get_broadcast_state(d) for d in descriptors}
        self._asked: dict[int, tuple[Any, LiveBroadcastState]] = {}
        """By identity, since functions ask for every record, and to compare descriptors takes long.
        With the descriptor: while that is here, no other has its identity."""

    def of(self, descriptor: MapStateDescriptor) -> LiveBroadcastState:
        asked = self._asked.get(id(descriptor))
        if asked is not None:
            return asked[1]
        state = self._of_equal(descriptor)
        if len(self._asked) >= _MOST_ASKED:  # of a program that makes one for each record
            self._asked.clear()
        self._asked[id(descriptor)] = descriptor, state
        return state

    def _of_equal(self, descriptor: MapStateDescriptor) -> LiveBroadcastState:
        if not isinstance(descriptor, MapStateDescriptor):
            raise StateError(f"expected a MapStateDescriptor, got {descriptor!r}")
        if descriptor not in self._descriptors:
            declared = ", ".join(repr(known) for known in self._descriptors)
            raise StateError(
                f"there is no broadcast state {descriptor!r}; broadcast(...) was given {declared}"
            )
        return self._states[descriptor.get_name()]


class ReadContext(
    ElementContext,
    KeyedBroadcastProcessFunction.OnTimerContext,
    BroadcastProcessFunction.ReadOnlyContext,
):
    """The data side, and timers."""

    def __init__(self, host: OperatorHost, timers: TimerService, states: BroadcastStates) -> None:
        super().__init__(host.scope, timers, host.emit_side)
        self._states = states

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        return self._states.of(state_descriptor).view

    def apply_to_keyed_state(self, state_descriptor: Any, function: Any) -> NoReturn:
        """Says where it is."""
        raise StateError(
            "apply_to_keyed_state goes over all keys, which only process_broadcast_element may; "
            "for the current key use the state itself, from open(runtime_context)"
        )

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()


class WriteContext(KeyedBroadcastProcessFunction.Context, BroadcastProcessFunction.Context):
    """The broadcast side, which has no key."""

    def __init__(self, host: OperatorHost, reading: ReadContext, states: BroadcastStates) -> None:
        self._host = host
        self._reading = reading
        self._states = states

    def timestamp(self) -> int:
        return self._reading.timestamp()

    def current_processing_time(self) -> int:
        return self._reading.current_processing_time()

    def current_watermark(self) -> int:
        return self._reading.current_watermark()

    def output(self, tag: OutputTag, value: Any) -> None:
        self._reading.output(tag, value)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.of(state_descriptor)

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
    ) -> None:
        keyed_state = self._host.keyed_state
        if keyed_state is None:
            raise StateError.needs_key("apply_to_keyed_state")
        if not isinstance(state_descriptor, StateDescriptor):
            raise InvalidArgumentError.of(
                "the first argument of apply_to_keyed_state", "a StateDescriptor", state_descriptor
            )
        if not callable(function) or inspect.isgeneratorfunction(function):
            raise InvalidArgumentError.of(
                "the function of apply_to_keyed_state",
                "a callable of key and state, without yield",
                function,
            )
        try:
            for key, state in keyed_state.holders(state_descriptor, self._host.make_room):
                function(key, state)
        finally:
            self._host.scope.key = NO_KEY
