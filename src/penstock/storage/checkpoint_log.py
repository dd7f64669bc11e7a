"""Writing manifests, finding the newest, and dropping what no retained one needs."""

from __future__ import annotations

import os

from penstock.errors import CheckpointCorruptError, CheckpointError, CheckpointMismatchError
from penstock.storage.checkpoint_layout import (
    STATE,
    CheckpointLayout,
    is_unfinished,
    parse_epoch,
    parse_fork,
    parse_state_file,
)
from penstock.storage.filesystem import FileSystem
from penstock.storage.manifest import Manifest


class CheckpointLog:
    """The manifests of one job."""

    def __init__(self, fs: FileSystem, layout: CheckpointLayout) -> None:
        self.fs = fs
        self.layout = layout

    def epochs(self) -> list[int]:
        """The epochs that have a manifest, oldest first."""
        if not self.fs.exists(self.layout.epochs):
            return []
        found = (parse_epoch(name) for name in self.fs.list(self.layout.epochs))
        return sorted(epoch for epoch in found if epoch is not None)

    def read(self, epoch: int) -> Manifest:
        return Manifest.from_bytes(self.layout.manifest(epoch), self.read_bytes(epoch))

    def read_bytes(self, epoch: int) -> bytes:
        path = self.layout.manifest(epoch)
        try:
            return self.fs.read(path)
        except FileNotFoundError:
            raise CheckpointCorruptError.of(path, "it is not there") from None

    def newest(self, job_id: str) -> Manifest | None:
        epochs = self.epochs()
        if not epochs:
            return None
        manifest = self.read(epochs[-1])
        if manifest.job_id != job_id:
            raise CheckpointMismatchError.other_job(
                self.layout.root, expected=job_id, found=manifest.job_id
            )
        return manifest

    def commit(self, manifest: Manifest) -> None:
        """Make the epoch the newest. FileExistsError if another driver was there first."""
        self.fs.create_exclusive(self.layout.manifest(manifest.epoch), manifest.to_bytes())

    def remove_leftovers(self) -> None:
        """Drop what earlier runs have left and no run needs: temporary files, their plans, tables
        of side inputs, state files of attempts that came to nothing.

        Call it with the lease held, before the plan of this run is written. Tasks of an earlier run
        that are still under way fail by it; nothing waits for them.
        """
        self.fs.delete_temporaries(self.layout.root)
        for name in self.fs.list(self.layout.plans):
            self.fs.delete(os.path.join(self.layout.plans, name))
        for name in filter(is_unfinished, self.fs.list(self.layout.root)):
            self.fs.delete_tree(os.path.join(self.layout.root, name))
        self.fs.delete_tree(self.layout.side_inputs)
        try:
            manifests = [self.read(epoch) for epoch in self.epochs()]
        except CheckpointError:
            return  # whoever needs the damaged one shall be told; until then nothing is lost
        self._drop_state({file.path for manifest in manifests for file in manifest.files()})

    def retire(self, retained: int, keep: set[str]) -> list[str]:
        """Drop all manifests but the newest few, and what none of those names: state files, and
        all that belongs to an earlier beginning of the job.

        Files of the newest epoch or later are left alone, whoever wrote them: an attempt that is
        under way has not been acknowledged yet. `keep` names further files that are in use.
        """
        epochs = self.epochs()
        if not epochs:
            return []
        retained = max(retained, 1)
        kept, dropped = epochs[-retained:], epochs[:-retained]
        # Read first: if one to be kept is damaged, the older ones are still there.
        manifests = [self.read(epoch) for epoch in kept]
        for epoch in dropped:
            for path in (self.layout.manifest, self.layout.committed, self.layout.tried):
                self.fs.delete(path(epoch))
        self._drop_beginnings({m.origin.fork if m.origin else "" for m in manifests})
        needed = {file.path for manifest in manifests for file in manifest.files()}
        return self._drop_state(needed | keep, before=kept[-1])

    def _drop_state(self, needed: set[str], before: int | None = None) -> list[str]:
        removed = []
        for name in self.fs.list(self.layout.state):
            parsed = parse_state_file(name)
            path = os.path.join(STATE, name)
            if parsed is None or path in needed or (before is not None and parsed.epoch >= before):
                continue
            self.fs.delete(self.layout.full(path))
            removed.append(path)
        return removed

    def _drop_beginnings(self, kept: set[str]) -> None:
        """Drop what was kept for the sources since the job began from some savepoint, when no epoch
        of that time is left."""
        for name in self.fs.list(self.layout.root):
            fork = parse_fork(name)
            if fork is not None and fork not in kept and fork != self.layout.fork:
                self.fs.delete_tree(os.path.join(self.layout.root, name))
