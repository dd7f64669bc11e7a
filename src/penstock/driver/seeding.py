"""How a job begins from a savepoint or a retained checkpoint: as one more epoch of its own.

The snapshot's files are taken into the job's directory, then a manifest is committed that names
them. So it has happened or not, the snapshot itself stays as it is, and epochs only ever grow: what
the job did before, if it did anything, is kept as long as retention says.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.common.digests import text_digest
from penstock.driver.spark_checkpoint import CALLS, export_spark
from penstock.errors import CheckpointCorruptError, CheckpointMismatchError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.contents import at_once, check_content
from penstock.storage.crash_points import reach
from penstock.storage.filesystem import FileSystem
from penstock.storage.lease import is_held
from penstock.storage.manifest import Manifest, Origin
from penstock.storage.snapshot import Snapshot
from penstock.storage.table_file import check_file

_log = logging.getLogger("penstock")


def has_begun_from(newest: Manifest | None, snapshot: Snapshot) -> bool:
    """Whether the job's own history began from this snapshot."""
    if newest is None or newest.origin is None:
        return False
    return newest.origin.snapshot == snapshot_id(snapshot)


def is_newest_of(log: CheckpointLog, newest: Manifest | None, snapshot: Snapshot) -> bool:
    """Whether the snapshot is the epoch that the job goes on from anyway."""
    return (
        newest is not None
        and not snapshot.is_savepoint
        and snapshot.manifest.epoch == newest.epoch
        and is_same_place(log.layout.root, snapshot.layout.root)
    )


def is_same_place(root: str, other: str) -> bool:
    return os.path.realpath(root) == os.path.realpath(other)


def snapshot_id(snapshot: Snapshot) -> str:
    """By its bytes: a later version may write the same manifest otherwise."""
    return text_digest(snapshot.data.decode())


def seed(
    log: CheckpointLog,
    newest: Manifest | None,
    snapshot: Snapshot,
    job_id: str,
    job_name: str,
    reset_sources: frozenset[str] = frozenset(),
) -> Manifest:
    """Take a snapshot into the job's directory as its newest epoch."""
    before = snapshot.manifest
    _check_reset(snapshot, reset_sources)
    epoch = before.epoch if newest is None else max(newest.epoch, before.epoch) + 1
    identity = snapshot_id(snapshot)
    origin = Origin(identity, os.path.abspath(snapshot.path), f"{identity[:12]}-{epoch}")
    layout = replace(log.layout, fork=origin.fork)
    manifest = replace(
        without_sources(before.reopened() if before.final else before, reset_sources),
        job_id=job_id,
        job_name=job_name,
        epoch=epoch,
        base=None if newest is None else newest.epoch,
        committables=_uncommitted(snapshot, log.layout.root),
        origin=origin,
        savepoint=False,
        written_by={},
        contents={},
    )
    files = _files_of(snapshot, layout)
    new = [target for target in files if not log.fs.exists(target)]
    try:
        for place in (layout.sources, layout.seed):
            log.fs.delete_tree(place)
        at_once(lambda target: files[target].take(log.fs, target), files)
        _forget(log, snapshot, layout, reset_sources)
        reach("driver.before_seed")
        log.commit(manifest)
    except BaseException:
        _remove(log, layout, new)
        raise
    _log.info("job %s begins from %s as its epoch %d", job_name, snapshot.path, epoch)
    return manifest


def _check_reset(snapshot: Snapshot, uids: frozenset[str]) -> None:
    known = set(snapshot.manifest.sources) | {s.uid for s in snapshot.manifest.spark_sources}
    unknown = sorted(uids - known)
    if unknown:
        raise CheckpointMismatchError.unknown_sources(snapshot.path, unknown, sorted(known))


@dataclass(frozen=True)
class _Taken:
    """A file of the snapshot, and how it is known to be as it was written."""

    path: str
    check: Callable[[str], None]

    def take(self, fs: FileSystem, target: str) -> None:
        try:
            fs.link(self.path, target, self.check)
        except FileNotFoundError:
            # Of a checkpoint, the job that it belongs to may have dropped it meanwhile.
            raise CheckpointCorruptError.of(self.path, "the file is missing") from None


def _files_of(snapshot: Snapshot, now: CheckpointLayout) -> dict[str, _Taken]:
    """What is to be taken over as it is: where it belongs, and where it is."""
    fs, then = snapshot.fs, snapshot.layout
    if not snapshot.is_savepoint:
        if is_same_place(then.root, now.root):
            return {}
        return {
            now.full(file.path): _Taken(
                then.full(file.path), partial(check_file, fs, then.root, file)
            )
            for file in snapshot.manifest.files()
        }
    found = {}
    places = {then.sources: now.sources, then.spark: now.seed, then.state: now.state}
    for path, content in snapshot.manifest.contents.items():
        full = then.full(path)
        for place, new_place in places.items():
            if full.startswith(place + os.sep):
                target = new_place + full[len(place) :]
                found[target] = _Taken(full, partial(check_content, fs, full, content))
    return found


def _forget(
    log: CheckpointLog, snapshot: Snapshot, now: CheckpointLayout, reset: frozenset[str]
) -> None:
    """Complete what sources keep beside the checkpoint, but for those that begin anew."""
    if not snapshot.is_savepoint:
        log.fs.copy_tree(snapshot.layout.sources, now.sources)
        export_spark(log.fs, snapshot.layout, snapshot.manifest, now.seed)
    for vertex, state in snapshot.manifest.vertices.items():
        if state.operators and state.operators[0] in reset:
            log.fs.delete_tree(now.source(vertex))


def _remove(log: CheckpointLog, now: CheckpointLayout, files: Iterable[str]) -> None:
    """Leave nothing of an attempt; the disk may be full, but for that."""
    with contextlib.suppress(OSError):
        for place in (now.sources, now.seed):
            log.fs.delete_tree(place)
        for path in files:
            log.fs.delete(path)


def _uncommitted(snapshot: Snapshot, own: str) -> Mapping[str, list[dict[str, Any]]]:
    """Output that the job whose checkpoint it is prepared, and may have died before committing."""
    log = CheckpointLog(snapshot.fs, snapshot.layout)
    root, epoch = snapshot.layout.root, snapshot.manifest.epoch
    if (
        snapshot.is_savepoint
        or epoch != log.epochs()[-1]  # a next one is begun when all is committed
        or snapshot.fs.exists(snapshot.layout.committed(epoch))
        or (not is_same_place(root, own) and is_held(root))  # another job lives, and sees to it
    ):
        return {}
    return snapshot.manifest.committables


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
