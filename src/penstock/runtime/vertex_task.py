"""One vertex in one subtask: its chain composed into one call, its state, its writers.

An instance lives on in its worker as long as the version it made is the base of the next epoch;
else it is dropped and made anew, since a failed attempt must not leak through `self`.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.base import InitContext
from penstock.datastream.output_tag import OutputTag
from penstock.errors import (
    CheckpointError,
    CheckpointUnwritableError,
    PenstockError,
)
from penstock.graph.partitioning import ByKey
from penstock.runtime.attribution import Attribution, explained, place_of, user_error
from penstock.runtime.checkpointing import OperatorCheckpoints
from penstock.runtime.codec import dump, own_copy
from penstock.runtime.epoch import Acknowledgement, EpochOrder, subtask_name
from penstock.runtime.input_time import InputTime
from penstock.runtime.loop_records import LoopFiles, LoopOutbox, came_back
from penstock.runtime.operators.base import (
    Emit,
    EmitRun,
    OpenOperator,
    OperatorDescription,
    OperatorHost,
    OperatorTime,
    one_by_one,
    passing,
    stamped,
)
from penstock.runtime.operators.iteration import OpenHead
from penstock.runtime.operators.ordered import Ordered
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.payload import Body, decode_body
from penstock.runtime.physical import (
    Output,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.plan_file import copied
from penstock.runtime.profiling.counting import RecordCounts, told_by
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.runtime.side_inputs import TaskSideInput
from penstock.runtime.stopping import is_stopped
from penstock.runtime.stores import base_manifest, spill_store, store_at
from penstock.runtime.watermarks import MIN_TIMESTAMP, Control
from penstock.runtime.writers import EdgeWriter, Outbox, key_selector
from penstock.state.backend import NO_KEY, KeyScope, StateBase
from penstock.state.key_groups import key_group_range
from penstock.state.keyed_state import KeyedState
from penstock.state.redistribution import StoredStates, kept_by
from penstock.storage.checkpoint_layout import segment_path
from penstock.storage.crash_points import reach
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import SubtaskState, VertexState
from penstock.storage.store import Store
from penstock.storage.table_file import write_table_file

_WHOLE = slice(0, None)
# So many entries are rewritten at once, however few memory shall hold: each time makes a file.
_LEAST_AT_ONCE = 10_000


class VertexTask:
    """A task instance. Epochs go `begin`, then `consume` or `process`, then `end`."""

    def __init__(self, plan: PhysicalPlan, vertex: Vertex, subtask: int, order: EpochOrder) -> None:
        # Functions keep things in `self`: neither operators, nor subtasks in one process, nor
        # instances one after the other may share them.
        operators = tuple(
            replace(described, operator=copied(described.operator))
            for described in vertex.operators
        )
        edges = {index: copied(plan.edges[index]) for index in vertex.outputs}
        self.vertex = vertex = replace(vertex, operators=operators)
        self.subtask = subtask
        self.outbox = Outbox()
        self.token = ""
        self.version: str | None = None
        """The token of the last epoch that was ended."""
        self.attempt = order.attempt
        self._closed = False
        self._settings = plan.settings
        self._order = order
        self._scope = KeyScope()
        self._rebuilt = 0
        self._restored_bytes = 0
        self._records_in = 0
        self._segments: list[FileInfo] = []
        self._parts = 0
        """Of the epoch's changes of state that have been dealt with."""
        self._loop_files = LoopFiles(plan.settings, vertex.uid, subtask)
        self._loops = {
            index: LoopOutbox(plan, edge, self._loop_files)
            for index, edge in edges.items()
            if edge.feedback
        }
        self._writers = {
            index: EdgeWriter(
                edges[index],
                (vertex, subtask),
                plan.vertices[edges[index].target],
                self._scope,
                self._loops.get(index, self.outbox),
            )
            for index in vertex.outputs
        }
        self.counts = RecordCounts() if plan.settings.profile_interval else None
        self.attribution = Attribution(vertex.operators[0])
        for described in vertex.operators:
            for output in described.outputs:
                if output.edge is not None:
                    self.attribution.of_object(described, self._writers[output.edge])
        for edge in edges.values():
            self.attribution.of_edge(edge, edge.partitioning)
        incoming = (*vertex.inputs, *vertex.feedback)
        self._input_indexes = {index: plan.edges[index].input_index for index in incoming}
        self._selectors: dict[int, Callable[[Any], Any]] = {}
        for index in vertex.inputs:
            partitioning = copied(plan.edges[index].partitioning)
            if isinstance(partitioning, ByKey):
                self.attribution.of_edge(plan.edges[index], partitioning)
                self._selectors[index] = key_selector(partitioning)
        self.keyed_state = (
            self._make_keyed_state(vertex.operators[0].uid) if self._selectors else None
        )
        self.operators: list[OpenOperator] = []
        self.contexts: list[TaskRuntimeContext] = []
        self.checkpoints: list[OperatorCheckpoints] = []
        self._roving = isinstance(vertex.operators[0].operator, SparkSource)
        before = self._base_state() if _has_time(plan, vertex) else None
        self._input_time = InputTime(plan, vertex, subtask, before)
        self._compose()
        head = self.operators[0]
        self.process = head.process
        self.run = head.run or one_by_one(head.process)
        runs = [run for _, run in head.inputs] or [self.run]
        self._runs = {index: runs[number] for index, number in self._input_indexes.items()}
        for control in self._input_time.reached():
            head.resume(control)

    # Life of an epoch

    def begin(self, order: EpochOrder, token: str) -> None:
        self._order = order
        self.tell_complete(order)
        self.token = token
        self.outbox.take()
        self.outbox.sequence = 0
        self._records_in = 0
        self._segments = []
        self._parts = 0
        self._loop_files.begin(order.epoch, token)
        for loop in self._loops.values():
            loop.take()
            loop.sequence = 0
        self._input_time.begin_epoch()
        for index, writer in self._writers.items():
            if self._roving:
                writer.forget_time()
            writer.begin_epoch(order.epoch, bytes.fromhex(token), index in order.frozen_edges)
        self._follow(order)
        for operator in self.operators:
            operator.begin_epoch()

    def consume(self, edge: int, producer: int, payload: bytes) -> None:
        """Work through the records of one payload, and the control events between them."""
        self._consume(edge, producer, decode_body(payload))

    def take_turn(self) -> Iterator[None]:
        """Work through what the loop, whose head this is, sent back in the base's epoch."""
        if self._order.base is None:
            return
        head = self.operators[0]
        assert isinstance(head, OpenHead)
        manifest = base_manifest(self._settings, self._order.base)
        for body in came_back(self._settings, manifest, self.vertex, self.subtask):
            head.came_back += len(body.values)
            self._consume(self.vertex.feedback[0], 0, body)
            yield

    def _consume(self, edge: int, producer: int, body: Body) -> None:
        values, timestamps, events = body
        self._records_in += len(values)
        sender = self._input_time.sender(edge, producer)
        self._scope.channel = (self._input_indexes.get(edge, 0), edge, sender)
        start = 0
        for at, kind, time in events:
            if at > start:
                self._run_part(edge, values, timestamps, slice(start, at))
                start = at
            self._control(self._input_time.receive(edge, producer, (kind, time)))
        if start < len(values):
            self._run_part(edge, values, timestamps, slice(start, None))
        self._make_room()

    def _run_part(
        self, edge: int, values: list[Any], timestamps: list[Any] | None, part: slice
    ) -> None:
        scope = self._scope
        scope.timestamp = None
        records: Iterable[Any] = values if part == _WHOLE else values[part]
        if timestamps is not None:
            records = stamped(timestamps[part], records, scope)
        if edge in self._selectors:
            records = _keyed(self._selectors[edge], records, scope)
        elif self._selectors:
            scope.key = NO_KEY
        self._runs[edge](records)

    def run_stamped(self, timestamps: list[Any] | None, records: Iterable[Any]) -> None:
        """Work through records that came by another way than `consume`."""
        if timestamps is not None:
            records = stamped(timestamps, records, self._scope)
        self.run(records)

    def _control(self, controls: list[Control]) -> None:
        head = self.operators[0]
        for control in controls:
            head.control(control)

    @property
    def epoch(self) -> int:
        """The epoch it works on, or did last."""
        return self._order.epoch

    def count(self, records: int) -> None:
        """Records that came by another way than `consume`."""
        self._records_in += records

    def end(self) -> Acknowledgement:
        """Finish the epoch: flush, prepare the sinks, write the changes of state."""
        self._control(self._input_time.end_epoch(self._order))
        for operator in self.operators:
            operator.end_epoch()
        if self._order.final:
            for operator in self.operators:
                operator.finish()
        acknowledgement = Acknowledgement(self.vertex.index, self.subtask, self.token)
        sent = {index: writer.end_epoch() for index, writer in self._writers.items()}
        self._store_loops(acknowledgement, sent)
        for described, operator in zip(self.vertex.operators, self.operators, strict=True):
            if operator.time.watermark > MIN_TIMESTAMP:
                acknowledgement.watermarks[described.uid] = operator.time.watermark
            if reached := operator.reached():
                acknowledgement.reached[described.uid] = reached
            prepared = operator.prepare_commit()
            if prepared:
                acknowledgement.committables[described.uid] = [dump(item) for item in prepared]
        self._keep(acknowledgement)
        if self.keyed_state is not None:
            self._write_segment(acknowledgement, self.keyed_state)
            self.keyed_state.end_epoch()
        uid = self.vertex.uid
        acknowledgement.records_in[uid] = self._records_in
        acknowledgement.records_out[uid] = sum(sent.values())
        acknowledgement.sent = self._sent()
        acknowledgement.watermark = self._input_time.watermark
        # Also what an instance read when it was made, before its first epoch.
        acknowledgement.rebuilt_rows, self._rebuilt = self._rebuilt, 0
        acknowledgement.restored_bytes, self._restored_bytes = self._restored_bytes, 0
        for described, context in zip(self.vertex.operators, self.contexts, strict=True):
            if found := context.get_metrics_group().snapshot():
                acknowledgement.metrics[described.uid] = found
        self.version = self.token
        return acknowledgement

    def _keep(self, acknowledgement: Acknowledgement) -> None:
        """What operators and their functions keep beside keyed state, and who listens."""
        for described, operator, checkpoints in zip(
            self.vertex.operators, self.operators, self.checkpoints, strict=True
        ):
            if (kept := checkpoints.snapshot(operator.snapshot())) is not None:
                acknowledgement.operator_state[described.uid] = kept
            if types := checkpoints.types():
                acknowledgement.state_types[described.uid] = types
            if checkpoints.listening:
                acknowledgement.listeners.append(described.uid)

    # What becomes of an epoch

    @property
    def listening(self) -> bool:
        """Whether there is somebody to tell."""
        return any(checkpoints.listening for checkpoints in self.checkpoints)

    def tell_complete(self, order: EpochOrder) -> None:
        """An order says by its base what has been committed. A new instance is told as well: the
        one that made the base may never be asked again."""
        if order.base is not None:
            for checkpoints in self.checkpoints:
                checkpoints.tell_complete(order.base)

    def abort(self) -> None:
        """What it did since the base is void: say so, and close."""
        if not self._closed:
            for checkpoints in self.checkpoints:
                checkpoints.tell_aborted(self.epoch)
        self.close()

    def close(self) -> None:
        """Close every operator, even if one of them fails. Once: a failure may lead here again."""
        if self._closed:
            return
        self._closed = True
        if self.keyed_state is not None:
            self.keyed_state.end_epoch()
        failed: PenstockError | None = None
        for described, operator in zip(self.vertex.operators, self.operators, strict=True):
            try:
                operator.close()
            except Exception as error:
                failed = failed or user_error(*place_of(described), error)
        if failed is not None:
            raise failed

    def _sent(self) -> dict[str, int]:
        """Payloads by receiver ("vertex/subtask")."""
        sent: dict[str, int] = {}
        for writer in self._writers.values():
            if writer.edge.feedback:
                continue
            for subtask, payloads in enumerate(writer.posted):
                if payloads:
                    name = subtask_name(writer.edge.target, subtask)
                    sent[name] = sent.get(name, 0) + payloads
        return sent

    def _store_loops(self, acknowledgement: Acknowledgement, sent: dict[int, int]) -> None:
        for index, loop in self._loops.items():
            loop.store()
            files = self._loop_files.written.get(loop.head, [])
            known = acknowledgement.loops.get(loop.head, {"records": 0})
            acknowledgement.loops[loop.head] = {
                "records": known["records"] + sent[index],
                "files": [file.to_json() for file in files],
            }

    def _write_segment(self, acknowledgement: Acknowledgement, keyed_state: KeyedState) -> None:
        reach("task.before_segment")
        entries = keyed_state.rewritten()
        at_once = max(self._settings.cache_entries, _LEAST_AT_ONCE)
        while part := list(islice(entries, at_once)):
            self._write(part)
            reach("task.rewriting")
        self._write(keyed_state.snapshot())
        uid = self.vertex.operators[0].uid
        acknowledgement.state_types.setdefault(uid, {}).update(keyed_state.types())
        if changed := keyed_state.declared.changed():
            acknowledgement.changed_types[uid] = {name: dump(t) for name, t in changed.items()}
        acknowledgement.files = [info.to_json() for info in self._segments]
        reach("task.after_segment")

    def _make_room(self) -> None:
        """If more has changed than memory shall hold, write that part of the segment now."""
        if self.keyed_state is not None and self.keyed_state.overflowing():
            self._write(self.keyed_state.spill())

    def _write(self, entries: list[Entry]) -> None:
        if entries:
            part, self._parts = self._parts, self._parts + 1
            if self._settings.batch:
                return  # nothing goes on from the only epoch
            fs, root = filesystem_for(self._settings.root)
            path = segment_path(self._order.epoch, self.vertex.uid, self.subtask, self.token, part)
            try:
                self._segments.append(write_table_file(fs, root, path, entries, kind="segment"))
            except CheckpointError:
                raise
            except OSError as error:
                raise CheckpointUnwritableError.at(path, error) from error

    # Composition

    def _compose(self) -> None:
        """Open the operators, last first, so that each finds its successors' calls."""
        opened: dict[int, OpenOperator] = {}
        contexts: dict[int, TaskRuntimeContext] = {}
        checkpoints: dict[int, OperatorCheckpoints] = {}
        for index in reversed(range(len(self.vertex.operators))):
            described = self.vertex.operators[index]
            keyed_state = self.keyed_state if index == 0 else None
            contexts[index] = TaskRuntimeContext(
                self._settings, self.vertex, self.subtask, described.name, keyed_state
            )
            contexts[index].attempt = self.attempt
            checkpoints[index] = OperatorCheckpoints(
                contexts[index],
                self._scope,
                lambda: self._order,
                self._restored_state(described.uid),
                partial(self._restored_everywhere, described.uid),
            )
            contexts[index].side_inputs = {
                side.name: TaskSideInput(side, lambda: self._order)
                for side in described.side_inputs
            }
            host = self._host(described, contexts[index], checkpoints[index], keyed_state, opened)
            try:
                opened[index] = _description(described).open(host)
            except Exception as error:
                for operator in opened.values():
                    with contextlib.suppress(Exception):
                        operator.close()
                raise explained(error, place_of(described)) from error
            opened[index].time = host.time
            opened[index].pass_on = self._passing_on(described, opened)
            self.attribution.of_operator(described, opened[index])
            self.attribution.of_object(described, checkpoints[index])
            if self.counts is not None and index > 0 and told_by(self.vertex, index) is None:
                self.counts.of(described.uid, opened[index])
        self.operators = [opened[i] for i in range(len(opened))]
        self.contexts = [contexts[i] for i in range(len(contexts))]
        self.checkpoints = [checkpoints[i] for i in range(len(checkpoints))]

    def _host(
        self,
        described: PhysicalOperator,
        context: TaskRuntimeContext,
        checkpoints: OperatorCheckpoints,
        keyed_state: KeyedState | None,
        opened: dict[int, OpenOperator],
    ) -> OperatorHost:
        main = [o for o in described.outputs if o.tag is None]
        sides: dict[str, list[Output]] = {}
        for output in described.outputs:
            if output.tag is not None:
                sides.setdefault(output.tag, []).append(output)
        targets = {tag: self._emit_to(outputs, opened) for tag, outputs in sides.items()}
        converting: dict[str, Emit] = {}

        def emit_side(tag: OutputTag, value: Any) -> None:
            side = converting.get(tag.tag_id)
            if side is None:
                target = targets.get(tag.tag_id, _drop)
                side, _ = self._converting(described, tag.type_info, target, one_by_one(target))
                converting[tag.tag_id] = side
            side(value)

        emit, emit_run = self._emit_to(main, opened), self._run_to(main, opened)
        if described.output_type is not None:
            emit, emit_run = self._converting(described, described.output_type, emit, emit_run)
        return OperatorHost(
            context=context,
            scope=self._scope,
            keyed_state=keyed_state,
            emit=emit,
            emit_run=emit_run,
            emit_side=emit_side,
            clock=lambda: self._order.clock,
            time=OperatorTime(),
            checkpoints=checkpoints,
            make_room=self._make_room,
            roving=self._roving,
            order=lambda: self._order,
            init_context=lambda: self._init_context(described.uid),
            batch=self._settings.batch,
            watermark_interval=self._settings.watermark_interval,
            unsay=self._unsay,
            stopped=lambda: is_stopped(self._settings.run_id),
        )

    def _unsay(self) -> None:
        for writer in self._writers.values():
            writer.unsay()

    def _restored_state(self, uid: str) -> StoredStates:
        base = self._base_state()
        return {} if base is None else kept_by(base, uid)

    def _restored_everywhere(self, uid: str) -> Sequence[StoredStates]:
        """The same of all subtasks."""
        base = self._base_vertex()
        return () if base is None else [kept_by(s, uid) for s in base.subtasks]

    def _passing_on(
        self, described: PhysicalOperator, opened: dict[int, OpenOperator]
    ) -> Callable[[Control], None]:
        """Control events go wherever records go, side outputs included."""
        targets = [
            opened[output.operator].control
            if output.operator is not None
            else self._writers[output.edge].control  # type: ignore[index]
            for output in described.outputs
        ]

        def pass_on(control: Control) -> None:
            for target in targets:
                target(control)

        return pass_on

    def _emit_to(self, outputs: list[Output], opened: dict[int, OpenOperator]) -> Emit:
        calls = [
            opened[output.operator].process
            if output.operator is not None
            else self._writers[output.edge].write  # type: ignore[index]
            for output in outputs
        ]
        if not calls:
            return _drop
        if len(calls) == 1:
            return calls[0]
        return _fan_out(calls)

    def _run_to(self, outputs: list[Output], opened: dict[int, OpenOperator]) -> EmitRun:
        """The run of the only one that follows, or a loop over its calls."""
        if len(outputs) == 1:
            only = outputs[0]
            if only.edge is not None:
                return self._writers[only.edge].run
            run = opened[only.operator].run  # type: ignore[index]
            if run is not None:
                return run
        return one_by_one(self._emit_to(outputs, opened))

    def _converting(
        self, described: PhysicalOperator, type_info: TypeInformation, emit: Emit, run: EmitRun
    ) -> tuple[Emit, EmitRun]:
        """The same ends, for values of a declared type."""
        call = type_info.converter()
        if call is None:
            return emit, run
        self.attribution.of_callable(described, call, emit)

        def convert(value: Any) -> None:
            emit(call(value))

        def results(values: Iterable[Any], emit: Emit = emit) -> Iterator[Any]:
            for value in values:
                yield call(value)

        return convert, passing(results, run)

    def explain(self, error: BaseException) -> PenstockError:
        """The error with the operator and the user's line that it belongs to."""
        return self.attribution.explain(error)

    # State

    def _make_keyed_state(self, uid: str) -> KeyedState:
        vertex = self.vertex
        key_groups = key_group_range(self.subtask, vertex.max_parallelism, vertex.parallelism)

        def open_at_base() -> Store:
            store, caught_up = store_at(
                self._settings, vertex.uid, self.subtask, self._base_state(), {uid}, key_groups
            )
            self._rebuilt += caught_up.rows
            self._restored_bytes += caught_up.bytes
            return store

        return KeyedState(
            self._scope,
            StateBase(
                uid,
                vertex.max_parallelism,
                open_at_base,
                lambda: spill_store(self._settings, vertex.uid, self.subtask),
            ),
            key_groups,
            now=lambda: self._order.clock,
            chunk_number=lambda: self._order.epoch << 16 | self._parts,
            keep=self._settings.cache_entries,
            recorded=lambda: self._recorded_types(uid),
        )

    def _recorded_types(self, uid: str) -> Mapping[str, Any]:
        """The types of an operator's states as the base has them."""
        if self._order.base is None:
            return {}
        return base_manifest(self._settings, self._order.base).state_types.get(uid, {})

    def _follow(self, order: EpochOrder) -> None:
        """What other subtasks have found declared otherwise than it is stored, this one may not
        declare before its next record."""
        changed = order.changed_types.get(self.vertex.operators[0].uid, {})
        for state, pickled in changed.items():
            assert self.keyed_state is not None
            self.keyed_state.declared.follow(state, *pickle.loads(base64.b64decode(pickled)))

    def _base_state(self) -> SubtaskState | None:
        vertex = self._base_vertex()
        return None if vertex is None else vertex.subtasks[self.subtask]

    def _base_vertex(self) -> VertexState | None:
        if self._order.base is None:
            return None
        manifest = base_manifest(self._settings, self._order.base)
        return manifest.vertices.get(self.vertex.uid)

    def _init_context(self, uid: str) -> InitContext:
        return InitContext(
            self._settings.job_id,
            uid,
            self.subtask,
            self.vertex.parallelism,
            self._order.epoch,
            self.token,
            self._settings.root,
        )


def _description(described: PhysicalOperator) -> OperatorDescription:
    operator: OperatorDescription = described.operator
    return Ordered(operator) if described.event_time_order else operator


def _has_time(plan: PhysicalPlan, vertex: Vertex) -> bool:
    """Whether there is something in event time to go on from."""
    inputs = any(plan.edges[index].stamped for index in vertex.inputs)
    return inputs or any(getattr(o.operator, "timestamps", False) for o in vertex.operators)


def _drop(value: Any) -> None:
    """Where results go that nobody reads."""


def _keyed(call: Callable[[Any], Any], values: Iterable[Any], scope: KeyScope) -> Iterator[Any]:
    for value in values:
        scope.key = call(value)
        yield value


def _fan_out(calls: list[Emit]) -> Emit:
    """Every branch gets the record; if it can change, each but the first gets a copy."""
    first, rest = calls[0], calls[1:]

    def emit(value: Any) -> None:
        copies = [own_copy(value, "a record that goes to several operators") for _ in rest]
        first(value)
        for call, own in zip(rest, copies, strict=True):
            call(own)

    return emit
