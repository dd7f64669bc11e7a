"""Looks at savepoints and checkpoints, and deletes savepoints. Light: reads manifests only."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from penstock.cli.exit_codes import CORRUPT, OK
from penstock.cli.finding import known_job
from penstock.cli.output import (
    in_bytes,
    iso_time,
    local_time,
    print_facts,
    print_json,
    print_table,
)
from penstock.driver import registry
from penstock.driver.registry import JobEntry
from penstock.errors import CheckpointCorruptError, InvalidArgumentError, SnapshotNotFoundError
from penstock.storage.manifest import Manifest
from penstock.storage.snapshot import Snapshot, open_snapshot
from penstock.storage.snapshot_directories import (
    FoundSnapshot,
    checkpoints_in,
    savepoints_in,
)
from penstock.storage.snapshot_directories import (
    dispose as dispose_savepoint,
)


def list_savepoints(arguments: argparse.Namespace) -> int:
    if arguments.directory is not None:
        found = savepoints_in(arguments.directory)
    else:
        directories = sorted({job.savepoint_dir for job in _known_jobs() if job.savepoint_dir})
        found = [one for directory in directories for one in _below(savepoints_in, directory)]
    return _print_snapshots("savepoints", found, arguments.json)


def list_checkpoints(arguments: argparse.Namespace) -> int:
    return _print_snapshots("checkpoints", _checkpoints(arguments.place), arguments.json)


def _checkpoints(place: str | None) -> list[FoundSnapshot]:
    if place is None:
        roots = sorted({job.root for job in _known_jobs() if job.root is not None})
        return [one for root in roots for one in _below(checkpoints_in, root)]
    if os.path.isdir(place) or "/" in place:
        return checkpoints_in(place)
    root = known_job(place).root
    return [] if root is None else _below(checkpoints_in, root)


def _known_jobs() -> list[JobEntry]:
    return [*registry.running(), *registry.ended()]


def _below(look: Any, directory: str) -> list[FoundSnapshot]:
    """What is there of a directory that a job once used: perhaps nothing."""
    try:
        found: list[FoundSnapshot] = look(directory)
        return found
    except (SnapshotNotFoundError, InvalidArgumentError):
        return []


def _print_snapshots(what: str, found: list[FoundSnapshot], as_json: bool) -> int:
    described = [_described(one) for one in found]
    if as_json:
        print_json({what: described})
        return OK
    rows = [
        (
            one["name"],
            one["epoch"],
            local_time(_created(found[number])),
            "" if one["bytes"] is None else in_bytes(one["bytes"]),
            one["problem"] or ("final" if one["final"] else ""),
            one["path"],
        )
        for number, one in enumerate(described)
    ]
    print_table(("job", "epoch", "made", "size", "", "path"), rows, f"There are no {what}.")
    return OK


def _created(found: FoundSnapshot) -> int | None:
    return None if found.snapshot is None else found.snapshot.manifest.created


def _described(found: FoundSnapshot) -> dict[str, Any]:
    manifest = None if found.snapshot is None else found.snapshot.manifest
    known = {} if manifest is None else _summary(manifest)
    empty = dict.fromkeys(("job_id", "name", "epoch", "created", "final", "files", "bytes"))
    return {"path": found.path, "problem": found.problem, **empty, **known}


def _summary(manifest: Manifest) -> dict[str, Any]:
    files = manifest.files()
    return {
        "job_id": manifest.job_id,
        "name": manifest.job_name,
        "epoch": manifest.epoch,
        "created": iso_time(manifest.created),
        "final": manifest.final,
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
    }


# One of them


def show(arguments: argparse.Namespace) -> int:
    snapshot = open_snapshot(arguments.path)
    problem = _problem(snapshot)
    document = _detailed(snapshot, problem)
    if arguments.json:
        print_json(document)
    else:
        _print_details(snapshot.manifest, document)
    return OK if problem is None else CORRUPT


def _problem(snapshot: Snapshot) -> str | None:
    try:
        snapshot.check_files()
    except CheckpointCorruptError as error:
        return str(error)
    return None


def _detailed(snapshot: Snapshot, problem: str | None) -> dict[str, Any]:
    manifest = snapshot.manifest
    return {
        "path": snapshot.path,
        "kind": "savepoint" if snapshot.is_savepoint else "checkpoint",
        "problem": problem,
        "format": manifest.format,
        "written_by": dict(manifest.written_by),
        **_summary(manifest),
        "operators": _operators(manifest),
        "sources": {uid: len(source.positions) for uid, source in manifest.sources.items()},
        "rows_read": dict(manifest.rows_read),
    }


def _operators(manifest: Manifest) -> list[dict[str, Any]]:
    return [
        {
            "uid": uid,
            "parallelism": vertex.parallelism,
            "max_parallelism": vertex.max_parallelism,
            "states": sorted(manifest.state_types.get(uid, {})),
        }
        for vertex in manifest.vertices.values()
        for uid in vertex.operators
    ]


def _print_details(manifest: Manifest, document: dict[str, Any]) -> None:
    print_facts(
        {
            "Path": document["path"],
            "Kind": document["kind"],
            "Job": f"{manifest.job_name} (job id {manifest.job_id})",
            "Epoch": manifest.epoch,
            "Made": local_time(manifest.created),
            "Format": manifest.format,
            "Written by": ", ".join(map(" ".join, manifest.written_by.items())) or None,
            "Size": f"{in_bytes(document['bytes'])} in {document['files']} files",
            "Sources": _sources(document) or None,
            "Final": _final(manifest),
            "Problem": document["problem"],
        }
    )
    print()
    rows = [
        (one["uid"], one["parallelism"], one["max_parallelism"], ", ".join(one["states"]))
        for one in document["operators"]
    ]
    columns = ("operator", "parallelism", "max", "states")
    print_table(columns, rows, "No operator has state.")


def _final(manifest: Manifest) -> str | None:
    if manifest.drained:
        return "event time was brought to its end for a savepoint"
    return "the job has read its input to the end" if manifest.final else None


def _sources(document: dict[str, Any]) -> str:
    """How far they were read is their own way of counting; Spark's are counted in rows."""
    splits = [f"{uid} ({count} splits)" for uid, count in document["sources"].items()]
    rows = [f"{uid} ({count:,} rows read)" for uid, count in document["rows_read"].items()]
    return ", ".join(splits + rows)


def dispose(arguments: argparse.Namespace) -> int:
    snapshot = open_snapshot(arguments.path)
    if not arguments.yes and snapshot.is_savepoint and not _agreed(snapshot):
        print("Nothing was deleted.", file=sys.stderr)
        return OK
    disposed = dispose_savepoint(arguments.path)
    if arguments.json:
        print_json({"disposed": disposed.path})
    else:
        print(f"deleted {disposed.path}")
    return OK


def _agreed(snapshot: Snapshot) -> bool:
    if not sys.stdin.isatty():
        raise InvalidArgumentError("nobody can be asked here whether to delete it; give --yes")
    manifest = snapshot.manifest
    question = (
        f"Delete the savepoint of job {manifest.job_name!r}, epoch {manifest.epoch}, "
        f"in {snapshot.path}? [y/N] "
    )
    return input(question).strip().lower() in ("y", "yes")
