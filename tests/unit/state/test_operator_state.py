"""Operator states of one subtask: what they hold, and what is stored of it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor
from penstock.errors import CheckpointMismatchError, StateError
from penstock.state.operator_state import OperatorStates
from penstock.state.redistribution import StoredState, StoredStates, packed, unpacked

NUMBERS = ListStateDescriptor("numbers", Types.LONG())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.STRING())


def opened(*subtasks: StoredStates) -> OperatorStates:
    """Those of the first subtask, of what all of them stored."""
    return OperatorStates("op", subtasks[0] if subtasks else {}, lambda: list(subtasks))


def stored(states: OperatorStates) -> dict[str, StoredState]:
    """As it comes back."""
    data = packed(states.stored())
    return {} if data is None else unpacked(data)


def with_numbers(*numbers: int, union: bool = False) -> dict[str, StoredState]:
    states = opened()
    _numbers(states, union).add_all(list(numbers))
    return stored(states)


def _numbers(states: OperatorStates, union: bool) -> Any:
    return states.get_union_list_state(NUMBERS) if union else states.get_list_state(NUMBERS)


@pytest.mark.parametrize("union", [False, True])
def test_a_list_goes_on(union: bool) -> None:
    states = opened(with_numbers(1, 2, union=union))
    numbers = _numbers(states, union)
    assert numbers.get() == [1, 2]
    numbers.add(3)
    assert numbers.get() == [1, 2, 3]
    again = opened(stored(states))
    assert _numbers(again, union).get() == [1, 2, 3]


def test_what_get_gives_is_no_part_of_it() -> None:
    numbers = opened(with_numbers(1)).get_list_state(NUMBERS)
    found: Any = numbers.get()
    found.append(2)
    assert numbers.get() == [1]


def test_a_list_of_its_own_does_not_see_the_others() -> None:
    states = opened(with_numbers(1), with_numbers(2))
    assert states.get_list_state(NUMBERS).get() == [1]


def test_a_union_sees_all_and_stores_its_own() -> None:
    """Else what is common would double with each restart."""
    states = opened(with_numbers(1, union=True), with_numbers(2, 3, union=True))
    union = states.get_union_list_state(NUMBERS)
    assert union.get() == [1, 2, 3]
    assert stored(states) == with_numbers(1, union=True)
    union.add(4)
    assert stored(states) == with_numbers(1, 4, union=True)
    assert union.get() == [1, 2, 3, 4]


def test_a_union_that_is_replaced_is_its_own() -> None:
    states = opened(with_numbers(1, union=True), with_numbers(2, 3, union=True))
    union = states.get_union_list_state(NUMBERS)
    union.update([2])
    assert union.get() == [2]
    assert stored(states) == with_numbers(2, union=True)
    union.clear()
    assert stored(states) == {}


def test_a_broadcast_state_goes_on() -> None:
    states = opened()
    names = states.get_broadcast_state(NAMES)
    names.put_all({"a": "Ann", "b": "Bob"})
    states = opened(stored(states))
    names = states.get_broadcast_state(NAMES)
    assert dict(names.items()) == {"a": "Ann", "b": "Bob"}
    names.remove("a")
    assert dict(opened(stored(states)).get_broadcast_state(NAMES).items()) == {"b": "Bob"}
    names.clear()
    assert stored(states) == {}


def test_one_descriptor_is_one_state() -> None:
    states = opened()
    assert states.get_list_state(NUMBERS) is states.get_list_state(NUMBERS)
    with pytest.raises(StateError, match="declared twice"):
        states.get_list_state(ListStateDescriptor("numbers", Types.STRING()))


def test_undeclared_states_are_kept() -> None:
    states = opened(with_numbers(1, 2))
    states.get_broadcast_state(NAMES).put("a", "Ann")
    assert stored(states)["numbers"] == with_numbers(1, 2)["numbers"]


@pytest.mark.parametrize("where", [0, 1])
def test_another_type_is_refused(where: int) -> None:
    """Of a union, whoever stored it."""
    subtasks: list[StoredStates] = [{}, {}]
    subtasks[where] = with_numbers(1, union=True)
    with pytest.raises(CheckpointMismatchError, match=r"'numbers' of operator 'op'.*union list"):
        opened(*subtasks).get_union_list_state(ListStateDescriptor("numbers"))
