"""Spark's own checkpoint, made for sources that are others than before, without Spark."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from penstock.driver import spark_checkpoint
from penstock.driver.spark_checkpoint import export_spark, prepare_spark
from penstock.errors import CheckpointCorruptError, CheckpointMismatchError
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.manifest import Manifest, SparkSourceName

FS = LocalFileSystem()
ABOUT = '{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{}}'


def sources(**names: str) -> tuple[SparkSourceName, ...]:
    """Uid → the names of its streams."""
    return tuple(SparkSourceName(uid, tuple(found.split())) for uid, found in names.items())


def epoch(batch: int | None, offsets: str | None, of: tuple[SparkSourceName, ...]) -> Manifest:
    return Manifest("job", "Job", 4, 3, batch, offsets, 0, {}, spark_sources=of)


@pytest.fixture
def layout(tmp_path: Path) -> CheckpointLayout:
    return CheckpointLayout(str(tmp_path / "job"))


def written_by_spark(layout: CheckpointLayout, batch: int, offsets: str, *names: str) -> None:
    """As Spark leaves it while a batch is under way; each file source has read its own file."""
    place = Path(layout.spark)
    version, *lines = offsets.splitlines()
    FS.write(str(place / "offsets" / str(batch)), "\n".join([version, ABOUT, *lines]).encode())
    for name in names:
        entry = {"path": f"file:///in/{name}", "timestamp": 1, "batchId": 0}
        log = place / "sources" / name / "0"
        FS.write(str(log), f"v1\n{json.dumps(entry)}".encode())


def offsets_in(layout: CheckpointLayout, batch: int) -> list[str]:
    return Path(layout.spark_offsets(batch)).read_text().splitlines()[2:]


def log_of(layout: CheckpointLayout, name: str) -> str:
    return (Path(layout.spark) / "sources" / name / "0").read_text()


ZERO = '{"logOffset":0}'


@pytest.mark.parametrize("base", [None, epoch(None, None, ())])
def test_a_batch_that_was_planned_for_other_sources_is_forgotten(layout, base):
    prepare_spark(FS, layout, base, sources(a="0"), named=False)
    written_by_spark(layout, 0, f"v1\n{ZERO}", "0")
    prepare_spark(FS, layout, base, sources(a="0"), named=False)
    assert offsets_in(layout, 0) == [ZERO]
    prepare_spark(FS, layout, base, sources(b="0", a="1"), named=False)
    assert not Path(layout.spark_offsets(0)).exists()
    assert not (Path(layout.spark) / "sources").exists()


def test_streams_of_a_frame_go_by_their_names(layout):
    before = sources(both="a b")
    base = epoch(3, 'v2\na:{"logOffset":0}\nb:{"logOffset":0}', before)
    prepare_spark(FS, layout, None, before, named=True)
    written_by_spark(layout, 3, base.offsets or "", "a", "b")
    prepare_spark(FS, layout, base, sources(both="b new a"), named=True)
    assert offsets_in(layout, 3) == [f"b:{ZERO}", f"a:{ZERO}"]
    assert "file:///in/a" in log_of(layout, "a")
    assert "file:///in/b" in log_of(layout, "b")
    # Once more, though no epoch has been since.
    prepare_spark(FS, layout, base, sources(both="a b"), named=True)
    assert "file:///in/a" in log_of(layout, "a")
    assert "file:///in/b" in log_of(layout, "b")


def test_streams_without_names_go_by_their_order(layout):
    before = sources(x="0", both="1 2")
    base = epoch(3, f"v1\n{ZERO}\n{ZERO}\n{ZERO}", before)
    prepare_spark(FS, layout, None, before, named=False)
    written_by_spark(layout, 3, base.offsets or "", "0", "1", "2")
    prepare_spark(FS, layout, base, sources(both="0 1", x="2"), named=False)
    for name, old in (("0", "1"), ("1", "2"), ("2", "0")):
        assert f"file:///in/{old}" in log_of(layout, name)
    with pytest.raises(CheckpointMismatchError, match="'both' was made of 2 streams and is made"):
        prepare_spark(FS, layout, base, sources(both="0 1 2", x="3"), named=False)


def test_the_process_dies_between_the_renames(layout):
    before = sources(a="0")
    base = epoch(3, f"v1\n{ZERO}", before)
    prepare_spark(FS, layout, None, before, named=False)
    written_by_spark(layout, 3, base.offsets or "", "0")
    Path(layout.spark).rename(layout.spark + ".before")
    prepare_spark(FS, layout, base, sources(b="0", a="1"), named=False)
    assert offsets_in(layout, 3) == ["-", ZERO]
    assert "file:///in/0" in log_of(layout, "1")
    assert not Path(layout.spark + ".before").exists()


def test_without_its_log_a_file_source_is_not_read_anew(layout):
    base = epoch(3, f"v1\n{ZERO}", sources(a="0"))
    with pytest.raises(CheckpointCorruptError, match="the directory is missing"):
        prepare_spark(FS, layout, base, sources(a="0"), named=False)
    # One that says it is for others.
    prepare_spark(FS, layout, None, sources(other="0"), named=False)
    written_by_spark(layout, 3, base.offsets or "", "0")
    with pytest.raises(CheckpointCorruptError, match="nothing of source '0'"):
        prepare_spark(FS, layout, base, sources(a="0"), named=False)


def test_no_savepoint_is_taken_of_what_is_being_replaced(layout, tmp_path, monkeypatch):
    before = sources(a="0")
    base = epoch(3, f"v1\n{ZERO}", before)
    prepare_spark(FS, layout, None, before, named=False)
    written_by_spark(layout, 3, base.offsets or "", "0")
    saved = tmp_path / "savepoint"
    taking = threading.Thread(target=export_spark, args=(FS, layout, base, str(saved)))
    put = spark_checkpoint._put_in_place

    def slowly(fs, new, place):
        taking.start()
        taking.join(0.2)
        assert not saved.exists()
        put(fs, new, place)

    monkeypatch.setattr(spark_checkpoint, "_put_in_place", slowly)
    prepare_spark(FS, layout, base, sources(b="0", a="1"), named=False)
    taking.join(60)
    assert "file:///in/0" in (saved / "sources" / "0" / "0").read_text()
