"""How what operators keep is dealt out anew: nothing lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CheckpointMismatchError
from penstock.state.redistribution import (
    COPY,
    OWN,
    SPLIT,
    UNION,
    StoredState,
    dealt_out,
    gathered,
    packed,
    unpacked,
)

TYPE = {"kind": "operator list", "type": "LONG"}


def subtasks(rule: str, parts: Sequence[int | None]) -> list[dict[str, StoredState]]:
    """One for each part, with so many elements; None is a subtask that has never stored."""
    number = iter(range(10_000))
    return [
        {}
        if size is None
        else {"s": StoredState(rule, TYPE, tuple(b"%d" % next(number) for _ in range(size)))}
        for size in parts
    ]


some_parts = st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=6)


@pytest.mark.parametrize("rule", [SPLIT, UNION])
@given(parts=some_parts, after=st.lists(st.integers(1, 8), min_size=1, max_size=3))
def test_lists_are_split_evenly_and_in_order(
    rule: str, parts: list[int | None], after: list[int]
) -> None:
    states = before = subtasks(rule, parts)
    for parallelism in after:
        rescaled = len(states) != parallelism
        states = dealt_out(states, parallelism)
        assert len(states) == parallelism
        assert gathered(states, "s") == gathered(before, "s")
        if rescaled:
            sizes = [len(s["s"].elements) if "s" in s else 0 for s in states]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("rule", [SPLIT, UNION, COPY, OWN])
@given(parts=some_parts)
def test_the_same_parallelism_moves_nothing(rule: str, parts: list[int | None]) -> None:
    before = subtasks(rule, parts)
    assert dealt_out(before, len(parts)) == before


def test_copies_come_from_those_that_have_one() -> None:
    before = subtasks(COPY, [None, 2, 2])
    found = dealt_out(before, 4)
    assert [s["s"] for s in found] == [before[1]["s"], before[2]["s"]] * 2


def test_an_operators_own_goes_to_all() -> None:
    found = dealt_out(subtasks(OWN, [1, None, 1]), 2)
    assert [s["s"].elements for s in found] == [(b"0", b"1")] * 2


def test_states_of_one_operator_are_dealt_out_one_by_one() -> None:
    copied = StoredState(COPY, {"kind": "broadcast", "type": "MAP"}, (b"k", b"v"))
    before = [{"b": copied, "s": StoredState(SPLIT, TYPE, (b"0", b"1"))}]
    assert dealt_out(before, 2) == [
        {"b": copied, "s": StoredState(SPLIT, TYPE, (b"0",))},
        {"b": copied, "s": StoredState(SPLIT, TYPE, (b"1",))},
    ]


def test_what_is_packed_is_unpacked() -> None:
    states = {"s": StoredState(SPLIT, TYPE, (b"0", b""))}
    data = packed({**states, "empty": StoredState(UNION, TYPE, ())})
    assert data is not None
    assert unpacked(data) == states
    assert packed({"empty": StoredState(UNION, TYPE, ())}) is None


def test_elements_of_two_types_are_not_mixed() -> None:
    """A state that one subtask has declared with another type, and others not yet."""
    wider = {"kind": "operator list", "type": "DOUBLE"}
    states = [
        {"s": StoredState(SPLIT, TYPE, (b"1",))},
        {"s": StoredState(SPLIT, wider, (b"2",))},
    ]
    assert dealt_out(states, 2) == states
    with pytest.raises(CheckpointMismatchError, match="operator state 's' has changed its type"):
        dealt_out(states, 3)
