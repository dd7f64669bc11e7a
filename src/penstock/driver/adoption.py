"""Fitting a checkpoint to the program that goes on from it. Pure.

State is found by operator uid and key group. A vertex whose operators and parallelism are as they
were keeps its chains of files; any other gets a first link that names every file with a part of
its state, which its subtasks then filter. What operators keep beside keyed state is dealt out anew,
each state by its rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from penstock.common.digests import text_digest
from penstock.driver.spark_checkpoint import CALLS
from penstock.errors import CheckpointMismatchError
from penstock.runtime.physical import PhysicalPlan, Vertex
from penstock.state.key_groups import key_group_range
from penstock.state.redistribution import OWN, as_text, dealt_out, kept_by, packed
from penstock.state.waiting import WAITING
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import ChainLink, Manifest, SubtaskState, VertexState


def adopt(
    manifest: Manifest, plan: PhysicalPlan, root: str, drop_unclaimed: bool = False
) -> tuple[Manifest, bool]:
    """The manifest as the plan needs it, and whether that is another one.

    `drop_unclaimed`: state that no operator takes is dropped instead of refused.
    """
    unclaimed = _unclaimed(manifest, plan)
    if unclaimed and not drop_unclaimed:
        shown = [_shown(manifest, uid) for uid in unclaimed]
        raise CheckpointMismatchError.non_restored(root, manifest.job_name, shown)
    _check_operators(manifest, plan, root)
    _check_sinks(manifest, plan, root)
    kept = _without(manifest, unclaimed)
    vertices = {vertex.uid: _vertex(kept, vertex) for vertex in plan.vertices}
    if not unclaimed and all(manifest.vertices.get(u) == state for u, state in vertices.items()):
        return manifest, False
    changed = replace(kept, epoch=manifest.epoch + 1, base=manifest.epoch, vertices=vertices)
    return changed, True


def max_parallelisms(manifest: Manifest) -> dict[str, int]:
    """Operator uid → into how many key groups its state is cut."""
    return {
        uid: vertex.max_parallelism
        for vertex in manifest.vertices.values()
        for uid in vertex.operators
        if any(subtask.chain for subtask in vertex.subtasks)
    }


def _uids(plan: PhysicalPlan) -> set[str]:
    return {operator.uid for vertex in plan.vertices for operator in vertex.operators}


def _check_sinks(manifest: Manifest, plan: PhysicalPlan, root: str) -> None:
    """Output that was prepared, perhaps not committed, and that no sink takes would be lost."""
    orphans = sorted(set(manifest.committables) - _uids(plan))
    if orphans:
        raise CheckpointMismatchError(
            f"epoch {manifest.epoch} in {root} has output for sinks "
            f"{', '.join(orphans)}, which may not have been committed before the job died, and "
            "this program does not have them; "
            "start the earlier program once more, or give the sinks the uids they had, or use "
            "another penstock.job-id or execution.checkpointing.dir"
        )


def _unclaimed(manifest: Manifest, plan: PhysicalPlan) -> list[str]:
    """The operators whose state or positions nobody takes, which would be lost in silence."""
    known = _uids(plan)
    with_state = {name for file in manifest.files() for name in file.operators}
    with_state |= _with_operator_state(manifest)
    heads = {vertex.operators[0].uid for vertex in plan.vertices if vertex.feedback}
    no_loop = set(manifest.loops) - heads
    sources = set(manifest.sources) | {s.uid for s in manifest.spark_sources if s.uid != CALLS}
    return sorted(((with_state | sources) - known) | no_loop)


def _shown(manifest: Manifest, uid: str) -> str:
    """An operator with what is stored of it."""
    files = {file.path: file for file in manifest.files()}
    for loop in manifest.loops.values():
        for file in loop.files:
            files.pop(file.path, None)
    states = {name for f in files.values() for operator, name in f.states if operator == uid}
    parts = [f"state {', '.join(sorted(states))}"] if states else []
    if uid in manifest.loops:
        parts.append("records in its loop")
    if uid in manifest.sources or any(uid == s.uid for s in manifest.spark_sources):
        parts.append("positions")
    return f"{uid}: {'; '.join(parts) or 'operator state'}"


def _without(manifest: Manifest, uids: Collection[str]) -> Manifest:
    if not uids:
        return manifest
    return replace(
        manifest,
        sources={uid: found for uid, found in manifest.sources.items() if uid not in uids},
        rows_read={uid: found for uid, found in manifest.rows_read.items() if uid not in uids},
        spark_sources=tuple(s for s in manifest.spark_sources if s.uid not in uids),
        loops={uid: found for uid, found in manifest.loops.items() if uid not in uids},
        state_types={u: found for u, found in manifest.state_types.items() if u not in uids},
    )


def _check_operators(manifest: Manifest, plan: PhysicalPlan, root: str) -> None:
    """What has state must be able to read it."""
    with_waiting = {uid for f in manifest.files() for uid, state in f.states if state == WAITING}
    for vertex in plan.vertices:
        head = vertex.operators[0]
        if head.uid in with_waiting and not head.event_time_order:
            raise CheckpointMismatchError.order_given_up(f"{head.name!r} ({head.location})", root)
        before = _state_of(manifest, vertex)
        if before is not None and before.max_parallelism != vertex.max_parallelism:
            raise CheckpointMismatchError(
                f"operator {vertex.operators[0].name!r} ({vertex.operators[0].location}) has max "
                f"parallelism {vertex.max_parallelism}, its checkpoint in {root} was written with "
                f"{before.max_parallelism}; set_max_parallelism({before.max_parallelism})"
            )


def _state_of(manifest: Manifest, vertex: Vertex) -> VertexState | None:
    """The old vertex that held the state of this vertex's head."""
    uid = vertex.operators[0].uid
    for state in manifest.vertices.values():
        if any(uid in f.operators for s in state.subtasks for c in s.chain for f in c.files):
            return state
    return None


def _vertex(manifest: Manifest, vertex: Vertex) -> VertexState:
    operators = tuple(operator.uid for operator in vertex.operators)
    before = manifest.vertices.get(vertex.uid)
    same = (
        before is not None
        and before.operators == operators
        and before.parallelism == vertex.parallelism
    )
    if before is not None and same:
        return before
    kept = _dealt_out(manifest, vertex)
    return VertexState(
        operators,
        vertex.parallelism,
        vertex.max_parallelism,
        tuple(_subtask(manifest, vertex, subtask, own) for subtask, own in enumerate(kept)),
    )


def _subtask(
    manifest: Manifest, vertex: Vertex, subtask: int, kept: Mapping[str, bytes]
) -> SubtaskState:
    mine = key_group_range(subtask, vertex.max_parallelism, vertex.parallelism)
    uids = {operator.uid for operator in vertex.operators}
    files = tuple(file for file in _owned_files(manifest) if file.overlaps(mine, uids))
    state = SubtaskState(
        "",
        watermark=_watermark(manifest.vertices.get(vertex.uid)),
        operators={uid: as_text(data) for uid, data in kept.items()},
    )
    if not files:
        return state
    version = f"{manifest.epoch}-{_digest(files, mine, uids)}"
    return replace(state, chain=(ChainLink(version, files),))


def _dealt_out(manifest: Manifest, vertex: Vertex) -> list[dict[str, bytes]]:
    """For each new subtask, what its operators keep beside keyed state."""
    found: list[dict[str, bytes]] = [{} for _ in range(vertex.parallelism)]
    for operator in vertex.operators:
        uid = operator.uid
        for before in manifest.vertices.values():
            if any(uid in subtask.operators for subtask in before.subtasks):
                kept = [kept_by(subtask, uid) for subtask in before.subtasks]
                for index, states in enumerate(dealt_out(kept, vertex.parallelism)):
                    if (data := packed(states)) is not None:
                        found[index][uid] = data
    return found


def _with_operator_state(manifest: Manifest) -> set[str]:
    """The operators with state that is the user's, not their own."""
    return {
        uid
        for vertex in manifest.vertices.values()
        for subtask in vertex.subtasks
        for uid in subtask.operators
        if any(state.rule != OWN for state in kept_by(subtask, uid).values())
    }


def _watermark(before: VertexState | None) -> int | None:
    """New subtasks begin where the slowest old one was."""
    known = [] if before is None else [subtask.watermark for subtask in before.subtasks]
    return min((w for w in known if w is not None), default=None)


def _digest(files: Iterable[FileInfo], mine: tuple[int, int], uids: Collection[str]) -> str:
    """Names the content: files have random names, and these settle what is taken from them.

    Anything less might name the content of a store that an earlier life of the job has left here.
    """
    parts = [(file.path, file.key_groups) for file in files]
    return text_digest(repr((parts, mine, sorted(uids))))


def _owned_files(manifest: Manifest) -> Iterator[FileInfo]:
    """All files, each cut to the key groups of the subtask whose chain it is in.

    After an earlier change of parallelism several chains name one file; for the key groups of
    another subtask it is out of date.
    """
    for state in manifest.vertices.values():
        for index, subtask in enumerate(state.subtasks):
            owned = key_group_range(index, state.max_parallelism, state.parallelism)
            for link in subtask.chain:
                for file in link.files:
                    if (part := file.clipped_to(owned)) is not None:
                        yield part
