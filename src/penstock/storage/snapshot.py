"""An epoch as others may use it: a savepoint, or a checkpoint that a job has kept.

A savepoint is a directory of its own, laid out as a job's directory is, with one manifest at the
top::

    <savepoint>/
      savepoint.json      the manifest; it is written last, so without it there is no savepoint
      state/              an image of each subtask's state, records in loops
      sources/<name>/     what sources keep beside the checkpoint
      spark/              how far Spark's sources were read
      signature.json      tells the user who wrote it that nobody has changed it

Nothing in it names a place outside of it, so that it can be moved and copied.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from penstock.errors import CheckpointCorruptError, SnapshotNotFoundError
from penstock.storage.checkpoint_layout import CheckpointLayout, parse_epoch
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.contents import check_sizes
from penstock.storage.filesystem import FileSystem, filesystem_for
from penstock.storage.manifest import Manifest

SAVEPOINT_MANIFEST = "savepoint.json"


@dataclass(frozen=True)
class Snapshot:
    """One epoch of a job, found by its path."""

    path: str
    """As one may give it to `open_snapshot`: a savepoint's directory, a checkpoint's manifest."""
    fs: FileSystem
    layout: CheckpointLayout
    """Where the files are that the manifest names."""
    manifest: Manifest
    data: bytes = field(default=b"", repr=False)
    """The manifest as it was read."""

    @property
    def is_savepoint(self) -> bool:
        return self.manifest.savepoint

    def check_files(self) -> None:
        """Refuse a snapshot of which files are missing or cut off; their content is checked when
        they are read."""
        if self.is_savepoint:
            check_sizes(self.layout.root, self.manifest.contents)
            return
        for file in self.manifest.files():
            path = self.layout.full(file.path)
            try:
                size = self.fs.size(path)
            except FileNotFoundError:
                raise CheckpointCorruptError.of(path, "the file is missing") from None
            if size != file.bytes:
                raise CheckpointCorruptError.of(path, f"it has {size} bytes, not {file.bytes}")
        for uid, vertex in self.manifest.vertices.items():
            path = self.layout.splits(uid)
            of_source = vertex.operators[:1] and vertex.operators[0] in self.manifest.sources
            if of_source and not self.fs.exists(path):
                raise CheckpointCorruptError.of(path, "the file is missing")


def open_snapshot(path: str) -> Snapshot:
    """The savepoint or checkpoint at a path.

    That is a savepoint's directory or its manifest; a job's directory, whose newest epoch is meant;
    or one of the manifests in a job's `epochs`.
    """
    fs, place = filesystem_for(path)
    name = os.path.basename(place)
    if name == SAVEPOINT_MANIFEST:
        return _savepoint(fs, os.path.dirname(place))
    if fs.exists(os.path.join(place, SAVEPOINT_MANIFEST)):
        return _savepoint(fs, place)
    directory, epoch = os.path.dirname(place), parse_epoch(name)
    if epoch is not None and os.path.basename(directory) == "epochs":
        return _checkpoint(fs, os.path.dirname(directory), epoch)
    epochs = CheckpointLog(fs, CheckpointLayout(place)).epochs()
    if epochs:
        return _checkpoint(fs, place, epochs[-1])
    if fs.exists(os.path.join(place, "state")):
        raise SnapshotNotFoundError.incomplete(path, SAVEPOINT_MANIFEST)
    raise SnapshotNotFoundError.at(path, fs.exists(place))


def _savepoint(fs: FileSystem, root: str) -> Snapshot:
    path = os.path.join(root, SAVEPOINT_MANIFEST)
    try:
        data = fs.read(path)
    except FileNotFoundError:
        raise SnapshotNotFoundError.at(root, fs.exists(root)) from None
    except OSError as error:
        raise CheckpointCorruptError.of(path, f"{type(error).__name__}: {error}") from None
    manifest = Manifest.from_bytes(path, data)
    # A checkpoint is trusted by its owner, a savepoint is not: it must not pass for the other.
    if not manifest.savepoint:
        raise CheckpointCorruptError.of(path, "it is not the manifest of a savepoint")
    listed = manifest.contents
    unlisted = [f.path for f in manifest.files() if f.path not in listed]
    if unlisted:
        raise CheckpointCorruptError.of(path, f"it does not list {unlisted[0]}")
    return Snapshot(root, fs, CheckpointLayout(root), manifest, data)


def _checkpoint(fs: FileSystem, root: str, epoch: int) -> Snapshot:
    layout = CheckpointLayout(root)
    path = layout.manifest(epoch)
    try:
        data = fs.read(path)
    except FileNotFoundError:  # perhaps it has been retired
        raise SnapshotNotFoundError.at(path, exists=False) from None
    manifest = Manifest.from_bytes(path, data)
    if manifest.savepoint:
        raise CheckpointCorruptError.of(path, "it is the manifest of a savepoint")
    if manifest.origin is not None:
        layout = replace(layout, fork=manifest.origin.fork)
    return Snapshot(path, fs, layout, manifest, data)
