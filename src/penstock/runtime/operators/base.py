"""The contract between a chain and its operators.

A description is frozen data that holds the user's function. Opening it in a task gives an
`OpenOperator`, whose `process` is called for every record and calls `emit` for every result.

Closures name the user's callable `call` and what they send results to `emit`: when something
raises, the innermost of our frames that has a `call` tells by both which operator it was, at no
cost per record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.datastream.connectors.base import InitContext
from penstock.datastream.functions import Function
from penstock.datastream.output_tag import OutputTag
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.state.backend import KeyScope
from penstock.state.keyed_state import KeyedState

Emit = Callable[[Any], None]

MIN_TIMESTAMP = -(1 << 63)


@dataclass
class OperatorHost:
    """What a task offers to one of its operators."""

    context: TaskRuntimeContext
    scope: KeyScope
    keyed_state: KeyedState | None
    emit: Emit
    emit_side: Callable[[OutputTag, Any], None]
    clock: Callable[[], int]
    order: Callable[[], EpochOrder]
    init_context: Callable[[], InitContext]
    batch: bool


def _nothing() -> None:
    pass


class OpenOperator:
    """An operator at work. Only `process` is needed by all."""

    process: Emit

    def begin_epoch(self) -> None:
        """Before the first record of an epoch."""

    def finish(self) -> None:
        """There will be no more input, ever. May emit."""

    def prepare_commit(self) -> list[Any]:
        """The epoch's records are through: what is to be committed, if this is a sink."""
        return []

    def close(self) -> None:
        """The instance is not needed any more."""


class FunctionOperator(OpenOperator):
    """An operator around one user function."""

    def __init__(self, function: Any, process: Emit) -> None:
        self.function = function
        self.process = process

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()


class OperatorDescription(Protocol):
    """What a graph node holds."""

    def open(self, host: OperatorHost) -> OpenOperator: ...


def opened(function: Any, host: OperatorHost, method: str) -> Callable[..., Any]:
    """The callable to use for a user function, after its `open` was called."""
    if isinstance(function, Function):
        function.open(host.context)
        bound: Callable[..., Any] = getattr(function, method)
        return bound
    called: Callable[..., Any] = function
    return called
