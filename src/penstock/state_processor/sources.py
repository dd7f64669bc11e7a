"""What sources keep beside a savepoint's state, taken into one that is made of it."""

from __future__ import annotations

from penstock.driver.spark_checkpoint import export_spark, mark_sources, rename_rows
from penstock.state_processor.draft import Draft
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import FileSystem
from penstock.storage.snapshot import Snapshot


def copy_sources(fs: FileSystem, snapshot: Snapshot, draft: Draft, root: str) -> None:
    """Splits, and how far Spark has read its own sources, under the uids that they will have."""
    before, after = snapshot.layout, CheckpointLayout(root)
    renamed = {old: new for new, old in draft.vertices.items()}
    for name in fs.list(before.sources):
        if name not in draft.removed_sources:
            fs.copy_tree(before.source(name), after.source(renamed.get(name, name)))
    if draft.manifest.batch is None:
        return  # nothing that Spark would go on from
    if snapshot.is_savepoint:
        fs.copy_tree(before.spark, after.spark)
    else:
        export_spark(fs, before, snapshot.manifest, after.spark)
    rename_rows(fs, after.spark, {old: new for old, new in renamed.items() if old != new})
    mark_sources(fs, after.spark, draft.manifest.spark_sources)
