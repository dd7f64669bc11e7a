"""Savepoints and checkpoints below a directory, and how a savepoint is deleted.

Reads manifests only, never state.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import (
    CheckpointError,
    CheckpointFormatError,
    CheckpointMismatchError,
    SnapshotNotFoundError,
)
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import FileSystem, filesystem_for
from penstock.storage.snapshot import SAVEPOINT_MANIFEST, Snapshot, open_snapshot


@dataclass(frozen=True)
class FoundSnapshot:
    """What lies at a path: a snapshot, or why it is none."""

    path: str
    snapshot: Snapshot | None
    problem: str | None = None
    """`incomplete` for a savepoint that was not written or copied to its end, `other format` for
    one of another version of Penstock's, else `damaged`."""


def savepoints_in(directory: str) -> list[FoundSnapshot]:
    """The savepoints in a directory, the oldest first; or the one that it is."""
    fs, place = filesystem_for(directory)
    if not fs.exists(place):
        raise SnapshotNotFoundError.at(directory, exists=False)
    if _is_savepoint(fs, place):
        return [_found(place)]
    below = (os.path.join(place, name) for name in fs.list(place))
    return _by_age(_found(path) for path in below if _is_savepoint(fs, path))


def checkpoints_in(directory: str) -> list[FoundSnapshot]:
    """The epochs that a job has kept in its directory; or the jobs below a directory."""
    fs, place = filesystem_for(directory)
    if not fs.exists(place):
        raise SnapshotNotFoundError.at(directory, exists=False)
    roots = [place, *(os.path.join(place, name) for name in fs.list(place))]
    logs = [CheckpointLog(fs, CheckpointLayout(root)) for root in roots]
    found = (_found(log.layout.manifest(epoch)) for log in logs for epoch in log.epochs())
    # What a running job has dropped since it was listed.
    return _by_age(one for one in found if one.problem != "incomplete")


def dispose(path: str) -> Snapshot:
    """Delete a savepoint, and nothing that is not one.

    Its manifest goes first: should this process die meanwhile, the rest is no savepoint.
    """
    snapshot = open_snapshot(path)
    if not snapshot.is_savepoint:
        raise CheckpointMismatchError.no_savepoint(path, snapshot.manifest.job_id)
    snapshot.fs.delete(os.path.join(snapshot.path, SAVEPOINT_MANIFEST))
    snapshot.fs.delete_tree(snapshot.path)
    return snapshot


def _is_savepoint(fs: FileSystem, path: str) -> bool:
    """Whether it is one, or was to become one; a job's own directory has epochs."""
    if fs.exists(os.path.join(path, SAVEPOINT_MANIFEST)):
        return True
    layout = CheckpointLayout(path)
    has_state = any(name.endswith(".parquet") for name in fs.list(layout.state))
    return has_state and not fs.exists(layout.epochs)


def _found(path: str) -> FoundSnapshot:
    try:
        return FoundSnapshot(path, open_snapshot(path))
    except SnapshotNotFoundError:
        return FoundSnapshot(path, None, "incomplete")
    except CheckpointFormatError:
        return FoundSnapshot(path, None, "other format")
    except CheckpointError:
        return FoundSnapshot(path, None, "damaged")


def _by_age(found: Iterator[FoundSnapshot]) -> list[FoundSnapshot]:
    def age(one: FoundSnapshot) -> tuple[int, str]:
        return (0 if one.snapshot is None else one.snapshot.manifest.created), one.path

    return sorted(found, key=age)
