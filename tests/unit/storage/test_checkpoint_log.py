"""The log of manifests: the newest counts, and nothing that a retained one needs is dropped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import (
    CheckpointCorruptError,
    CheckpointFormatError,
    CheckpointMismatchError,
)
from penstock.storage.checkpoint_layout import CheckpointLayout, image_name, segment_path
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import ChainLink, Manifest, Origin, SubtaskState, VertexState


@pytest.fixture
def log(tmp_path: Path) -> CheckpointLog:
    return CheckpointLog(LocalFileSystem(), CheckpointLayout(str(tmp_path / "job")))


def manifest(epoch: int, *paths: str, job_id: str = "job") -> Manifest:
    files = tuple(FileInfo(p, 1, 1, "00", "segment", (("op", "s"),), (0, 127)) for p in paths)
    subtask = SubtaskState("aa", (ChainLink(f"{epoch}-aa", files),))
    vertices = {"v": VertexState(("op",), 1, 128, (subtask,))}
    return Manifest(job_id, "Job", epoch, None, None, None, 0, vertices)


def segment(epoch: int, token: str = "aa") -> str:
    return segment_path(epoch, "v", 0, token)


def write(log: CheckpointLog, *paths: str) -> None:
    for path in paths:
        log.fs.write(log.layout.full(path), b"x")


def left(log: CheckpointLog) -> set[str]:
    return {f"state/{name}" for name in log.fs.list(log.layout.state)}


def test_an_empty_directory_has_no_newest(log):
    assert log.newest("job") is None
    assert log.epochs() == []
    assert log.retire(1, set()) == []


def test_leftovers_of_earlier_runs_are_removed(log):
    kept = [segment(1), "epochs/1.json.claim", "sources/s/splits", "spark/.0.ab12.tmp"]
    write(log, *kept, "plans/ab12.plan", "side/0.table", segment(1, "failed"), segment(2))
    log.commit(manifest(1, segment(1)))
    for path in (
        log.layout.manifest(2),
        log.layout.full(segment(2)),
        log.layout.source("s") + "/x",
    ):
        crash_in_write(path)
    root = Path(log.layout.root)
    assert len(list(root.rglob(".*.tmp"))) == 4
    log.remove_leftovers()
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {*kept, "epochs/1.json"}


def crash_in_write(path: str) -> None:
    """As a writer that is killed before it can give the file its name."""
    code = f"""
import os
from penstock.storage import filesystem
os.replace = lambda *paths: os._exit(37)
filesystem.LocalFileSystem().write({path!r}, b"data")
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 37


def test_the_newest_is_by_number(log):
    for epoch in (9, 10, 2):
        log.commit(manifest(epoch))
    write(log, "epochs/.11.json.ab12.tmp", "epochs/12.json.claim", "epochs/notes.txt")
    assert log.epochs() == [2, 9, 10]
    assert log.newest("job") == manifest(10)
    assert log.read(2) == manifest(2)


def test_only_one_can_commit_an_epoch(log):
    log.commit(manifest(1, "first"))
    with pytest.raises(FileExistsError):
        log.commit(manifest(1, "second"))
    assert log.newest("job") == manifest(1, "first")


def test_another_job_is_refused(log):
    log.commit(manifest(1, job_id="theirs"))
    with pytest.raises(CheckpointMismatchError, match="belongs to job 'theirs', not to 'job'"):
        log.newest("job")


def test_a_damaged_newest_is_not_passed_over(log):
    log.commit(manifest(1))
    log.fs.write(log.layout.manifest(2), b'{"format": 1, "epo')
    with pytest.raises(CheckpointCorruptError, match=r"epochs/2\.json is damaged"):
        log.newest("job")


def test_a_newer_format_is_refused(log):
    log.fs.write(log.layout.manifest(2), json.dumps({"format": 99}).encode())
    with pytest.raises(CheckpointFormatError, match="format version 99"):
        log.newest("job")


def test_a_missing_manifest_is_damage(log):
    with pytest.raises(CheckpointCorruptError, match="not there"):
        log.read(7)


def test_retiring_drops_what_no_kept_manifest_names(log):
    write(log, *(segment(epoch) for epoch in (1, 2, 3, 4)), segment(2, "dead"))
    image = f"state/{image_name(3, 'v', 0, 'aa')}-0.parquet"
    write(log, image)
    for epoch in (1, 2):
        log.commit(manifest(epoch, *(segment(e) for e in range(1, epoch + 1))))
    log.commit(manifest(3, image))
    log.commit(manifest(4, image, segment(4)))
    assert set(log.retire(2, keep=set())) == {
        segment(1),
        segment(2),
        segment(2, "dead"),
        segment(3),
    }
    assert log.epochs() == [3, 4]
    assert left(log) == {image, segment(4)}


def test_files_of_the_newest_epoch_and_later_are_left_alone(log):
    mine, others, ahead = segment(5), segment(5, "other"), segment(6, "busy")
    write(log, mine, others, ahead)
    log.commit(manifest(5, mine))
    assert log.retire(1, keep=set()) == []
    assert left(log) == {mine, others, ahead}


def test_files_in_use_and_foreign_files_are_left_alone(log):
    merged, foreign = segment(1, "merged"), "state/README"
    write(log, merged, foreign)
    log.commit(manifest(9))
    assert log.retire(1, keep={merged}) == []
    assert left(log) == {merged, foreign}


@pytest.mark.parametrize("retained", [0, -1])
def test_the_newest_is_always_retained(log, retained):
    for epoch in (1, 2, 3):
        log.commit(manifest(epoch))
    log.retire(retained, set())
    assert log.epochs() == [3]


def test_nothing_is_dropped_if_a_manifest_to_be_kept_is_damaged(log):
    write(log, segment(1))
    log.commit(manifest(1, segment(1)))
    log.fs.write(log.layout.manifest(2), b"{")
    with pytest.raises(CheckpointCorruptError):
        log.retire(1, set())
    assert log.epochs() == [1, 2]
    assert left(log) == {segment(1)}


@settings(max_examples=40)
@given(
    named=st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=8),
    retained=st.integers(1, 4),
)
def test_every_retained_epoch_keeps_its_files(tmp_path_factory, named, retained):
    """Epoch e names some segments of epochs up to its own."""
    root = tmp_path_factory.mktemp("log")
    log = CheckpointLog(LocalFileSystem(), CheckpointLayout(str(root)))
    for epoch, older in enumerate(named):
        paths = [segment(e) for e in older if e <= epoch]
        write(log, *paths)
        log.commit(manifest(epoch, *paths))
    log.retire(retained, set())
    assert log.epochs() == list(range(len(named)))[-retained:]
    needed = {file.path for epoch in log.epochs() for file in log.read(epoch).files()}
    newest = len(named) - 1
    assert needed <= left(log)
    assert left(log) - needed <= {segment(newest)}
    assert log.retire(retained, set()) == []


def test_what_is_kept_for_the_sources_goes_with_the_epochs_of_its_time(log):
    """The job began, began from one savepoint, and from another."""
    forks = {1: None, 2: "aa-2", 3: "aa-2", 4: "bb-4", 5: "bb-4"}
    for epoch, fork in forks.items():
        origin = None if fork is None else Origin("00", "/savepoint", fork)
        log.commit(replace(manifest(epoch), origin=origin))
    of_all = ["state/x", "side/x", "plans/x", "sparkling/x", "sources.md"]
    of_forks = {
        "": ["spark/offsets/0", "sources/s/splits"],
        "aa-2": ["spark-aa-2/offsets/0", "sources-aa-2/s/splits", "seed-aa-2/batch.json"],
        "bb-4": ["spark-bb-4/x", "spark-bb-4.before/x", "sources-bb-4/s", "seed-bb-4/x"],
        "cc-5": ["sources-cc-5/s/splits", "seed-cc-5/x"],  # a start that came to nothing
    }
    write(log, *of_all, *(path for paths in of_forks.values() for path in paths))
    log = CheckpointLog(log.fs, replace(log.layout, fork="bb-4"))

    def left() -> set[str]:
        return {
            fork for fork, paths in of_forks.items() if log.fs.exists(log.layout.full(paths[0]))
        }

    log.retire(5, set())
    assert left() == {"", "aa-2", "bb-4"}
    log.retire(3, set())
    assert left() == {"aa-2", "bb-4"}
    log.retire(1, set())
    for fork, paths in of_forks.items():
        for path in paths:
            assert log.fs.exists(log.layout.full(path)) == (fork == "bb-4"), path
    assert all(log.fs.exists(log.layout.full(path)) for path in of_all)


def test_a_directory_of_spark_s_that_was_not_finished_is_removed_at_the_start(log):
    write(log, "spark-aa-2.new-12ab/x", "spark.new-12ab/x", "spark.before/x", "spark-aa-2/x")
    log.remove_leftovers()
    assert log.fs.list(log.layout.root) == ["spark-aa-2", "spark.before"]
