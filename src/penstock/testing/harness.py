"""Harnesses: one function at work in a task of the real runtime, driven record by record.

Only what surrounds the task is of our own: state is acknowledged into a dict instead of files,
time is a `ManualClock`, and what is emitted is kept for the test to look at.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeVar

import cloudpickle

from penstock.common.typeinfo import TypeInformation, type_info_of
from penstock.datastream._stream_arguments import selector_of
from penstock.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.driver.adoption import check_types
from penstock.errors import InvalidArgumentError, StateError, UnpicklableError
from penstock.graph.location import user_location
from penstock.graph.partitioning import ByKey
from penstock.runtime.codec import constant
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.base import (
    MIN_TIMESTAMP,
    FunctionOperator,
    OpenOperator,
    OperatorHost,
    opened,
)
from penstock.runtime.operators.process import (
    ElementContext,
    Process,
    TaskTimerService,
    _process,
)
from penstock.runtime.operators.reduce import Reduce
from penstock.runtime.operators.stateless import Filter, FlatMap, Map
from penstock.runtime.payload import HEADER_SIZE, encode_body
from penstock.runtime.physical import (
    JobSettings,
    Output,
    PhysicalEdge,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.vertex_task import VertexTask
from penstock.state.backend import StateBase
from penstock.state.keyed_state import KeyedState
from penstock.state.keys import check_key
from penstock.storage.memory_store import MemoryStore
from penstock.testing.clock import ManualClock, Span

_UID = "function"
_MAX_PARALLELISM = 128
_TOKEN = "00" * 8
_STATELESS: dict[type[Function], Callable[[Any], Any]] = {
    MapFunction: Map,
    FlatMapFunction: FlatMap,
    FilterFunction: Filter,
    ProcessFunction: Process,
}
_KEYED: dict[type[Function], Callable[[Any], Any]] = {
    **_STATELESS,
    KeyedProcessFunction: Process,
    ReduceFunction: Reduce,
}

H = TypeVar("H", bound="OperatorHarness")


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint would hold of a harness's function. Opaque; picklable."""

    program: bytes
    """The function as it was given, key selector and output type."""
    entries: tuple[tuple[bytes, bytes], ...]
    state_types: dict[str, Any]
    epoch: int
    processing_time: int
    watermark: int


class OperatorHarness:
    """Drives a function that needs no key: map, flat map, filter, process.

    The function is pickled once, as for a job: one that cannot be is refused here. Records go
    through the codec as they would between tasks, so the function gets copies of them. What the
    function raises arrives as a `UserFunctionError`, with the original as its ``__cause__``.

    ::

        with OperatorHarness(ParseLine()) as harness:
            assert harness.process("7,21.5") == [(7, 21.5)]
    """

    _operators = _STATELESS

    def __init__(
        self, function: Function, output_type: Any = None, clock: ManualClock | None = None
    ) -> None:
        self._start(function, None, output_type, clock or ManualClock(), MIN_TIMESTAMP, 0, {})

    def _start(
        self,
        function: Any,
        select: Callable[[Any], Any] | None,
        output_type: Any,
        clock: ManualClock,
        watermark: int,
        epoch: int,
        state_types: dict[str, Any],
        store: MemoryStore | None = None,
    ) -> None:
        operator = self._operator(function)
        self.function = function
        self.clock = clock
        self._select = select
        try:
            self._program: bytes = cloudpickle.dumps((function, select, output_type))
        except Exception as error:
            raise UnpicklableError.of(f"{type(function).__name__}", error) from error
        self._watermark = watermark
        self._outputs: list[Any] = []
        self._side_outputs: dict[str, list[Any]] = {}
        self._store = store or MemoryStore()
        self._epoch = epoch
        self._state_types = state_types
        self._closed = False
        declared = None if output_type is None else type_info_of(output_type)
        plan = _plan(_Watched(operator, self), type(function).__name__, declared, select)
        self._task = _HarnessTask(plan, self._order(), clock, self._store, self._state_types)
        self._task.begin(self._order(), _TOKEN)

    def _operator(self, function: Any) -> Any:
        for kind, make in self._operators.items():
            if isinstance(function, kind):
                operator = make(function)
                return _TimedProcess(function, self) if type(operator) is Process else operator
        wanted = ", ".join(kind.__name__ for kind in self._operators)
        if isinstance(function, tuple(_KEYED)):
            raise InvalidArgumentError(
                f"{type(function).__name__} works on a keyed stream; use KeyedOperatorHarness"
            )
        raise InvalidArgumentError.of("the function", f"an instance of {wanted}", function)

    # Input

    def process(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand a record to the function; what it emitted for it (to the main output)."""
        before = len(self._outputs)
        try:
            self._task.consume(self._payload(value, timestamp))
        except Exception as error:
            raise self._task.explain(error) from error
        return self._outputs[before:]

    def process_all(self, values: Iterable[Any]) -> list[Any]:
        """Hand over several records; what was emitted for them."""
        return [output for value in values for output in self.process(value)]

    def _payload(self, value: Any, timestamp: int | None) -> bytes:
        keys = None
        if self._select is not None:
            key = self._select(value)
            check_key(key)
            keys = [key]
        stamps = None if timestamp is None else [timestamp]
        return bytes(HEADER_SIZE) + encode_body(keys, stamps, [value], frozen=False)[0]

    # Output

    def outputs(self) -> list[Any]:
        """All that the function emitted so far, in order."""
        return list(self._outputs)

    def side_outputs(self, tag: OutputTag) -> list[Any]:
        """All that it sent to a side output so far."""
        return list(self._side_outputs.get(tag.tag_id, ()))

    def clear_outputs(self) -> None:
        """Forget what was emitted so far."""
        self._outputs.clear()
        self._side_outputs.clear()

    # Time

    def advance_processing_time(self, to: int | None = None, *, by: Span | None = None) -> int:
        """Move the clock to a time in milliseconds, or on by a span; the new time.

        Timers are not there yet: a function that registers one gets an error.
        """
        if (to is None) == (by is None):
            raise InvalidArgumentError("advance_processing_time takes either `to` or `by`")
        return self.clock.set(to) if to is not None else self.clock.advance(by or 0)

    def advance_watermark(self, to: int) -> None:
        """Let event time reach `to`: what ``ctx.timer_service().current_watermark()`` says."""
        if not isinstance(to, int) or isinstance(to, bool) or to < self._watermark:
            raise InvalidArgumentError.of(
                "the new watermark", f"an int of at least {self._watermark}", to
            )
        self._watermark = to

    # Checkpoints

    def snapshot(self) -> Snapshot:
        """End the epoch: all state as a checkpoint would keep it. The harness can go on."""
        self._checkpoint()
        return Snapshot(
            self._program,
            tuple(self._store.scan(b"")),
            dict(self._state_types),
            self._epoch,
            self.clock.now(),
            self._watermark,
        )

    def _checkpoint(self) -> None:
        try:
            self._task.end()
        except Exception as error:
            raise self._task.explain(error) from error
        self._epoch += 1
        self._task.begin(self._order(), _TOKEN)

    @classmethod
    def restore(cls: type[H], snapshot: Snapshot, function: Function | None = None) -> H:
        """Go on from a snapshot in a fresh instance, as a restarted job would.

        What the function kept in ``self`` is gone; its state is there. Pass `function` to go on
        with a newer version of it.
        """
        pickled, select, output_type = pickle.loads(snapshot.program)
        store = MemoryStore()
        store.apply(snapshot.entries, "restored")
        harness = cls.__new__(cls)
        harness._start(
            pickled if function is None else function,
            select,
            output_type,
            ManualClock(snapshot.processing_time),
            snapshot.watermark,
            snapshot.epoch,
            dict(snapshot.state_types),
            store,
        )
        return harness

    def _order(self) -> EpochOrder:
        base = self._epoch - 1 if self._epoch else None
        return EpochOrder(self._epoch, base, self.clock.now())

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


class KeyedOperatorHarness(OperatorHarness):
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
        select = selector_of("key_selector", key_selector)
        self._start(function, select, output_type, clock or ManualClock(), MIN_TIMESTAMP, 0, {})

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """What a state of the function holds for a key: a value, a list or a dict.

        None, or an empty list or dict, if it holds nothing. Reading counts as a use where a time
        to live is renewed by reading.
        """
        keyed_state = self._task.keyed_state
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


def _content(descriptor: StateDescriptor, state: Any) -> Any:
    if isinstance(descriptor, ValueStateDescriptor):
        return state.value()
    if isinstance(descriptor, MapStateDescriptor):
        return dict(state.items())
    found = state.get()
    return list(found) if isinstance(descriptor, ListStateDescriptor) else found


@dataclass(frozen=True)
class _Watched:
    """The operator under test; its side outputs and clocks are the harness's."""

    operator: Any
    harness: OperatorHarness

    def open(self, host: OperatorHost) -> OpenOperator:
        harness = self.harness

        def emit_side(tag: OutputTag, value: Any) -> None:
            convert = tag.type_info.converter()
            kept = _kept(value if convert is None else convert(value))
            harness._side_outputs.setdefault(tag.tag_id, []).append(kept)

        host = replace(host, emit_side=emit_side, clock=harness.clock.now)
        operator: OpenOperator = self.operator.open(host)
        return operator


@dataclass(frozen=True)
class _TimedProcess(Process):
    """A process function whose context tells the harness's watermark."""

    harness: OperatorHarness

    def open(self, host: OperatorHost) -> OpenOperator:
        call = opened(self.function, host, "process_element")
        timers = _HarnessTimers(host.clock, host.keyed_state is not None)
        timers.watermark = lambda: self.harness._watermark
        context = ElementContext(host.scope, timers, host.emit_side)
        return FunctionOperator(self.function, _process(call, context, host))


class _HarnessTimers(TaskTimerService):
    watermark: Callable[[], int]

    def current_watermark(self) -> int:
        return self.watermark()


@dataclass(frozen=True)
class _Keep:
    """The end of the chain: keeps what is emitted."""

    harness: OperatorHarness

    def open(self, host: OperatorHost) -> OpenOperator:
        outputs = self.harness._outputs
        operator = OpenOperator()
        operator.process = lambda value: outputs.append(_kept(value))
        return operator


def _kept(value: Any) -> Any:
    """As it is now: the function may change what it emitted."""
    return value if constant((value,)) else copy.deepcopy(value)


class _HarnessTask(VertexTask):
    """A task whose state is acknowledged at once, into a store in memory."""

    def __init__(
        self,
        plan: PhysicalPlan,
        order: EpochOrder,
        clock: ManualClock,
        store: MemoryStore,
        state_types: dict[str, Any],
    ) -> None:
        self._clock = clock
        self._memory = store
        self._known_types = state_types
        super().__init__(plan, plan.vertices[0], 0, order)

    def _make_keyed_state(self, uid: str) -> KeyedState:
        return KeyedState(
            self._scope,
            StateBase(uid, _MAX_PARALLELISM, lambda: self._memory),
            (0, _MAX_PARALLELISM - 1),
            now=self._clock.now,
            epoch=lambda: self._order.epoch,
            keep=self._settings.cache_entries,
        )

    def _write_segment(self, acknowledgement: Acknowledgement, keyed_state: KeyedState) -> None:
        types = keyed_state.types()
        check_types(self.vertex.name, self._known_types, types)
        self._known_types.update(types)
        changes = [(entry.packed(), entry.value) for entry in keyed_state.snapshot()]
        self._memory.apply(changes, str(self._order.epoch))


def _plan(
    watched: _Watched,
    name: str,
    output_type: TypeInformation | None,
    select: Callable[[Any], Any] | None,
) -> PhysicalPlan:
    """A job of one vertex: the function, and behind it what keeps its output."""
    location = user_location()
    operators = (
        PhysicalOperator(_UID, name, location, watched, output_type, (Output(operator=1),), 0),
        PhysicalOperator("kept", "kept", location, _Keep(watched.harness), None, (), 1),
    )
    inputs = () if select is None else (0,)
    vertex = Vertex(0, _UID, name, 0, 1, _MAX_PARALLELISM, operators, inputs, ())
    edges = () if select is None else (PhysicalEdge(0, 0, 0, ByKey(select), 0, location, "key_by"),)
    settings = JobSettings(
        job_id="harness",
        job_name="harness",
        run_id="harness",
        root="",
        local_dir="",
        state_backend="hashmap",
        cache_entries=200_000,
        max_records_per_epoch=1,
        batch=False,
    )
    return PhysicalPlan(settings, (vertex,), edges)
