"""Harnesses and functions that take part in checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    SinkFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor
from penstock.errors import CheckpointMismatchError, StateError, UserFunctionError
from penstock.testing import KeyedOperatorHarness, ManualClock, OperatorHarness

STAGED = ListStateDescriptor("staged")
written: list[Any] = []


class Staging(SinkFunction, CheckpointedFunction, CheckpointListener):
    """Writes what it got once its checkpoint is complete."""

    def initialize_state(self, context: Any) -> None:
        self._state = context.get_operator_state_store().get_list_state(STAGED)
        self._staged = list(self._state.get())
        self._restored = context.get_restored_checkpoint_id()
        assert context.is_restored() == (self._restored is not None)

    def invoke(self, value: Any, context: Any) -> None:
        if value == "bad":
            raise ValueError(value)
        self._staged.append(value)

    def snapshot_state(self, context: Any) -> None:
        self._state.update(self._staged)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        written.append((checkpoint_id, self._staged, self._restored))
        self._staged = []


@pytest.fixture(autouse=True)
def nothing_written() -> None:
    written.clear()


def test_a_snapshot_is_told_as_complete() -> None:
    with OperatorHarness(Staging()) as harness:
        harness.process("a")
        assert harness.operator_state(STAGED) == []
        assert written == []
        snapshot = harness.snapshot()
        assert harness.operator_state(STAGED) == ["a"]
        assert written == [(0, ["a"], None)]
        harness.process("b")
        harness.snapshot()
        assert written[1:] == [(1, ["b"], None)]
    written.clear()
    with OperatorHarness.restore(snapshot) as harness:
        assert written == [(0, ["a"], 0)]
        harness.process("c")
        harness.snapshot()
        assert written[1:] == [(1, ["c"], 0)]


def test_a_state_that_is_not_there() -> None:
    with (
        OperatorHarness(Staging()) as harness,
        pytest.raises(StateError, match=r"no operator state MapState.*it has \[ListState"),
    ):
        harness.operator_state(MapStateDescriptor("staged"))


def test_what_it_raises_names_its_line() -> None:
    with OperatorHarness(Staging()) as harness, pytest.raises(UserFunctionError, match="bad"):
        harness.process("bad")


class Numbered(MapFunction, ListCheckpointed):
    def __init__(self) -> None:
        self._count = 0

    def map(self, value: Any) -> Any:
        self._count += 1
        return self._count

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return [self._count, checkpoint_id, timestamp]

    def restore_state(self, state: list[int]) -> None:
        self._count, checkpoint_id, timestamp = state
        assert (checkpoint_id, timestamp) == (0, 7)


def test_a_list_comes_back() -> None:
    with OperatorHarness(Numbered(), clock=ManualClock(7)) as harness:
        assert harness.process_all("ab") == [1, 2]
        snapshot = harness.snapshot()
        assert harness.process("c") == [3]
    assert OperatorHarness.restore(snapshot).process("c") == [3]


class Both(KeyedProcessFunction, CheckpointedFunction):
    """State of the key and of the subtask, both declared in `initialize_state`, by one name."""

    def initialize_state(self, context: Any) -> None:
        self._keyed = context.get_keyed_state_store().get_list_state(STAGED)
        self._common = context.get_operator_state_store().get_union_list_state(STAGED)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._keyed.add(value)
        self._common.add(value)
        yield len(list(self._keyed.get())), len(list(self._common.get()))

    def snapshot_state(self, context: Any) -> None:
        pass


def test_beside_state_of_keys() -> None:
    harness = KeyedOperatorHarness(Both(), key_selector=lambda value: value)
    assert [harness.process(v) for v in "aba"] == [[(1, 1)], [(1, 2)], [(2, 3)]]
    restored = KeyedOperatorHarness.restore(harness.snapshot())
    assert restored.process("b") == [(2, 4)]
    assert restored.state(STAGED, "b") == ["b", "b"]
    assert restored.operator_state(STAGED) == ["a", "b", "a", "b"]


class Otherwise(Both):
    def initialize_state(self, context: Any) -> None:
        super().initialize_state(context)
        context.get_operator_state_store().get_list_state(ListStateDescriptor("more"))


class Changed(Both):
    def initialize_state(self, context: Any) -> None:
        self._common = context.get_operator_state_store().get_list_state(STAGED)


def test_a_newer_function() -> None:
    harness = KeyedOperatorHarness(Both(), key_selector=lambda value: value)
    harness.process("a")
    snapshot = harness.snapshot()
    newer = KeyedOperatorHarness.restore(snapshot, Otherwise())
    assert newer.process("a") == [(2, 2)]
    with pytest.raises(CheckpointMismatchError, match="stored as union list"):
        KeyedOperatorHarness.restore(snapshot, Changed())
