"""The task inside a harness: the real one, with surroundings that a test can see and move."""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.output_tag import OutputTag
from penstock.graph.location import user_location
from penstock.graph.partitioning import Partitioning
from penstock.runtime.codec import constant
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.base import (
    OpenOperator,
    OperatorHost,
)
from penstock.runtime.physical import (
    JobSettings,
    Output,
    PhysicalEdge,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.task_state import TaskState
from penstock.runtime.vertex_task import VertexTask
from penstock.runtime.watermarks import MIN_TIMESTAMP, WATERMARK
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keyed_state import KeyedState
from penstock.state.redistribution import StoredStates, unpacked
from penstock.storage.memory_store import MemoryStore
from penstock.testing.clock import ManualClock

_UID = "function"
_MAX_PARALLELISM = 128


@dataclass
class Surroundings:
    """What a job would provide: clocks, acknowledged state, somewhere for output to go."""

    clock: ManualClock
    watermark: int = MIN_TIMESTAMP
    epoch: int = 0
    store: MemoryStore = field(default_factory=MemoryStore)
    state_types: dict[str, Any] = field(default_factory=dict)
    operator_state: dict[str, bytes] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    side_outputs: dict[str, list[Any]] = field(default_factory=dict)

    def order(self) -> EpochOrder:
        base = self.epoch - 1 if self.epoch else None
        return EpochOrder(self.epoch, base, self.clock.now())

    def keep(self, value: Any) -> None:
        self.outputs.append(_as_it_is_now(value))

    def keep_aside(self, tag: OutputTag, value: Any) -> None:
        convert = tag.type_info.converter()
        kept = value if convert is None else convert(value)
        self.side_outputs.setdefault(tag.tag_id, []).append(_as_it_is_now(kept))


def _as_it_is_now(value: Any) -> Any:
    """The function may change what it emitted."""
    return value if constant((value,)) else copy.deepcopy(value)


class HarnessTask(VertexTask):
    """A task whose state is acknowledged at once, into a store in memory."""

    def __init__(
        self,
        operator: Any,
        name: str,
        inputs: tuple[Partitioning, ...],
        output_type: TypeInformation | None,
        surroundings: Surroundings,
    ) -> None:
        self._surroundings = surroundings
        plan = _plan(operator, name, inputs, output_type, surroundings)
        super().__init__(plan, plan.vertices[0], 0, surroundings.order())

    def resume(self, watermark: int) -> None:
        """Event time was here when the state was kept: what was due by then has been done."""
        self.operators[0].resume((WATERMARK, watermark))

    def advance_watermark(self, to: int) -> None:
        self.operators[0].control((WATERMARK, to))

    def advance_clock(self) -> None:
        """The clock has moved: timers fire as at the beginning of an epoch."""
        self.operators[0].begin_epoch()

    def await_answers(self) -> None:
        """Emit what asynchronous calls that are under way will give."""
        self.operators[0].end_epoch()

    def _make_state(self, order: EpochOrder, keyed: bool) -> TaskState:
        around = self._surroundings
        return _KeptState(around, self._settings, self.vertex, self._scope, order, keyed)


class _KeptState(TaskState):
    """Of a task without a checkpoint: acknowledged when it is stored."""

    def __init__(
        self,
        surroundings: Surroundings,
        settings: JobSettings,
        vertex: Vertex,
        scope: KeyScope,
        order: EpochOrder,
        keyed: bool,
    ) -> None:
        self._surroundings = surroundings
        super().__init__(settings, vertex, 0, scope, order, keyed)

    def _base_vertex(self) -> None:
        """There is no manifest."""

    def restored(self, uid: str) -> StoredStates:
        kept = self._surroundings.operator_state.get(uid)
        return {} if kept is None else unpacked(kept)

    def restored_everywhere(self, uid: str) -> list[StoredStates]:
        return [self.restored(uid)]

    def _make_keyed_state(self, uid: str) -> KeyedState:
        around = self._surroundings
        return KeyedState(
            self._scope,
            StateBase(uid, _MAX_PARALLELISM, lambda: around.store, MemoryStore),
            (0, _MAX_PARALLELISM - 1),
            now=around.clock.now,
            chunk_number=lambda: around.epoch,
            keep=self._settings.cache_entries,
            recorded=lambda: around.state_types,
        )

    def _write_segment(self, acknowledgement: Acknowledgement, keyed_state: KeyedState) -> None:
        around = self._surroundings
        entries = [*keyed_state.rewritten(), *keyed_state.snapshot()]
        around.state_types.update(keyed_state.types())
        changes = [(entry.packed(), entry.value) for entry in entries]
        around.store.apply(changes, str(around.epoch))


def _plan(
    operator: Any,
    name: str,
    inputs: tuple[Partitioning, ...],
    output_type: TypeInformation | None,
    surroundings: Surroundings,
) -> PhysicalPlan:
    """A job of one vertex: the function, and behind it what keeps its output."""
    location = user_location()
    watched, keep = _Watched(operator, surroundings), _Keep(surroundings)
    operators = (
        PhysicalOperator(_UID, name, location, watched, output_type, (Output(operator=1),), 0),
        PhysicalOperator("kept", "kept", location, keep, None, (), 1),
    )
    edges = tuple(
        PhysicalEdge(index, 0, 0, travels, index, location, "key_by")
        for index, travels in enumerate(inputs)
    )
    reads = tuple(edge.index for edge in edges)
    vertex = Vertex(0, _UID, name, 0, 1, _MAX_PARALLELISM, operators, reads, ())
    settings = JobSettings(
        job_id="harness",
        job_name="harness",
        run_id="harness",
        root="",
        local_dir="",
        state_backend="hashmap",
        cache_entries=1 << 62,  # nothing is spilled: there is nowhere to
        max_records_per_epoch=1,
        epoch_seconds=1.0,
        batch=False,
    )
    return PhysicalPlan(settings, (vertex,), edges)


class _StaysHere:
    """Is itself when copied or pickled within the process: its test must see what it holds."""

    def __reduce__(self) -> tuple[Any, ...]:
        _here[id(self)] = self
        return _found_here, (id(self),)


_here: weakref.WeakValueDictionary[int, _StaysHere] = weakref.WeakValueDictionary()


def _found_here(number: int) -> _StaysHere:
    return _here[number]


@dataclass(frozen=True)
class _Watched(_StaysHere):
    """The operator under test; its side outputs and clocks are the surroundings'."""

    operator: Any
    surroundings: Surroundings

    def open(self, host: OperatorHost) -> OpenOperator:
        around = self.surroundings
        host = replace(host, emit_side=around.keep_aside, clock=around.clock.now)
        operator: OpenOperator = self.operator.open(host)
        return operator


@dataclass(frozen=True)
class _Keep(_StaysHere):
    """The end of the chain."""

    surroundings: Surroundings

    def open(self, host: OperatorHost) -> OpenOperator:
        operator = OpenOperator()
        operator.process = self.surroundings.keep
        return operator
