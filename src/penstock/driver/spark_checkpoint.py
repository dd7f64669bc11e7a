"""Structured Streaming's own checkpoint, made anew where a job does not simply go on from it:
from a savepoint, or with other sources than before.

Ours decides: the manifest says how far each source was read. Spark's directory is written so that
its next batch begins there; of sources that are gone nothing is taken over, and new ones begin
where they are told to.
"""

from __future__ import annotations

import json
import os
import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from penstock.driver.spark_logs import (
    is_log,
    last_log,
    log_entries,
    log_files,
    metadata_of,
    missing_log,
    offset_file,
    offsets_by_name,
    uri_of,
)
from penstock.errors import CheckpointCorruptError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import FileSystem
from penstock.storage.manifest import Manifest, SparkSourceName

CALLS = "penstock_calls"
"""The source that calls Python's, under the uid and the name that it has."""

SourceNames = tuple[SparkSourceName, ...]

# Says, in Spark's directory, which sources it was made for.
_MARKER = "penstock-sources.json"
_METADATA = "batch.json"
# In a savepoint, the place of what sources keep beside the checkpoint.
_SOURCES = "penstock:sources"
_BEFORE = ".before"


def export_spark(fs: FileSystem, layout: CheckpointLayout, manifest: Manifest, target: str) -> None:
    """Write how far Spark's sources were read into a savepoint."""
    origin = _existing(fs, layout)
    if manifest.batch is None:
        return
    if origin is None:
        if any(source.uid != CALLS for source in manifest.spark_sources):
            raise CheckpointCorruptError.of(layout.spark, "the directory is missing")
        return
    offsets = offsets_by_name(manifest.offsets or "v2")
    for name, known in _with_directories(fs, origin, manifest.spark_sources):
        if known in offsets:
            place = os.path.join(target, "sources", known)
            moved = (uri_of(layout.sources), _SOURCES)
            _copy_source(fs, os.path.join(origin, "sources", name), place, offsets[known], moved)
    _copy_state(fs, origin, target, manifest.batch)
    metadata = _metadata(fs, origin, manifest.batch)
    fs.write(os.path.join(target, _METADATA), json.dumps(metadata).encode())
    _mark(fs, target, manifest.spark_sources)


def prepare_spark(
    fs: FileSystem, layout: CheckpointLayout, base: Manifest | None, now: SourceNames, named: bool
) -> None:
    """Have Spark's directory fit the base and the sources that are to be read from now on."""
    if base is None or base.batch is None:
        if not fs.exists(os.path.join(layout.spark, _MARKER)):
            _mark(fs, layout.spark, now)
        return
    if fs.exists(layout.spark) and _marked(fs, layout.spark) == now:
        return
    origin = _existing(fs, layout)
    offsets = offsets_by_name(base.offsets or "v2")
    before = {s.uid: s.names for s in base.spark_sources}
    directories = {} if origin is None else _directories(fs, origin, base.spark_sources)
    new = f"{layout.spark}.new-{secrets.token_hex(4)}"
    found: dict[str, str] = {}
    for source in now:
        old_names = before.get(source.uid, ())
        if len(old_names) != len(source.names):
            continue
        for old, name in zip(old_names, source.names, strict=True):
            if old in offsets:
                found[name] = offsets[old]
                if origin is not None and old in directories:
                    place = os.path.join(origin, "sources", directories[old])
                    to = os.path.join(new, "sources", name)
                    moved = (_SOURCES, uri_of(layout.sources))
                    _copy_source(fs, place, to, offsets[old], moved)
    metadata: Mapping[str, Any] = {} if origin is None else _metadata(fs, origin, base.batch)
    if origin is not None:
        _copy_state(fs, origin, new, base.batch)
    names = [name for source in now for name in source.names]
    text = offset_file(metadata, found, names, named).encode()
    if base.batch > 0:  # Spark looks at the one before as well
        fs.write(os.path.join(new, "offsets", str(base.batch - 1)), text)
    fs.write(os.path.join(new, "offsets", str(base.batch)), text)
    fs.write(os.path.join(new, "commits", str(base.batch)), b'v1\n{"nextBatchWatermarkMs":0}')
    # One that is copied would let this query stop the other.
    fs.write(os.path.join(new, "metadata"), json.dumps({"id": str(uuid.uuid4())}).encode())
    _mark(fs, new, now)
    if fs.exists(layout.spark):
        fs.delete_tree(layout.spark + _BEFORE)
        fs.rename(layout.spark, layout.spark + _BEFORE)
    fs.rename(new, layout.spark)
    fs.delete_tree(layout.spark + _BEFORE)


def _existing(fs: FileSystem, layout: CheckpointLayout) -> str | None:
    """Where Spark's part is: its own directory, what was left of it, or a savepoint's."""
    places = (layout.spark, layout.spark + _BEFORE, layout.seed)
    return next((place for place in places if fs.exists(place)), None)


# Source directories


def _directories(fs: FileSystem, origin: str, recorded: SourceNames) -> dict[str, str]:
    """The name of a source in a manifest → that of its directory, which may have been made for
    the sources of an earlier or a later start."""
    made_for = {s.uid: s.names for s in _marked(fs, origin) or recorded}
    found: dict[str, str] = {}
    for source in recorded:
        names = made_for.get(source.uid, ())
        if len(names) == len(source.names):
            found.update(zip(source.names, names, strict=True))
    return found


def _with_directories(fs: FileSystem, origin: str, recorded: SourceNames) -> list[tuple[str, str]]:
    return [(place, name) for name, place in _directories(fs, origin, recorded).items()]


def _copy_source(
    fs: FileSystem, place: str, target: str, offset: str, moved: tuple[str, str]
) -> None:
    """What a source keeps in Spark's directory; of a file source's log, what the offset covers."""
    last = last_log(offset)
    if last is None:
        fs.copy_tree(place, target)
        return
    names = [name for name in fs.list(place) if is_log(name)]
    missing = missing_log(names, last)
    if missing is not None:
        # Without it, Spark would read the files that it names once more.
        raise CheckpointCorruptError.of(os.path.join(place, missing), "the file is missing")
    texts = [fs.read(os.path.join(place, name)).decode() for name in names]
    entries = log_entries(texts, last)
    before, after = moved
    for entry in entries:
        if entry["path"].startswith(before + "/"):
            entry["path"] = after + entry["path"][len(before) :]
    for name, text in log_files(entries, last).items():
        fs.write(os.path.join(target, name), text.encode())


def _copy_state(fs: FileSystem, origin: str, target: str, batch: int) -> None:
    """The state of Spark's own operators, if a frame has some: its versions up to the batch."""
    state = os.path.join(origin, "state")
    for directory, _, names in os.walk(state):
        for name in names:
            number = name.split(".")[0].split("_")[0]
            if not number.isdigit() or int(number) <= batch + 1:
                path = os.path.join(directory, name)
                fs.copy(path, os.path.join(target, "state", os.path.relpath(path, state)))


# Metadata


def _metadata(fs: FileSystem, origin: str, batch: int) -> dict[str, Any]:
    """Clock and settings of a batch, or of the newest that Spark has kept."""
    exported = os.path.join(origin, _METADATA)
    if fs.exists(exported):
        found: dict[str, Any] = json.loads(fs.read(exported))
        return found
    offsets = os.path.join(origin, "offsets")
    kept = sorted((int(name) for name in fs.list(offsets) if name.isdigit()), reverse=True)
    for number in [n for n in (batch,) if n in kept] + kept:
        return metadata_of(fs.read(os.path.join(offsets, str(number))).decode())
    return {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}


def _mark(fs: FileSystem, place: str, sources: SourceNames) -> None:
    recorded = [[source.uid, list(source.names)] for source in sources]
    fs.write(os.path.join(place, _MARKER), json.dumps(recorded).encode())


def _marked(fs: FileSystem, place: str) -> SourceNames | None:
    path = os.path.join(place, _MARKER)
    if not fs.exists(path):
        return None
    return tuple(SparkSourceName(uid, tuple(names)) for uid, names in json.loads(fs.read(path)))
