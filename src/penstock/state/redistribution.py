"""What operators keep beside keyed state, as it is stored, and how it is dealt out when the
parallelism changes. Pure.

Every state says its rule. An element is opaque, and is never cut.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import CheckpointMismatchError
from penstock.storage.manifest import SubtaskState

SPLIT = "split"
"""The elements of all subtasks, in their order, are cut into parts as equal as can be."""
UNION = "union"
"""Each new instance gets the elements of all subtasks; they are stored once, and so dealt out."""
COPY = "copy"
"""Alike on all subtasks: each gets one of the copies, whole."""
OWN = "own"
"""An operator's own: new subtasks get what all the old ones kept, and choose."""


@dataclass(frozen=True)
class StoredState:
    """One state of one subtask."""

    rule: str
    type: Mapping[str, Any]
    """Kind and type, to be compared with what the program declares."""
    elements: tuple[bytes, ...]


StoredStates = Mapping[str, StoredState]
"""By name."""


def packed(states: StoredStates) -> bytes | None:
    """The states of one operator in one subtask; None if they are all empty.

    In MessagePack: what there is can be seen without opening anything that is pickled.
    """
    plain = {n: (s.rule, dict(s.type), s.elements) for n, s in states.items() if s.elements}
    return msgspec.msgpack.encode(plain) if plain else None


def unpacked(data: bytes) -> dict[str, StoredState]:
    return {
        name: StoredState(rule, type_, tuple(elements))
        for name, (rule, type_, elements) in msgspec.msgpack.decode(data).items()
    }


def as_text(data: bytes) -> str:
    """Packed states as a manifest holds them."""
    return base64.b64encode(data).decode()


def kept_by(subtask: SubtaskState, uid: str) -> dict[str, StoredState]:
    """What an operator keeps in a subtask."""
    text = subtask.operators.get(uid)
    return {} if text is None else unpacked(base64.b64decode(text))


def gathered(subtasks: Sequence[StoredStates], name: str) -> tuple[bytes, ...]:
    """The elements of all subtasks, in the order of the subtasks."""
    return tuple(e for states in subtasks if name in states for e in states[name].elements)


def dealt_out(before: Sequence[StoredStates], parallelism: int) -> list[dict[str, StoredState]]:
    """What each new subtask begins with, of what each old one kept."""
    if len(before) == parallelism:
        return [dict(states) for states in before]
    found: list[dict[str, StoredState]] = [{} for _ in range(parallelism)]
    for name in sorted({name for states in before for name in states}):
        holders = [states[name] for states in before if name in states]
        first = holders[0]
        if any(state.type != first.type for state in holders):
            raise CheckpointMismatchError.of_two_types(name)
        for index, elements in enumerate(_parts(first.rule, holders, parallelism)):
            found[index][name] = StoredState(first.rule, first.type, elements)
    return found


def _parts(rule: str, holders: list[StoredState], parallelism: int) -> list[tuple[bytes, ...]]:
    if rule == COPY:
        return [holders[index % len(holders)].elements for index in range(parallelism)]
    elements = tuple(element for state in holders for element in state.elements)
    if rule == OWN:
        return [elements] * parallelism
    bounds = [len(elements) * index // parallelism for index in range(parallelism + 1)]
    return [elements[bounds[i] : bounds[i + 1]] for i in range(parallelism)]
