"""The same for jobs that read Spark's DataFrames: what Spark keeps is part of the savepoint."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from gated import await_true, written
from trees import tree

from penstock.common.serialization import Encoder
from penstock.datastream.connectors.file_system import FileSink
from penstock.errors import CheckpointCorruptError, CheckpointUnwritableError
from penstock.storage.snapshot import open_snapshot

pytestmark = pytest.mark.spark

START = "execution.state-recovery.path"


@pytest.fixture
def job(spark: Any, make_env: Any, tmp_path: Path) -> Any:
    """Starts a job that counts the numbers in a folder of text files."""
    (tmp_path / "in").mkdir()

    def start(settings: dict[str, str] | None = None) -> Any:
        env = make_env(
            {
                "penstock.executor": "spark",
                "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
                "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
                "penstock.job-id": "job",
                **(settings or {}),
            }
        )
        frame = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
        keyed = env.from_spark(frame).uid("texts").map(lambda r: (0, 1)).key_by(lambda v: v[0])
        counted = keyed.reduce(lambda a, b: (0, a[1] + b[1])).uid("count").map(lambda v: str(v[1]))
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        counted.sink_to(sink.build()).uid("files")
        return env.execute_async("texts")

    return start


def put(tmp_path: Path, number: int) -> None:
    """One more file; then the counts are those up to its number."""
    temporary = tmp_path / f"{number}.txt"
    temporary.write_text("line\n")
    temporary.rename(tmp_path / "in" / temporary.name)
    await_counts(tmp_path, number)


def await_counts(tmp_path: Path, upto: int) -> None:
    await_true(lambda: len(written(tmp_path / "out")) >= upto)
    assert sorted(map(int, written(tmp_path / "out"))) == list(range(1, upto + 1))


def test_damaged_idle_and_drained_in_vain(
    job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = job()
    # No batch may ever come: the folder is empty.
    blank = running.trigger_savepoint().result(60)
    assert open_snapshot(blank).manifest.epoch == 0
    put(tmp_path, 1)
    put(tmp_path, 2)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointUnwritableError):
        running.stop_with_savepoint(True, f"{tmp_path}/file/savepoints").result(60)
    put(tmp_path, 3)  # the job goes on, though it was drained
    path = Path(running.stop_with_savepoint(False).result(60))

    of_spark = sorted(file for file in tree(path) if file.startswith("spark/"))
    assert len(of_spark) >= 5  # a log of three files, and what it is for
    for file in of_spark:
        for damage in (os.unlink, lambda path: path.write_bytes(path.read_bytes()[::-1])):
            copy = tmp_path / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(path, copy)
            damage(copy / file)
            damaged = job({START: str(copy), "penstock.trust-pickle": "true"})
            with pytest.raises(CheckpointCorruptError, match=f"{copy / file} is damaged"):
                damaged.get_job_execution_result().result(60)
    running = job({START: str(path)})
    put(tmp_path, 4)
    running.cancel().result(60)


def test_a_checkpoint_without_what_spark_keeps(job: Any, tmp_path: Path) -> None:
    """It says how far the folder was read, but not which files were."""
    retention = "execution.checkpointing.externalized-checkpoint-retention"
    running = job({retention: "RETAIN_ON_CANCELLATION"})
    put(tmp_path, 1)
    running.cancel().result(60)
    root = tmp_path / "checkpoints" / "job"
    for part in ("spark/sources/0/0", "spark"):
        (path,) = root.glob(part) if part == "spark" else root.glob("spark/sources/*/0")
        kept = path.rename(tmp_path / "kept")
        other = job({START: str(root), "penstock.job-id": "other"})
        with pytest.raises(CheckpointCorruptError, match=f"{path} is damaged: .* is missing"):
            other.get_job_execution_result().result(60)
        kept.rename(path)
    assert written(tmp_path / "out") == ["1"]
