"""How a job begins from a savepoint or a retained checkpoint: as one more epoch of its own.

The snapshot's files are taken into the job's directory, then a manifest is committed that names
them. So it has happened or not, the snapshot itself stays as it is, and epochs only ever grow: what
the job did before, if it did anything, is kept as long as retention says.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.common.digests import text_digest
from penstock.driver.spark_checkpoint import CALLS, export_spark
from penstock.errors import CheckpointMismatchError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.crash_points import reach
from penstock.storage.manifest import Manifest, Origin
from penstock.storage.snapshot import Snapshot
from penstock.storage.table_file import check_file

_log = logging.getLogger("penstock")


def has_begun_from(newest: Manifest | None, snapshot: Snapshot) -> bool:
    """Whether the job's own history began from this snapshot, or is the very one it belongs to."""
    if newest is None or newest.origin is None:
        return False
    return newest.origin.snapshot == snapshot_id(snapshot)


def snapshot_id(snapshot: Snapshot) -> str:
    return text_digest(snapshot.manifest.to_bytes().decode())


def seed(
    log: CheckpointLog,
    newest: Manifest | None,
    snapshot: Snapshot,
    job_id: str,
    job_name: str,
    reset_sources: frozenset[str] = frozenset(),
) -> Manifest:
    """Take a snapshot into the job's directory as its newest epoch."""
    fs, root = log.fs, log.layout.root
    before = snapshot.manifest
    _check_reset(snapshot, reset_sources)
    epoch = before.epoch if newest is None else max(newest.epoch, before.epoch) + 1
    identity = snapshot_id(snapshot)
    origin = Origin(identity, os.path.abspath(snapshot.path), f"{identity[:12]}-{epoch}")
    layout = replace(log.layout, fork=origin.fork)
    if snapshot.layout.root != root:
        for file in before.files():
            check_file(fs, snapshot.layout.root, file)
            fs.link(snapshot.layout.full(file.path), layout.full(file.path))
    then = snapshot.layout
    if not snapshot.is_savepoint and before.origin is not None:
        then = replace(then, fork=before.origin.fork)
    _seed_sources(log, snapshot, then, layout, reset_sources)
    manifest = replace(
        without_sources(before, reset_sources),
        job_id=job_id,
        job_name=job_name,
        epoch=epoch,
        base=None if newest is None else newest.epoch,
        committables=_left_to_commit(log, newest, before),
        origin=origin,
        savepoint=False,
        written_by={},
        final=False,
    )
    reach("driver.before_seed")
    log.commit(manifest)
    _log.info("job %s begins from %s as its epoch %d", job_name, snapshot.path, epoch)
    return manifest


def _left_to_commit(
    log: CheckpointLog, newest: Manifest | None, before: Manifest
) -> Mapping[str, list[dict[str, Any]]]:
    """Output that may not be visible yet: only of the newest epoch, and if that is another job's,
    it is for that to see to."""
    if before != newest or log.fs.exists(log.layout.committed(before.epoch)):
        return {}
    return before.committables


def _check_reset(snapshot: Snapshot, uids: frozenset[str]) -> None:
    known = set(snapshot.manifest.sources) | {s.uid for s in snapshot.manifest.spark_sources}
    unknown = sorted(uids - known)
    if unknown:
        raise CheckpointMismatchError.unknown_sources(snapshot.path, unknown, sorted(known))


def _seed_sources(
    log: CheckpointLog, snapshot: Snapshot, then: CheckpointLayout, now: CheckpointLayout,
    reset: frozenset[str],
) -> None:  # fmt: skip
    """What sources keep beside the checkpoint, but for those that begin anew."""
    log.fs.delete_tree(now.sources)
    log.fs.copy_tree(then.sources, now.sources)
    for vertex, state in snapshot.manifest.vertices.items():
        if state.operators and state.operators[0] in reset:
            log.fs.delete_tree(now.source(vertex))
    log.fs.delete_tree(now.seed)
    if snapshot.is_savepoint:
        log.fs.copy_tree(then.spark, now.seed)
    else:
        export_spark(log.fs, then, snapshot.manifest, now.seed)


def without_sources(manifest: Manifest, reset: frozenset[str]) -> Manifest:
    """The manifest without what is known of some sources."""
    spark = tuple(s for s in manifest.spark_sources if s.uid not in reset)
    if not any(s.uid != CALLS for s in spark):
        # Spark has nothing to go on from, so it counts its batches anew.
        manifest = replace(manifest, batch=None, offsets=None)
        spark = ()
    vertices = {
        uid: replace(
            vertex,
            subtasks=tuple(
                replace(s, operators={u: d for u, d in s.operators.items() if u not in reset})
                for s in vertex.subtasks
            ),
        )
        for uid, vertex in manifest.vertices.items()
    }
    return replace(
        manifest,
        vertices=vertices,
        sources={uid: state for uid, state in manifest.sources.items() if uid not in reset},
        rows_read={uid: rows for uid, rows in manifest.rows_read.items() if uid not in reset},
        spark_sources=spark,
    )
