"""Which epoch a job begins from: its own newest, that of a savepoint, or none."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace

from penstock import options
from penstock.common.configuration import Configuration
from penstock.driver.seeding import has_begun_from, is_newest_of, seed
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    SnapshotNotFoundError,
)
from penstock.runtime.physical import JobSettings
from penstock.storage.checkpoint_layout import parse_epoch
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import Manifest
from penstock.storage.snapshot import Snapshot, open_snapshot
from penstock.storage.trust import check_author, check_owner

_log = logging.getLogger("penstock")


Check = Callable[[Manifest, str], object]
"""Refuses an epoch that the program cannot go on from; the path is for the message."""


def beginning(
    log: CheckpointLog, configuration: Configuration, settings: JobSettings, check: Check
) -> Manifest | None:
    """The epoch to go on from, as it was stored; call it with the lease held."""
    trusted = configuration.get(options.TRUST_PICKLE)
    if log.epochs():
        check_owner(log.layout, trusted, log.fs.owner_of_new_files(log.layout.root))
    newest = log.newest(settings.job_id)
    path = configuration.get(options.RECOVERY_PATH)
    if path is None:
        _check_nothing_is_meant_for_one(configuration)
    else:
        if settings.batch:
            raise CheckpointMismatchError.batch_from_snapshot(path)
        snapshot = _to_begin_from(log, newest, path, configuration)
        if snapshot is not None:
            # All before anything is written; and nothing is unpickled before it is trusted.
            snapshot.check_files()
            check_author(snapshot, trusted)
            check(snapshot.manifest, snapshot.path)
            return _begun(log, configuration, settings, newest, snapshot)
    if newest is None:
        return None
    if settings.batch and not newest.final:
        raise CheckpointMismatchError.of_streaming(log.layout.root, newest.epoch)
    if log.fs.exists(log.layout.committed(newest.epoch)):
        # Not once more: by now somebody may have taken away what was made visible.
        return replace(newest, committables={})
    return newest


def _check_nothing_is_meant_for_one(configuration: Configuration) -> None:
    """Without a savepoint these would do nothing, and that in silence."""
    meant = {
        options.RECOVERY_RESET_SOURCES.key: configuration.get(options.RECOVERY_RESET_SOURCES),
        options.RECOVERY_ANEW.key: configuration.get(options.RECOVERY_ANEW),
    }
    for key, value in meant.items():
        if value:
            raise InvalidArgumentError(
                f"{key} says how to start from a savepoint, and there is none; name it with "
                f"--from-savepoint or {options.RECOVERY_PATH.key}; it may be one of the job's own "
                "checkpoints"
            )


def _to_begin_from(
    log: CheckpointLog, newest: Manifest | None, path: str, configuration: Configuration
) -> Snapshot | None:
    """The snapshot at the path; None if the job has begun from it already, and is to go on."""
    anew = configuration.get(options.RECOVERY_ANEW)
    place = filesystem_for(path)[1]
    try:
        snapshot = open_snapshot(path)
    except SnapshotNotFoundError:
        origin = None if newest is None else newest.origin
        if anew or origin is None or origin.path != os.path.abspath(place):
            raise
    else:
        # One that is named is begun from, and that is noted: when the job is started again in the
        # same way, it will not be the newest any more.
        named = parse_epoch(place) is not None
        if not named and not anew and is_newest_of(log, newest, snapshot):
            if _to_reset(configuration):
                # The newest is another one at each start, of which the sources would begin anew.
                raise CheckpointMismatchError.reset_of_newest(path, snapshot.path)
            return None
        if anew or not has_begun_from(newest, snapshot):
            return snapshot
    _log.warning(
        "the job has begun from %s already, and goes on from its newest checkpoint; "
        "%s: true starts it there again",
        path,
        options.RECOVERY_ANEW.key,
    )
    return None


def _begun(
    log: CheckpointLog,
    configuration: Configuration,
    settings: JobSettings,
    newest: Manifest | None,
    snapshot: Snapshot,
) -> Manifest:
    reset = _to_reset(configuration)
    return seed(log, newest, snapshot, settings.job_id, settings.job_name, reset)


def _to_reset(configuration: Configuration) -> frozenset[str]:
    given = configuration.get(options.RECOVERY_RESET_SOURCES) or ""
    return frozenset(uid.strip() for uid in given.split(",") if uid.strip())
