"""Types of states over all subtasks: what the manifest records, and whom the driver has to tell."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.driver.type_changes import merged_types, untold
from penstock.errors import CheckpointMismatchError
from penstock.runtime.epoch import Acknowledgement
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import ChainLink, SubtaskState

LONG = {"kind": "value", "type": {"kind": "long"}}
DOUBLE = {"kind": "value", "type": {"kind": "double"}}


def answer(subtask: int, changed: str = "", **types: Any) -> Acknowledgement:
    found = Acknowledgement(0, subtask, "token", state_types={"op": types})
    if changed:
        found.changed_types["op"] = {changed: b"pickled"}
    return found


def test_declared_types_replace_recorded_ones_and_others_stay():
    before = {"op": {"a": LONG, "gone": LONG}, "removed": {"x": LONG}}
    found = merged_types(before, [answer(0, a=DOUBLE), answer(1, b=LONG)])
    assert found == {"op": {"a": DOUBLE, "gone": LONG, "b": LONG}, "removed": {"x": LONG}}


def test_subtasks_must_declare_a_state_alike():
    with pytest.raises(
        CheckpointMismatchError, match=r"state 'a' of operator 'op'.*of Long by one"
    ):
        merged_types({}, [answer(0, a=LONG), answer(1, a=DOUBLE)])


def job(*states: list[str]) -> tuple[Any, Any]:
    """A plan of one vertex, and a base in which each subtask holds some states."""
    plan = SimpleNamespace(
        vertices=[SimpleNamespace(index=0, uid="v", operators=[SimpleNamespace(uid="op")])]
    )
    subtasks = []
    for held in states:
        pairs = tuple(("op", state) for state in held)
        file = FileInfo("state/x", 1, 1, "", "segment", pairs, (0, 63))
        subtasks.append(SubtaskState("token", (ChainLink("1", (file,)),) if held else ()))
    return plan, SimpleNamespace(vertices={"v": SimpleNamespace(subtasks=subtasks)})


TOLD = {"op": {"a": base64.b64encode(b"pickled").decode()}}


@pytest.mark.parametrize(
    ("held", "answers", "expected"),
    [
        ((["a"], ["a"]), [answer(0, "a", a=DOUBLE), answer(1)], TOLD),
        ((["a"], ["a"]), [answer(0, "a", a=DOUBLE), answer(1, a=DOUBLE)], {}),
        ((["a"], ["b"]), [answer(0, "a", a=DOUBLE), answer(1)], {}),
        ((["a"], []), [answer(0, "a", a=DOUBLE), answer(1)], {}),
        ((["a"], ["a"]), [answer(0, a=LONG), answer(1)], {}),
    ],
    ids=["not met there", "met by both", "nothing of it there", "nothing there", "not changed"],
)
def test_who_has_to_be_told(held, answers, expected):
    assert untold(*job(*held), answers) == expected


def test_there_is_nobody_to_tell_without_a_base():
    assert untold(job([])[0], None, [answer(0, "a", a=DOUBLE)]) == {}
