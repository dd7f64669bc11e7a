"""The local stores of a worker process: one per subtask, opened once, caught up when read."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Collection
from contextlib import suppress

from penstock.common.digests import text_digest
from penstock.runtime.physical import JobSettings
from penstock.storage.catch_up import CatchUp, catch_up
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import Manifest, SubtaskState
from penstock.storage.store import Store, StoreKind, open_store

_open: dict[tuple[int, str], tuple[str, Store]] = {}
"""By process and path: the run of the job that opened it, and the store. After that run another
process may have deleted the directory and made it anew."""
_manifests: dict[tuple[str, str, int], Manifest] = {}


def local_store_path(settings: JobSettings, vertex: str, subtask: int) -> str:
    """Where this host keeps the store of a subtask; other jobs and directories do not meet it."""
    return os.path.join(_job_path(settings), f"{vertex}-{subtask}")


def remove_stores(settings: JobSettings) -> None:
    """Delete this host's stores of a job that has ended; whoever calls it holds the job's lease.

    Other hosts keep theirs: they do no harm, since no two states have the same version.
    """
    shutil.rmtree(_job_path(settings), ignore_errors=True)
    _close_removed()


def _job_path(settings: JobSettings) -> str:
    return os.path.join(settings.local_dir, f"{settings.job_id}-{text_digest(settings.root)}")


def base_manifest(settings: JobSettings, epoch: int) -> Manifest:
    """The manifest of an epoch; the last one read is remembered.

    For one run of the job only: when a job was started afresh, in the same directory and perhaps
    by the same process, the same epoch has another manifest.
    """
    key = (settings.run_id, settings.root, epoch)
    if key not in _manifests:
        fs, root = filesystem_for(settings.root)
        _manifests.clear()
        _manifests[key] = CheckpointLog(fs, CheckpointLayout(root)).read(epoch)
    return _manifests[key]


def store_at(
    settings: JobSettings,
    vertex: str,
    subtask: int,
    state: SubtaskState | None,
    operators: Collection[str],
    key_groups: tuple[int, int],
) -> tuple[Store, CatchUp]:
    """The store of a subtask, holding exactly `state`, and what it took to bring it there."""
    store = _store(settings, local_store_path(settings, vertex, subtask))
    if state is None or state.version is None:
        with store.exclusive():
            # A store without a version may hold what a writer that died half-way has left.
            if store.version() is not None or next(store.scan(b""), None) is not None:
                store.reset()
        return store, CatchUp(rebuilt=False, rows=0)
    fs, root = filesystem_for(settings.root)
    done = catch_up(
        store,
        fs,
        root,
        [(link.version, link.files) for link in state.chain],
        state.version,
        operators,
        key_groups,
        covers={link.version: link.covers for link in state.chain if link.covers},
    )
    return store, done


def spill_store(settings: JobSettings, vertex: str, subtask: int) -> Store:
    """A store for what a subtask's running epoch cannot hold in memory."""
    path = f"{local_store_path(settings, vertex, subtask)}.spill-"
    for left in glob.glob(f"{glob.escape(path)}*"):
        if not _is_alive(left.removeprefix(path)):
            shutil.rmtree(left, ignore_errors=True)
    return _store(settings, f"{path}{os.getpid()}")


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _close_removed() -> None:
    """Stores of jobs that are gone: their directories were deleted, their handles are ours."""
    for key in [key for key in list(_open) if not os.path.isdir(key[1])]:
        _close(key)


def _close(key: tuple[int, str]) -> None:
    found = _open.pop(key, None)
    if found is not None and key[0] == os.getpid():
        with suppress(Exception):
            found[1].close()


def _store(settings: JobSettings, path: str) -> Store:
    key = (os.getpid(), path)
    found = _open.get(key)
    if found is not None and found[0] == settings.run_id:
        return found[1]
    _close_removed()
    _close(key)
    kind: StoreKind = "rocksdb" if settings.state_backend == "rocksdb" else "hashmap"
    store = open_store(kind, path)
    _open[key] = (settings.run_id, store)
    return store
