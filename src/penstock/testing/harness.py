"""Harnesses: one function at work in a task of the real runtime, driven record by record."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import cloudpickle

from penstock.common.time import Span
from penstock.common.typeinfo import type_info_of
from penstock.datastream._stream_arguments import selector_of
from penstock.datastream.functions import (
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import InvalidArgumentError, StateError, UnpicklableError
from penstock.graph.partitioning import ByKey, Forward, Partitioning
from penstock.runtime.operators.process import Process
from penstock.runtime.operators.reduce import Reduce
from penstock.runtime.operators.sinks import CallSink
from penstock.runtime.operators.stateless import Filter, FlatMap, Map
from penstock.runtime.payload import HEADER_SIZE, encode_body
from penstock.runtime.watermarks import MIN_TIMESTAMP
from penstock.state.keys import check_key, check_stream_key
from penstock.storage.memory_store import MemoryStore
from penstock.testing.clock import ManualClock
from penstock.testing.harness_task import HarnessTask, Surroundings

_TOKEN = "00" * 8
Operators = dict[type[Function], Callable[..., Any]]
_UNKEYED: Operators = {
    MapFunction: Map,
    FlatMapFunction: FlatMap,
    FilterFunction: Filter,
    ProcessFunction: Process,
    SinkFunction: CallSink,
}
_KEYED: Operators = {
    **_UNKEYED,
    KeyedProcessFunction: Process,
    ReduceFunction: Reduce,
}

# What to do with a function that came to the wrong harness.
_HOME: dict[type[Function], str] = {
    KeyedProcessFunction: "works on a keyed stream; use KeyedOperatorHarness",
    ReduceFunction: "works on a keyed stream; use KeyedOperatorHarness",
    CoMapFunction: "works on two streams; use TwoInputHarness or KeyedTwoInputHarness",
    CoFlatMapFunction: "works on two streams; use TwoInputHarness or KeyedTwoInputHarness",
    CoProcessFunction: "works on two streams; use TwoInputHarness or KeyedTwoInputHarness",
    KeyedCoProcessFunction: "works on two keyed streams; use KeyedTwoInputHarness",
    BroadcastProcessFunction: "works beside a broadcast stream; use BroadcastHarness",
    KeyedBroadcastProcessFunction: "works beside a broadcast stream; use KeyedBroadcastHarness",
    AsyncFunction: "works asynchronously; use AsyncFunctionHarness",
    **dict.fromkeys(_UNKEYED, "works on one stream; use OperatorHarness or KeyedOperatorHarness"),
}

H = TypeVar("H", bound="Harness")


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint would hold of a harness's function. Opaque; picklable."""

    program: bytes
    """The function as it was given, key selector and output type."""
    entries: tuple[tuple[bytes, bytes], ...]
    state_types: dict[str, Any]
    operator_state: dict[str, bytes]
    """What the function keeps that belongs to no key."""
    epoch: int
    processing_time: int
    watermark: int


@dataclass(frozen=True)
class Program:
    """A function, and all that a harness was told about it."""

    function: Any
    inputs: tuple[Partitioning, ...]
    output_type: Any = None
    settings: tuple[Any, ...] = ()
    """What its operator needs beside the function."""


class Harness:
    """What all harnesses can do: time, outputs, snapshots.

    The function is pickled once, as for a job: one that cannot be is refused here. Records go
    through the codec as they would between tasks, so the function gets copies of them. What the
    function raises arrives as a `UserFunctionError`, with the original as its ``__cause__``.
    """

    _operators: ClassVar[Operators]

    def _start(self, program: Program, surroundings: Surroundings) -> None:
        function = program.function
        name = type(function).__name__
        operator = self._operator(function, program.settings)
        self.function = function
        self._inputs = program.inputs
        self._around = surroundings
        self._closed = False
        try:
            self._program: bytes = cloudpickle.dumps(program)
        except Exception as error:
            raise UnpicklableError.of(name, error) from error
        output_type = program.output_type
        declared = None if output_type is None else type_info_of(output_type)
        self._task = HarnessTask(operator, name, program.inputs, declared, surroundings)
        if surroundings.watermark > MIN_TIMESTAMP:
            self._task.resume(surroundings.watermark)
        self._task.begin(surroundings.order(), _TOKEN)

    def _operator(self, function: Any, settings: tuple[Any, ...]) -> Any:
        for kind, make in self._operators.items():
            if isinstance(function, kind):
                return make(function, *settings)
        for kind, harness in _HOME.items():
            if isinstance(function, kind):
                raise InvalidArgumentError(f"{type(function).__name__} {harness}")
        wanted = ", ".join(kind.__name__ for kind in self._operators)
        raise InvalidArgumentError.of("the function", f"an instance of {wanted}", function)

    # Input

    def _process(self, number: int, value: Any, timestamp: int | None) -> list[Any]:
        """Hand a record to one of the inputs."""
        travels = self._inputs[number]
        if isinstance(travels, ByKey):
            check_stream_key(travels.select(value))
        before = len(self._around.outputs)
        self._attempt(lambda: self._task.consume(number, 0, _payload(value, timestamp)))
        return self._around.outputs[before:]

    # Output

    def outputs(self) -> list[Any]:
        """All that the function emitted so far, in order."""
        return list(self._around.outputs)

    def side_outputs(self, tag: OutputTag) -> list[Any]:
        """All that it sent to a side output so far."""
        return list(self._around.side_outputs.get(tag.tag_id, ()))

    def clear_outputs(self) -> None:
        """Forget what was emitted so far."""
        self._around.outputs.clear()
        self._around.side_outputs.clear()

    # State of the subtask

    def operator_state(self, descriptor: StateDescriptor) -> Any:
        """What an operator state of the function holds: a list, or a dict of a broadcast state."""
        return self._task.checkpoints[0].states.found(descriptor)

    # Time

    @property
    def clock(self) -> ManualClock:
        """What the function takes for processing time."""
        return self._around.clock

    def advance_processing_time(
        self, to: int | None = None, *, by: Span | None = None
    ) -> list[Any]:
        """Move the clock to a time in milliseconds, or on by a span; what timers that are due by
        then emitted."""
        if (to is None) == (by is None):
            raise InvalidArgumentError("advance_processing_time takes either `to` or `by`")
        if to is not None:
            self.clock.set(to)
        else:
            self.clock.advance(by or 0)
        before = len(self._around.outputs)
        self._attempt(self._task.advance_clock)
        return self._around.outputs[before:]

    def advance_watermark(self, to: int) -> list[Any]:
        """Let event time reach `to`; what timers that are due by then emitted."""
        least = self._around.watermark
        if not isinstance(to, int) or isinstance(to, bool) or to < least:
            raise InvalidArgumentError.of("the new watermark", f"an int of at least {least}", to)
        self._around.watermark = to
        before = len(self._around.outputs)
        self._attempt(lambda: self._task.advance_watermark(to))
        return self._around.outputs[before:]

    def _attempt(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            raise self._task.explain(error) from error

    # Checkpoints

    def snapshot(self) -> Snapshot:
        """End the epoch: all state as a checkpoint would keep it. The harness can go on.

        A `CheckpointListener` is told at once that the checkpoint is complete.
        """
        around = self._around
        try:
            around.operator_state = self._task.end().operator_state
        except Exception as error:
            raise self._task.explain(error) from error
        around.epoch += 1
        self._task.begin(around.order(), _TOKEN)
        return Snapshot(
            self._program,
            tuple(around.store.scan(b"")),
            dict(around.state_types),
            dict(around.operator_state),
            around.epoch,
            around.clock.now(),
            around.watermark,
        )

    @classmethod
    def restore(cls: type[H], snapshot: Snapshot, function: Function | None = None) -> H:
        """Go on from a snapshot in a fresh instance, as a restarted job would.

        What the function kept in ``self`` is gone; its state is there. Pass `function` to go on
        with a newer version of it.
        """
        program: Program = pickle.loads(snapshot.program)
        store = MemoryStore()
        store.apply(snapshot.entries, "restored")
        around = Surroundings(
            ManualClock(snapshot.processing_time),
            snapshot.watermark,
            snapshot.epoch,
            store,
            dict(snapshot.state_types),
            dict(snapshot.operator_state),
        )
        harness = cls.__new__(cls)
        harness._start(replace(program, function=function or program.function), around)
        return harness

    # Life cycle

    def close(self) -> None:
        """Close the function, once."""
        if not self._closed:
            self._closed = True
            self._task.close()

    def __enter__(self: H) -> H:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _payload(value: Any, timestamp: int | None) -> bytes:
    stamps = None if timestamp is None else [timestamp]
    return bytes(HEADER_SIZE) + encode_body(stamps, [value], frozen=False)[0]


class OperatorHarness(Harness):
    """Drives a function that needs no key: map, flat map, filter, process, sink function.

    ::

        with OperatorHarness(ParseLine()) as harness:
            assert harness.process("7,21.5") == [(7, 21.5)]
    """

    _operators = _UNKEYED

    def __init__(
        self, function: Function, output_type: Any = None, clock: ManualClock | None = None
    ) -> None:
        self._start(Program(function, (Forward(),), output_type), surrounded_by(clock))

    def process(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand a record to the function; what it emitted for it (to the main output)."""
        return self._process(0, value, timestamp)

    def process_all(self, values: Iterable[Any]) -> list[Any]:
        """Hand over several records; what was emitted for them."""
        return [output for value in values for output in self.process(value)]


def surrounded_by(clock: ManualClock | None) -> Surroundings:
    return Surroundings(clock or ManualClock())


class KeyedHarness(Harness):
    """A harness that can look at the state of a key."""

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """What a state of the function holds for a key: a value, a list or a dict.

        None, or an empty list or dict, if it holds nothing. Reading counts as a use where a time
        to live is renewed by reading.
        """
        keyed_state = self._task.state.keyed_state
        assert keyed_state is not None
        known = keyed_state.types()
        if descriptor.get_name() not in known:
            raise StateError(
                f"{type(self.function).__name__} has no state {descriptor.get_name()!r}; it has "
                f"{sorted(known) or 'none'}"
            )
        check_key(key)
        scope = keyed_state.scope
        before, scope.key = scope.key, key
        try:
            return _content(descriptor, keyed_state.get(descriptor))
        finally:
            scope.key = before


class KeyedOperatorHarness(KeyedHarness, OperatorHarness):
    """Drives a function of a keyed stream, whose state it can look at.

    ::

        with KeyedOperatorHarness(CountPerWord(), key_selector=lambda word: word) as harness:
            assert harness.process("to") == [("to", 1)]
            assert harness.state(COUNT, "to") == 1
            again = KeyedOperatorHarness.restore(harness.snapshot())
            assert again.process("to") == [("to", 2)]
    """

    _operators = _KEYED

    def __init__(
        self,
        function: Function,
        key_selector: Any,
        output_type: Any = None,
        clock: ManualClock | None = None,
    ) -> None:
        by_key = ByKey(selector_of("key_selector", key_selector))
        self._start(Program(function, (by_key,), output_type), surrounded_by(clock))


def _content(descriptor: StateDescriptor, state: Any) -> Any:
    if isinstance(descriptor, ValueStateDescriptor):
        return state.value()
    if isinstance(descriptor, MapStateDescriptor):
        return dict(state.items())
    found = state.get()
    return list(found) if isinstance(descriptor, ListStateDescriptor) else found
