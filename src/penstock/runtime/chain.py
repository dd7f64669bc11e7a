"""The operators of a vertex, opened and composed into one call: each finds what follows it.

The closures made here see every record, so whatever can be chosen is chosen once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from penstock.common._type_conversion import lines_converting
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.base import InitContext
from penstock.datastream.output_tag import OutputTag
from penstock.runtime.attribution import Attribution, explained, place_of
from penstock.runtime.checkpointing import OperatorCheckpoints
from penstock.runtime.codec import own_copy
from penstock.runtime.known_records import shapes_sent
from penstock.runtime.loops import Step, before
from penstock.runtime.operators.base import (
    Emit,
    EmitRun,
    OpenOperator,
    OperatorDescription,
    OperatorHost,
    OperatorTime,
    one_by_one,
)
from penstock.runtime.operators.ordered import Ordered
from penstock.runtime.operators.sources import spark_source
from penstock.runtime.physical import JobSettings, Output, PhysicalOperator, Vertex
from penstock.runtime.profiling.counting import RecordCounts, told_by
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.runtime.side_inputs import TaskSideInput
from penstock.runtime.stopping import is_stopped
from penstock.runtime.task_state import TaskState
from penstock.runtime.watermarks import Control
from penstock.runtime.writers import EdgeWriter
from penstock.state.backend import KeyScope
from penstock.state.keyed_state import KeyedState


@dataclass(frozen=True)
class Chain:
    """The operators at work, first to last; with each its context and its part in checkpoints."""

    operators: list[OpenOperator]
    contexts: list[TaskRuntimeContext]
    checkpoints: list[OperatorCheckpoints]


@dataclass(frozen=True)
class Composition:
    """What the task has that its operators ask for."""

    settings: JobSettings
    vertex: Vertex
    subtask: int
    attempt: int
    scope: KeyScope
    state: TaskState
    writers: Mapping[int, EdgeWriter]
    attribution: Attribution
    counts: RecordCounts | None
    init_context: Callable[[str], InitContext]

    @property
    def roving(self) -> bool:
        """Whether the subtask has another part of the input in every epoch."""
        return spark_source(self.vertex) is not None

    def compose(self) -> Chain:
        """Open the operators, last first, so that each finds its successors' calls."""
        state = self.state
        opened: dict[int, OpenOperator] = {}
        contexts: dict[int, TaskRuntimeContext] = {}
        checkpoints: dict[int, OperatorCheckpoints] = {}
        for index in reversed(range(len(self.vertex.operators))):
            described = self.vertex.operators[index]
            keyed_state = state.keyed_state if index == 0 else None
            contexts[index] = TaskRuntimeContext(
                self.settings, self.vertex, self.subtask, described.name, keyed_state
            )
            contexts[index].attempt = self.attempt
            checkpoints[index] = OperatorCheckpoints(
                contexts[index],
                self.scope,
                lambda: state.order,
                state.restored(described.uid),
                partial(state.restored_everywhere, described.uid),
            )
            contexts[index].side_inputs = {
                side.name: TaskSideInput(side, lambda: state.order)
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
        order = range(len(opened))
        return Chain(
            [opened[i] for i in order],
            [contexts[i] for i in order],
            [checkpoints[i] for i in order],
        )

    def _host(
        self,
        described: PhysicalOperator,
        context: TaskRuntimeContext,
        checkpoints: OperatorCheckpoints,
        keyed_state: KeyedState | None,
        opened: dict[int, OpenOperator],
    ) -> OperatorHost:
        main = [o for o in described.outputs if o.tag is None]
        emit, emit_run = self._emit_to(main, opened), self._run_to(main, opened)
        if described.output_type is not None:
            emit, emit_run = self._converting(described, described.output_type, emit, emit_run)
        state = self.state
        return OperatorHost(
            context=context,
            scope=self.scope,
            keyed_state=keyed_state,
            emit=emit,
            emit_run=emit_run,
            emit_side=self._emit_side(described, opened),
            clock=lambda: state.order.clock,
            time=OperatorTime(),
            checkpoints=checkpoints,
            make_room=state.make_room,
            roving=self.roving,
            order=lambda: state.order,
            init_context=lambda: self.init_context(described.uid),
            batch=self.settings.batch,
            watermark_interval=self.settings.watermark_interval,
            unsay=self._unsay,
            stopped=lambda: is_stopped(self.settings.run_id),
            records_are=self.records_are,
        )

    def _emit_side(
        self, described: PhysicalOperator, opened: dict[int, OpenOperator]
    ) -> Callable[[OutputTag, Any], None]:
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

        return emit_side

    def records_are(self, shape: str | None) -> None:
        """What the source emits from now on, for the writers that get it unchanged."""
        sent = self._sent.get(shape)
        if sent is None:
            sent = self._sent[shape] = list(shapes_sent(self.vertex, shape))
        for edge, known in sent:
            self.writers[edge].records_are(known)

    @cached_property
    def _sent(self) -> dict[str | None, list[tuple[int, str | None]]]:
        """What each edge has to be told, by what the source says."""
        return {}

    def _unsay(self) -> None:
        for writer in self.writers.values():
            writer.unsay()

    def _passing_on(
        self, described: PhysicalOperator, opened: dict[int, OpenOperator]
    ) -> Callable[[Control], None]:
        """Control events go wherever records go, side outputs included."""
        targets = [
            opened[output.operator].control
            if output.operator is not None
            else self.writers[output.edge].control  # type: ignore[index]
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
            else self.writers[output.edge].write  # type: ignore[index]
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
                return self.writers[only.edge].run
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

        step = Step(*lines_converting(call, "value", "$call"), call=call, emit=emit)
        return convert, before(run, step)


def _description(described: PhysicalOperator) -> OperatorDescription:
    operator: OperatorDescription = described.operator
    return Ordered(operator) if described.event_time_order else operator


def _drop(value: Any) -> None:
    """Where results go that nobody reads."""


def _fan_out(calls: list[Emit]) -> Emit:
    """Every branch gets the record; if it can change, each but the first gets a copy."""
    first, rest = calls[0], calls[1:]

    def emit(value: Any) -> None:
        copies = [own_copy(value, "a record that goes to several operators") for _ in rest]
        first(value)
        for call, own in zip(rest, copies, strict=True):
            call(own)

    return emit
