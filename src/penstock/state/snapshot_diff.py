"""What two snapshots differ in, state by state: a merge of their rows, which come in one order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import InvalidArgumentError
from penstock.state.snapshot_reader import (
    keyed_layout,
    keyed_rows,
    layout_in,
    states_of,
    subtask_files,
    unknown_state,
)
from penstock.state.stored_states import StateRow
from penstock.storage.entries import pack_key
from penstock.storage.snapshot import Snapshot


@dataclass(frozen=True)
class Change:
    """A row that only the second snapshot has, only the first has, or both with other values."""

    before: StateRow | None
    after: StateRow | None

    @property
    def how(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class StateDifference:
    """How many rows of a state differ."""

    operator: str
    state: str
    kind: str
    added: int
    removed: int
    changed: int
    same: int


def diff(one: Snapshot, other: Snapshot) -> list[StateDifference]:
    """For each keyed state that either has, how many rows were added, removed and changed."""
    names = sorted(
        {
            name
            for snapshot in (one, other)
            for part in subtask_files(snapshot.manifest)
            for file in part.files
            for name in file.states
            if name[0] in snapshot.manifest.vertices[part.vertex].operators
        }
    )
    found = []
    for operator, state in names:
        layout = layout_in(other.manifest, operator, state) or layout_in(
            one.manifest, operator, state
        )
        if layout is None:
            continue
        counts = dict.fromkeys(("added", "removed", "changed", "same"), 0)
        for before, after in _pairs(one, other, operator, state, False):
            counts[_how(before, after)] += 1
        if any(counts.values()):
            found.append(StateDifference(operator, state, layout.kind, **counts))
    return found


def changes(
    one: Snapshot, other: Snapshot, operator: str, state: str, *, trust_pickle: bool = False
) -> Iterator[Change]:
    """The rows of one keyed state that differ, in the order of their key groups and keys."""
    if not any(keyed_layout(snapshot.manifest, operator, state) for snapshot in (one, other)):
        if any((info.operator, info.state) == (operator, state) for info in states_of(other)):
            raise InvalidArgumentError(
                f"{state!r} of {operator!r} is not kept by key, and only keyed state can be "
                "compared; `penstock state show` shows what it is in either"
            )
        raise unknown_state(other, operator, state)
    for before, after in _pairs(one, other, operator, state, trust_pickle):
        if _how(before, after) != "same":
            yield Change(before, after)


def _how(before: StateRow | None, after: StateRow | None) -> str:
    if before is not None and after is not None and before.value == after.value:
        return "same"
    return Change(before, after).how


_Pair = tuple[StateRow | None, StateRow | None]


def _pairs(
    one: Snapshot, other: Snapshot, operator: str, state: str, trust_pickle: bool
) -> Iterator[_Pair]:
    """Both snapshots' rows side by side."""
    _check_comparable(one, other, operator)
    left = _ordered(one, operator, state, trust_pickle)
    right = _ordered(other, operator, state, trust_pickle)
    before, after = next(left, None), next(right, None)
    while before is not None or after is not None:
        if after is None or (before is not None and before[0] < after[0]):
            assert before is not None
            yield before[1], None
            before = next(left, None)
        elif before is None or after[0] < before[0]:
            yield None, after[1]
            after = next(right, None)
        else:
            yield before[1], after[1]
            before, after = next(left, None), next(right, None)


def _ordered(
    snapshot: Snapshot, operator: str, state: str, trust_pickle: bool
) -> Iterator[tuple[bytes, StateRow]]:
    layout = keyed_layout(snapshot.manifest, operator, state)
    if layout is None:
        return iter(())
    return (
        (pack_key(place[0], b"", *place[1:]), row)
        for place, row in keyed_rows(snapshot, layout, None, trust_pickle)
    )


def _check_comparable(one: Snapshot, other: Snapshot, operator: str) -> None:
    sizes = {
        vertex.max_parallelism
        for snapshot in (one, other)
        for vertex in snapshot.manifest.vertices.values()
        if operator in vertex.operators
    }
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"{one.path} and {other.path} cannot be compared: operator {operator!r} has max "
            f"parallelism {' and '.join(map(str, sorted(sizes)))} in them, so that keys come in "
            "different orders; compare them with penstock.state_processor instead"
        )
