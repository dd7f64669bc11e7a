"""How user functions take part in checkpoints: their operator state, and what they are told.

All that an operator keeps beside keyed state is stored together: its own snapshot, and the states
of its functions, each with the rule by which it is dealt out anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    ListCheckpointed,
)
from penstock.datastream.state import ListState, ListStateDescriptor, OperatorStateStore
from penstock.errors import InvalidArgumentError, StateError
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.runtime_context import TaskRuntimeContext
from penstock.state.backend import NO_KEY, KeyScope
from penstock.state.operator_state import OperatorStates
from penstock.state.redistribution import OWN, StoredState, StoredStates, packed

_OWN = "_operator"
_LIST = "_list_checkpointed"


class OperatorCheckpoints:
    """The part of one operator in one subtask."""

    def __init__(
        self,
        context: TaskRuntimeContext,
        scope: KeyScope,
        order: Callable[[], EpochOrder],
        kept: StoredStates,
        everywhere: Callable[[], Sequence[StoredStates]],
    ) -> None:
        """`kept` is what this subtask has stored, `everywhere` what each of the subtasks has."""
        own = kept.get(_OWN)
        self.restored = [] if own is None else list(own.elements)
        """The operator's own snapshot; several, of the former subtasks, after a rescale."""
        of_functions = {name: state for name, state in kept.items() if name != _OWN}
        self.states = OperatorStates(context.get_task_name(), of_functions, everywhere)
        self._context = context
        self._scope = scope
        self._order = order
        self._functions: list[Any] = []
        self._lists: list[tuple[ListCheckpointed, ListState[Any]]] = []
        self._bytes = 0

    def enlist(self, function: Any) -> None:
        """A new instance of the user's, before it is opened: it gets its state back."""
        if any(known is function for known in self._functions):
            return
        self._functions.append(function)
        if all(isinstance(function, kind) for kind in (CheckpointedFunction, ListCheckpointed)):
            raise InvalidArgumentError(
                f"{type(function).__name__} is a CheckpointedFunction and a ListCheckpointed, "
                "which do not mean the same by snapshot_state; derive it from one of them"
            )
        if isinstance(function, CheckpointedFunction):
            self._outside_records(function.initialize_state, _Initialization(self._order(), self))
        elif isinstance(function, ListCheckpointed):
            self._enlist_list(function)

    def _enlist_list(self, function: ListCheckpointed) -> None:
        number = len(self._lists)
        name = f"{_LIST}_{number}" if number else _LIST
        state = self.states.get_list_state(ListStateDescriptor(name))
        self._lists.append((function, state))
        if self._order().base is not None:
            self._outside_records(function.restore_state, state.get())

    # An epoch ends

    def snapshot(self, own: bytes | None) -> bytes | None:
        """All that is to be stored; `own` is the operator's snapshot."""
        snapshot = _Snapshot(self._order())
        for function in self._functions:
            if isinstance(function, CheckpointedFunction):
                self._outside_records(function.snapshot_state, snapshot)
        for listed, state in self._lists:
            given = self._outside_records(
                listed.snapshot_state,
                snapshot.get_checkpoint_id(),
                snapshot.get_checkpoint_timestamp(),
            )
            state.update(_checked(given))
        stored = dict(self.states.stored())
        self._measure(stored)
        if own is not None:
            stored[_OWN] = StoredState(OWN, {}, (own,))
        return packed(stored)

    def types(self) -> dict[str, Any]:
        """Kind and type of each state. A function may have one of the same name for each key."""
        return {f"{name} ({t['kind']})": t for name, t in self.states.types().items()}

    def _measure(self, stored: StoredStates) -> None:
        if self.states.types():
            self._bytes = sum(len(e) for state in stored.values() for e in state.elements)
            group = self._context.get_metrics_group()
            group.gauge("operatorStateBytes", lambda: self._bytes)

    # What becomes of it

    @property
    def listening(self) -> bool:
        """Whether one of the functions wants to know."""
        return any(isinstance(function, CheckpointListener) for function in self._functions)

    def tell_complete(self, checkpoint: int) -> None:
        for function in self._functions:
            if isinstance(function, CheckpointListener):
                self._outside_records(function.notify_checkpoint_complete, checkpoint)

    def tell_aborted(self, checkpoint: int) -> None:
        for function in self._functions:
            if isinstance(function, CheckpointListener):
                # It is closed next, and something else failed before: that is to be reported.
                with contextlib.suppress(Exception):
                    self._outside_records(function.notify_checkpoint_aborted, checkpoint)

    def _outside_records(self, hook: Callable[..., Any], *arguments: Any) -> Any:
        """Call the user's code where there is no record, so no key."""
        scope = self._scope
        before, scope.key = scope.key, NO_KEY
        try:
            return hook(*arguments)
        finally:
            scope.key = before

    def keyed_states(self) -> KeyedStateStore:
        return self._context


class _Initialization(FunctionInitializationContext):
    def __init__(self, order: EpochOrder, checkpoints: OperatorCheckpoints) -> None:
        self._base = order.base
        self._checkpoints = checkpoints

    def is_restored(self) -> bool:
        return self._base is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return self._base

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._checkpoints.states

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._checkpoints.keyed_states()


class _Snapshot(FunctionSnapshotContext):
    def __init__(self, order: EpochOrder) -> None:
        self._order = order

    def get_checkpoint_id(self) -> int:
        return self._order.epoch

    def get_checkpoint_timestamp(self) -> int:
        return self._order.clock

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("get_operator_state_store", "get_keyed_state_store"):
            raise StateError.asked_elsewhere(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _checked(given: Any) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise InvalidArgumentError.of("what snapshot_state returns", "a list", given)
    return list(given)
