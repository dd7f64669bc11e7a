"""Types of states that tasks have found declared otherwise than they were stored. Pure.

A task fits what it has of a state to the declared type, or refuses; see `state/evolution.py`. Here
is what only shows over all of them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.physical import PhysicalPlan
from penstock.state.state_types import check_same
from penstock.storage.manifest import Manifest


def merged_types(
    before: Mapping[str, Mapping[str, Any]], acknowledgements: Iterable[Acknowledgement]
) -> dict[str, dict[str, Any]]:
    """Operator → state → type, for the manifest: as the tasks have declared them, and those of
    states that no task declares any more as they were."""
    declared: dict[str, dict[str, Any]] = {}
    for acknowledgement in acknowledgements:
        for uid, states in acknowledgement.state_types.items():
            known = declared.setdefault(uid, {})
            check_same(uid, known, states)
            known.update(states)
    uids = (*before, *(uid for uid in declared if uid not in before))
    return {uid: {**before.get(uid, {}), **declared.get(uid, {})} for uid in uids}


def untold(
    plan: PhysicalPlan, base: Manifest | None, acknowledgements: Iterable[Acknowledgement]
) -> dict[str, dict[str, str]]:
    """Operator → state → kind and type, pickled in base64: what a subtask has changed while
    another one holds entries of that state and has not met it in this epoch."""
    answers: dict[int, list[Acknowledgement]] = {}
    for a in acknowledgements:
        answers.setdefault(a.vertex, []).append(a)
    found: dict[str, dict[str, str]] = {}
    if base is None:
        return found
    for vertex in plan.vertices:
        uid = vertex.operators[0].uid
        of_vertex = answers.get(vertex.index, [])
        changed = {s: t for a in of_vertex for s, t in a.changed_types.get(uid, {}).items()}
        for state, pickled in changed.items():
            for a in of_vertex:
                subtask = base.vertices[vertex.uid].subtasks[a.subtask]
                held = {s for link in subtask.chain for file in link.files for s in file.states}
                if state not in a.state_types.get(uid, {}) and (uid, state) in held:
                    found.setdefault(uid, {})[state] = base64.b64encode(pickled).decode()
    return found
