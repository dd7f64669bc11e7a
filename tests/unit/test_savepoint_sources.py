"""Spark's sources in a savepoint that is made of another, under other uids; without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.driver.spark_checkpoint import export_spark, prepare_spark
from penstock.state_processor.draft import Draft
from penstock.state_processor.sources import copy_sources
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest, SparkSourceName, SubtaskState, VertexState
from penstock.storage.snapshot import Snapshot

FS = LocalFileSystem()
ZERO = '{"logOffset":0}'


def vertex(uid: str) -> VertexState:
    return VertexState((uid,), 1, 128, (SubtaskState(""),))


def test_sources_of_spark_are_renamed_with_what_they_have_read(tmp_path: Path) -> None:
    """One that reads files, and one whose rows lie in the savepoint."""
    names = (SparkSourceName("files", ("0",)), SparkSourceName("frame", ("1",)))
    manifest = Manifest(
        *("job", "Job", 4, 3, 2, f"v1\n{ZERO}\n{ZERO}", 0),
        {"files": vertex("files"), "frame": vertex("frame")},
        spark_sources=names,
        savepoint=True,
    )
    job = CheckpointLayout(str(tmp_path / "job"))
    prepare_spark(FS, job, None, names, named=False)
    for number, path in (("0", "/in/x"), ("1", f"{job.sources}/frame/rows/x")):
        entry = json.dumps({"path": f"file://{path}", "timestamp": 1, "batchId": 0})
        FS.write(f"{job.spark}/sources/{number}/0", f"v1\n{entry}".encode())
    FS.write(f"{job.sources}/frame/rows/x", b"rows")
    saved = CheckpointLayout(str(tmp_path / "savepoint"))
    export_spark(FS, job, manifest, saved.spark)
    FS.copy_tree(job.sources, saved.sources)

    draft = Draft.of(manifest)
    draft.rename_operator("files", "new-files")
    draft.rename_operator("frame", "new-frame")
    made = CheckpointLayout(str(tmp_path / "made"))
    copy_sources(FS, Snapshot(saved.root, FS, saved, manifest), draft, made.root)

    other = CheckpointLayout(str(tmp_path / "other"))
    FS.copy_tree(made.sources, other.sources)
    FS.copy_tree(made.spark, other.seed)
    prepare_spark(FS, other, draft.manifest, draft.manifest.spark_sources, named=False)
    logs = [Path(other.spark, "sources", number, "0").read_text() for number in ("0", "1")]
    assert '"file:///in/x"' in logs[0]
    assert f'"file://{other.sources}/new-frame/rows/x"' in logs[1]
    assert Path(other.sources, "new-frame", "rows", "x").exists()
