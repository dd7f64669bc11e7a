"""One vertex in one subtask: its chain, its writers, and the life of its epochs.

An instance lives on in its worker as long as the version it made is the base of the next epoch;
else it is dropped and made anew, since a failed attempt must not leak through `self`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from penstock.datastream.connectors.base import InitContext
from penstock.errors import PenstockError
from penstock.graph.partitioning import ByKey
from penstock.runtime.attribution import Attribution, place_of, user_error
from penstock.runtime.batch_writer import BatchWriter, takes_batches
from penstock.runtime.chain import Composition
from penstock.runtime.codec import dump
from penstock.runtime.epoch import Acknowledgement, EpochOrder, subtask_name
from penstock.runtime.input_time import InputTime
from penstock.runtime.keying import keying
from penstock.runtime.loop_records import LoopFiles, LoopOutbox, came_back
from penstock.runtime.loops import Step, before, stamping
from penstock.runtime.operators.base import EmitRun, one_by_one, stamped
from penstock.runtime.operators.iteration import OpenHead
from penstock.runtime.operators.sources import spark_source
from penstock.runtime.payload import Body, decode_body
from penstock.runtime.physical import PhysicalEdge, PhysicalPlan, Vertex
from penstock.runtime.plan_file import copied
from penstock.runtime.profiling.counting import RecordCounts
from penstock.runtime.stores import base_manifest
from penstock.runtime.task_state import TaskState
from penstock.runtime.watermarks import MIN_TIMESTAMP, Control
from penstock.runtime.writers import EdgeWriter, Outbox
from penstock.state.backend import NO_KEY, KeyScope

_WHOLE = slice(0, None)


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
        self._scope = KeyScope()
        self._records_in = 0
        self._loop_files = LoopFiles(plan.settings, vertex.uid, subtask)
        self._loops = {
            index: LoopOutbox(plan, edge, self._loop_files)
            for index, edge in edges.items()
            if edge.feedback
        }
        self._roving = spark_source(vertex) is not None
        """Whether the subtask has another part of the input in every epoch."""
        self._writers = {
            index: _writer_class(edges[index])(
                edges[index],
                (vertex, subtask),
                plan.vertices[edges[index].target],
                self._scope,
                self._loops.get(index, self.outbox),
                self._roving and not self._settings.batch,
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
        keyings: dict[int, Step] = {}
        self._keyed: set[int] = set()
        """The edges whose records have keys."""
        for index in vertex.inputs:
            partitioning = copied(plan.edges[index].partitioning)
            if isinstance(partitioning, ByKey):
                self.attribution.of_edge(plan.edges[index], partitioning)
                self._keyed.add(index)
                if not takes_batches(partitioning):  # the operator takes those whole
                    keyings[index] = keying(partitioning, self._scope)
        self.state = self._make_state(order, keyed=bool(self._keyed))
        known = self.state.base_subtask() if _has_time(plan, vertex) else None
        self._input_time = InputTime(plan, vertex, subtask, known)
        composition = Composition(
            plan.settings,
            vertex,
            subtask,
            order.attempt,
            self._scope,
            self.state,
            self._writers,
            self.attribution,
            self.counts,
            self._init_context,
        )
        self.records_are = composition.records_are
        chain = composition.compose()
        self.operators = chain.operators
        self.contexts = chain.contexts
        self.checkpoints = chain.checkpoints
        head = self.operators[0]
        self.process = head.process
        self.run = head.run or one_by_one(head.process)
        runs = [run for _, run in head.inputs] or [self.run]
        self._runs: dict[int, EmitRun] = {}
        for index, number in self._input_indexes.items():
            run, noting = runs[number], keyings.get(index)
            self._runs[index] = run if noting is None else before(run, noting)
        self._stamped_runs = {i: stamping(run, self._scope) for i, run in self._runs.items()}
        for control in self._input_time.reached():
            head.resume(control)

    def _make_state(self, order: EpochOrder, keyed: bool) -> TaskState:
        return TaskState(self._settings, self.vertex, self.subtask, self._scope, order, keyed)

    @property
    def _order(self) -> EpochOrder:
        return self.state.order

    # Life of an epoch

    def begin(self, order: EpochOrder, token: str) -> None:
        self.state.begin(order, token)
        self.tell_complete(order)
        self.token = token
        self.outbox.take()
        self.outbox.sequence = 0
        self._records_in = 0
        self._loop_files.begin(order.epoch, token)
        for loop in self._loops.values():
            loop.take()
            loop.sequence = 0
        self._input_time.begin_epoch(order)
        for index, writer in self._writers.items():
            if self._roving:
                writer.forget_time()
            writer.begin_epoch(order.epoch, bytes.fromhex(token), index in order.frozen_edges)
        for operator in self.operators:
            operator.begin_epoch()

    def consume(self, edge: int, producer: int, payload: bytes) -> None:
        """Work through the records of one payload, and the control events between them."""
        body = decode_body(payload)
        if len(body.values):
            self._control(self._input_time.before_records())
        self._consume(edge, producer, body)

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
        if len(values):
            self._control(self._input_time.passed(edge, producer))
        self.state.make_room()

    def _run_part(self, edge: int, values: Any, timestamps: list[Any] | None, part: slice) -> None:
        self._scope.timestamp = None
        records: Iterable[Any] = values if part == _WHOLE else values[part]
        if self._keyed and edge not in self._keyed:
            self._scope.key = NO_KEY
        if timestamps is None:
            self._runs[edge](records)
        else:
            self._stamped_runs[edge](zip(timestamps[part], records, strict=True))

    def run_stamped(self, timestamps: list[Any] | None, records: Iterable[Any]) -> None:
        """Work through records that came by another way than `consume`."""
        if timestamps is not None:
            records = stamped(timestamps, records, self._scope)
        self.run(records)

    def begin_part(self) -> None:
        """What comes now is in no order with what came before in the epoch."""
        for writer in self._writers.values():
            writer.begin_part()

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
        self.state.store(acknowledgement)
        uid = self.vertex.uid
        acknowledgement.records_in[uid] = self._records_in
        acknowledgement.records_out[uid] = sum(sent.values())
        acknowledgement.sent = self._sent()
        acknowledgement.watermark = self._input_time.watermark
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
        self.state.close()
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

    def explain(self, error: BaseException) -> PenstockError:
        """The error with the operator and the user's line that it belongs to."""
        return self.attribution.explain(error)

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


def _writer_class(edge: PhysicalEdge) -> type[EdgeWriter]:
    return BatchWriter if takes_batches(edge.partitioning) else EdgeWriter


def _has_time(plan: PhysicalPlan, vertex: Vertex) -> bool:
    """Whether there is something in event time to go on from."""
    inputs = any(plan.edges[index].stamped for index in vertex.inputs)
    return inputs or any(getattr(o.operator, "timestamps", False) for o in vertex.operators)
