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
import threading
import uuid
from collections.abc import Iterable, Mapping
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
from penstock.errors import CheckpointCorruptError, CheckpointMismatchError
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
# A savepoint must not be taken of a directory that is being replaced.
_replacing = threading.RLock()


def export_spark(fs: FileSystem, layout: CheckpointLayout, manifest: Manifest, target: str) -> None:
    """Write how far Spark's sources were read into a savepoint."""
    if manifest.batch is not None:
        with _replacing:
            _export(fs, layout, manifest, manifest.batch, target)


def _export(
    fs: FileSystem, layout: CheckpointLayout, manifest: Manifest, batch: int, target: str
) -> None:
    origin = _existing(fs, layout)
    if origin is None:
        _check_dispensable(layout, manifest)
        return
    offsets = offsets_by_name(manifest.offsets or "v2")
    for known, name in _directories(fs, origin, manifest.spark_sources).items():
        if known in offsets:
            place = os.path.join(target, "sources", known)
            moved = (uri_of(layout.sources), _SOURCES)
            _copy_source(fs, os.path.join(origin, "sources", name), place, offsets[known], moved)
    _copy_state(fs, origin, target, batch)
    metadata = _metadata(fs, origin, batch)
    fs.write(os.path.join(target, _METADATA), json.dumps(metadata).encode())
    mark_sources(fs, target, manifest.spark_sources)


def prepare_spark(
    fs: FileSystem, layout: CheckpointLayout, base: Manifest | None, now: SourceNames, named: bool
) -> None:
    """Have Spark's directory fit the base and the sources that are to be read from now on."""
    if fs.exists(layout.spark) and _marked(fs, layout.spark) == now:
        return
    with _replacing:
        if base is None or base.batch is None:
            # Of what Spark may have planned for other sources, nothing has been read.
            fs.delete_tree(layout.spark)
            mark_sources(fs, layout.spark, now)
        else:
            new = f"{layout.spark}.new-{secrets.token_hex(4)}"
            _make(fs, layout, base, base.batch, now, named, new)
            _put_in_place(fs, new, layout.spark)


def _make(
    fs: FileSystem,
    layout: CheckpointLayout,
    base: Manifest,
    batch: int,
    now: SourceNames,
    named: bool,
    new: str,
) -> None:
    origin = _existing(fs, layout)
    if origin is None:
        _check_dispensable(layout, base)
        origin = layout.spark
    offsets = offsets_by_name(base.offsets or "v2")
    directories = _directories(fs, origin, base.spark_sources)
    found: dict[str, str] = {}
    for old, name in _same_sources(base.spark_sources, now):
        if old in offsets:
            found[name] = offsets[old]
            if old not in directories:
                raise CheckpointCorruptError.of(origin, f"it has nothing of source {name!r}")
            place = os.path.join(origin, "sources", directories[old])
            to = os.path.join(new, "sources", name)
            _copy_source(fs, place, to, offsets[old], (_SOURCES, uri_of(layout.sources)))
    _copy_state(fs, origin, new, batch)
    names = [name for source in now for name in source.names]
    text = offset_file(_metadata(fs, origin, batch), found, names, named).encode()
    if batch > 0:  # Spark looks at the one before as well
        fs.write(os.path.join(new, "offsets", str(batch - 1)), text)
    fs.write(os.path.join(new, "offsets", str(batch)), text)
    fs.write(os.path.join(new, "commits", str(batch)), b'v1\n{"nextBatchWatermarkMs":0}')
    # One that is copied would let this query stop the other.
    fs.write(os.path.join(new, "metadata"), json.dumps({"id": str(uuid.uuid4())}).encode())
    mark_sources(fs, new, now)


def _put_in_place(fs: FileSystem, new: str, place: str) -> None:
    """Should the process die meanwhile, the one that was there is still found."""
    before = place + _BEFORE
    if fs.exists(place):
        fs.delete_tree(before)
        fs.rename(place, before)
    fs.rename(new, place)
    fs.delete_tree(before)


def _existing(fs: FileSystem, layout: CheckpointLayout) -> str | None:
    """Where Spark's part is: its own directory, what was left of it, or a savepoint's."""
    places = (layout.spark, layout.spark + _BEFORE, layout.seed)
    return next((place for place in places if fs.exists(place)), None)


def _check_dispensable(layout: CheckpointLayout, manifest: Manifest) -> None:
    """Calls of Python's sources can do without Spark's part; other sources cannot."""
    if any(source.uid != CALLS for source in manifest.spark_sources):
        raise CheckpointCorruptError.of(layout.spark, "the directory is missing")


# Source directories


def _directories(fs: FileSystem, origin: str, recorded: SourceNames) -> dict[str, str]:
    """The name of a source in a manifest → that of its directory, which may have been made for
    the sources of an earlier or a later start."""
    made_for = _marked(fs, origin)
    return dict(_same_sources(recorded, recorded if made_for is None else made_for))


def _same_sources(before: SourceNames, after: SourceNames) -> list[tuple[str, str]]:
    """Which of Spark's sources are the same: their names then and now."""
    known = {source.uid: source.names for source in before}
    return [
        pair
        for source in after
        for pair in _same_names(source.uid, known.get(source.uid, ()), source.names)
    ]


def _same_names(
    uid: str, before: tuple[str, ...], after: tuple[str, ...]
) -> Iterable[tuple[str, str]]:
    """Within one frame sources go by the names that they were given, else by their order."""
    stayed: set[str] = set()
    if not _are_numbers(before) and not _are_numbers(after):
        stayed = set(before) & set(after)
    others = [name for name in before if name not in stayed]
    new = [name for name in after if name not in stayed]
    if others and new and len(others) != len(new):
        raise CheckpointMismatchError.other_streams(uid, len(before), len(after))
    return [*((name, name) for name in after if name in stayed), *zip(others, new, strict=False)]


def _are_numbers(names: tuple[str, ...]) -> bool:
    return all(name.isdigit() for name in names)


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


def rename_rows(fs: FileSystem, place: str, renamed: Mapping[str, str]) -> None:
    """Have the logs in a savepoint name the rows of batch frames by other vertices."""
    sources = os.path.join(place, "sources")
    for source in fs.list(sources):
        for name in filter(is_log, fs.list(os.path.join(sources, source))):
            path = os.path.join(sources, source, name)
            before = after = fs.read(path).decode()
            for old, new in renamed.items():
                after = after.replace(f'"{_SOURCES}/{old}/', f'"{_SOURCES}/{new}/')
            if after != before:
                fs.write(path, after.encode())


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


def mark_sources(fs: FileSystem, place: str, sources: SourceNames) -> None:
    """Note in Spark's directory, or a savepoint's part for it, whose its sources are."""
    recorded = [[source.uid, list(source.names)] for source in sources]
    fs.write(os.path.join(place, _MARKER), json.dumps(recorded).encode())


def _marked(fs: FileSystem, place: str) -> SourceNames | None:
    path = os.path.join(place, _MARKER)
    if not fs.exists(path):
        return None
    return tuple(SparkSourceName(uid, tuple(names)) for uid, names in json.loads(fs.read(path)))
