"""The contract between a chain and its operators.

A description is frozen data that holds the user's function. Opening it in a task gives an
`OpenOperator`, whose `process` is called for every record and calls `emit` for every result.

Closures and generators name the user's callable `call` and what results go to `emit`: when
something raises, the innermost of our frames that has a `call` tells by both which operator it
was, at no cost per record. Generators have `emit` as an argument for that reason alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.datastream._basic_functions import WrappingFunction
from penstock.datastream.connectors.base import InitContext
from penstock.datastream.functions import Function
from penstock.datastream.output_tag import OutputTag
from penstock.runtime.checkpointing import OperatorCheckpoints
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.loops import Step, ending
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.runtime.watermarks import MIN_TIMESTAMP, WATERMARK, Control
from penstock.state.backend import KeyScope
from penstock.state.keyed_state import KeyedState

Emit = Callable[[Any], None]
EmitRun = Callable[[Iterable[Any]], None]
Input = tuple[Emit, EmitRun]
"""What takes the records of one input: one by one, or many."""


class OperatorTime:
    """Where an operator is in event time."""

    __slots__ = ("watermark",)

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP


@dataclass
class OperatorHost:
    """What a task offers to one of its operators."""

    context: TaskRuntimeContext
    scope: KeyScope
    keyed_state: KeyedState | None
    emit: Emit
    emit_run: EmitRun
    """Emits a run of records: what follows may then loop without a call for each."""
    emit_side: Callable[[OutputTag, Any], None]
    clock: Callable[[], int]
    time: OperatorTime
    checkpoints: OperatorCheckpoints
    """Operator state. What was `restored` for the operator itself is what its `snapshot` gave in
    the base's epoch; if the parallelism has changed since, in each of the former subtasks, for the
    operator to choose from."""
    make_room: Callable[[], None]
    """Writes early what has changed in keyed state, if it outgrows memory."""
    roving: bool
    """Whether the subtask has another part of the input in every epoch: Spark deals it out."""
    order: Callable[[], EpochOrder]
    init_context: Callable[[], InitContext]
    batch: bool
    """Whether the last watermark is the only one: until then time stands still."""
    watermark_interval: int
    """Milliseconds between two periodic watermarks; 0 if there are to be none."""
    unsay: Callable[[], None]
    """Takes back the control events that this epoch's receivers were to be told so far. For an
    operator that goes on where it was: its receivers were told in the base's epoch."""
    stopped: Callable[[], bool]
    """Whether the job has been stopped meanwhile, as far as this process knows: what waits for
    something outside need not wait any longer."""
    records_are: Callable[[str | None], None] = lambda shape: None
    """For a source: says what all records are that it emits from now on, if it knows
    (`runtime/shapes.py`)."""
    in_order: bool = False
    """Whether records come in event-time order: results are then to be independent of epochs."""


class OpenOperator:
    """An operator at work. Only `process` is needed by all.

    `run` does the same for many records. It takes an iterator and hands one on, which the last
    operator of the chain draws from: a record still passes through the whole chain before the next
    one enters, without a call of a call of a call for each.
    """

    process: Emit
    run: EmitRun | None = None
    inputs: tuple[Input, ...] = ()
    """Of an operator with several inputs, each of them. It is never behind another in a chain."""
    time: OperatorTime
    pass_on: Callable[[Control], None]
    """Hands a control event to what follows. Set, like `time`, by the task."""

    def control(self, control: Control) -> None:
        """A control event has arrived, behind the records that went before it."""
        if control[0] == WATERMARK:
            self.time.watermark = control[1]
        self.pass_on(control)

    def resume(self, control: Control) -> None:
        """Where event time was at the base. Nothing becomes due by it: it was handled there."""
        self.control(control)

    def next_timer(self, until: int) -> int | None:
        """The time of its first event-time timer up to a time, None if it has none. An operator
        that acts on watermarks and cannot tell at which says `until`."""
        return None if type(self).control is OpenOperator.control else until

    def end_epoch(self) -> None:
        """The epoch's input is through. May emit, and send control events."""

    def snapshot(self) -> bytes | None:
        """What a new instance needs to go on, beside keyed state and that of its functions."""
        return None

    def reached(self) -> dict[str, int]:
        """For the driver: the watermark of each part of the input that holds time back."""
        return {}

    def begin_epoch(self) -> None:
        """Before the first record of an epoch."""

    def finish(self) -> None:
        """There will be no more input, ever. May emit."""

    def prepare_commit(self) -> list[Any]:
        """The epoch's records are through: what is to be committed, if this is a sink."""
        return []

    def parts(self) -> tuple[Any, ...]:
        """The objects in whose methods user code of this operator runs. When that raises, they
        tell whose it was."""
        return (self,)

    def close(self) -> None:
        """The instance is not needed any more."""


class FunctionOperator(OpenOperator):
    """An operator around one user function."""

    def __init__(
        self,
        function: Any,
        process: Emit,
        run: EmitRun | None = None,
        inputs: tuple[Input, ...] = (),
    ) -> None:
        self.function = function
        self.process = process
        self.run = run
        self.inputs = inputs

    def close(self) -> None:
        close_function(self.function)


def close_function(function: Any) -> None:
    """Close what may be one of our functions or any callable."""
    if isinstance(function, Function):
        function.close()


class OperatorDescription(Protocol):
    """What a graph node holds.

    May have `timestamps`, true if records leave with timestamps that they did not come with,
    `needs_clock`, true if epochs must follow one another even while no records come, and
    `first_in_batch`, the input that is read before the others in batch mode.
    """

    def open(self, host: OperatorHost) -> OpenOperator: ...


def one_by_one(process: Emit) -> EmitRun:
    """A run for an operator that has none of its own."""

    return ending(Step("$process(value)", process=process))


def passing(results: Callable[[Iterable[Any]], Iterator[Any]], emit_run: EmitRun) -> EmitRun:
    """A run that makes results out of records and hands them on."""

    def run(values: Iterable[Any]) -> None:
        emit_run(results(values))

    return run


def stamped(timestamps: list[Any], values: Iterable[Any], scope: KeyScope) -> Iterator[Any]:
    """The values, each with its timestamp in the scope."""
    for scope.timestamp, value in zip(timestamps, values, strict=True):
        yield value


def open_function(function: Function, host: OperatorHost) -> None:
    """Every function is opened here: before that it gets its operator state back."""
    users = function.user_function if isinstance(function, WrappingFunction) else function
    host.checkpoints.enlist(users)
    function.open(host.context)


def opened(function: Any, host: OperatorHost, method: str) -> Callable[..., Any]:
    """The callable to use for a user function, after its `open` was called."""
    if isinstance(function, Function):
        open_function(function, host)
        bound: Callable[..., Any] = getattr(function, method)
        return bound
    host.checkpoints.enlist(function)
    called: Callable[..., Any] = function
    return called
