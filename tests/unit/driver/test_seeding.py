"""Which snapshot a job goes on from anyway, and which one it began from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.driver.seeding import (
    has_begun_from,
    is_newest_of,
    seed,
    snapshot_id,
    without_sources,
)
from penstock.errors import CheckpointMismatchError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest, Origin
from penstock.storage.snapshot import Snapshot

FS = LocalFileSystem()
NEWEST = Manifest("job", "Job", 5, 4, None, None, 0, {})


def snapshot(root: Path, manifest: Manifest, data: bytes = b"{}") -> Snapshot:
    return Snapshot(str(root), FS, CheckpointLayout(str(root)), manifest, data)


@pytest.mark.parametrize(
    ("directory", "manifest", "newest"),
    [
        ("job", NEWEST, True),
        ("link", NEWEST, True),
        ("other", NEWEST, False),
        ("job", replace(NEWEST, epoch=4), False),
        ("job", replace(NEWEST, savepoint=True), False),
    ],
    ids=["its own", "by a link", "another job's", "an older one", "a savepoint"],
)
def test_only_its_own_newest_epoch_is_gone_on_from_anyway(
    tmp_path: Path, directory: str, manifest: Manifest, newest: bool
) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "job")
    log = CheckpointLog(FS, CheckpointLayout(str(tmp_path / "job")))
    assert is_newest_of(log, NEWEST, snapshot(tmp_path / directory, manifest)) is newest
    assert not is_newest_of(log, None, snapshot(tmp_path / directory, manifest))


def test_a_job_knows_what_it_began_from_by_its_bytes(tmp_path: Path) -> None:
    saved = snapshot(tmp_path / "savepoint", replace(NEWEST, savepoint=True))
    begun = replace(NEWEST, origin=Origin(snapshot_id(saved), saved.path, "fork"))
    assert has_begun_from(begun, saved)
    assert has_begun_from(begun, replace(saved, path="moved"))
    assert not has_begun_from(begun, replace(saved, data=b"{ }"))
    assert not has_begun_from(NEWEST, saved)
    assert not has_begun_from(None, saved)


def test_a_source_to_be_reset_must_be_known(tmp_path: Path) -> None:
    log = CheckpointLog(FS, CheckpointLayout(str(tmp_path / "job")))
    saved = snapshot(tmp_path / "savepoint", replace(NEWEST, savepoint=True))
    with pytest.raises(CheckpointMismatchError, match="numbres"):
        seed(log, None, saved, "job", "Job", frozenset({"numbres"}))
    assert not (tmp_path / "job").exists()


def test_rows_that_a_source_has_read_are_forgotten_with_it() -> None:
    read = replace(NEWEST, rows_read={"anew": 3, "on": 4})
    assert without_sources(read, frozenset({"anew"})).rows_read == {"on": 4}
