"""The job dies at every named point in turn, and its result is that of a run without failure."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CRASHED = 37

TASK_POINTS = ("task.before_segment", "task.after_segment", "store.catch_up")
DRIVER_POINTS = ("driver.before_manifest", "driver.after_manifest", "driver.after_sinks")
IMAGE_POINT = "image.middle"

# More keys than an epoch meets and than memory keeps: every epoch reads the store, which must
# catch up for it, and none spills, which passes the same point.
CATCHING_UP: dict[str, Any] = {
    "records": 3200,
    "keys": 800,
    "config": {"penstock.state.cache-entries": "300"},
}

MakeJob = Callable[..., Any]


def _job_module() -> ModuleType:
    path = Path(__file__).parent / "jobs" / "counting_job.py"
    spec = importlib.util.spec_from_file_location("counting_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_input(directory: Path, records: int, keys: int, rounds: int) -> None:
    """The records of the Python source as Parquet: two files an epoch, a key always in one."""
    module = _job_module()
    directory.mkdir()
    for half in range(2):
        splits = range(half, module.SPLITS, 2)
        rows = [module.records_of_split(split, records, keys) for split in splits]
        for number in range(rounds):
            lines = []
            for row in rows:
                first = len(row) * number // rounds
                lines += row[first : len(row) * (number + 1) // rounds]
            path = directory / f"{number:02d}-{half}.parquet"
            columns = {"key": [key for key, _ in lines], "number": [n for _, n in lines]}
            pq.write_table(pa.table(columns), path)
            # Spark reads files in the order of their times.
            os.utime(path, (1_700_000_000 + 10 * number + half,) * 2)


def test_without_failure(counting_job: MakeJob) -> None:
    job = counting_job()
    run = job.run("--await-image")
    assert run.process.returncode == 0, run.tail()
    job.assert_exact()
    assert run.summary["epochs"] == 11
    assert run.summary["images"] >= 1
    assert len(job.counted().files) == 20


# Without Spark every task is in the driver's process, so each crash ends the script


@pytest.mark.parametrize("occurrence", [1, 3])
@pytest.mark.parametrize("point", [*TASK_POINTS, *DRIVER_POINTS])
def test_crash_on_the_local_executor(counting_job: MakeJob, point: str, occurrence: int) -> None:
    job = counting_job(**CATCHING_UP if point == "store.catch_up" else {})
    crash = f"{point}:{occurrence}"
    first = job.run(crash_at=crash)
    assert first.process.returncode == CRASHED, first.tail()
    last = job.finish(crash_at=crash)
    if occurrence == 3:
        assert last.summary["first"] > 0, "it did not go on but begin again"
    job.assert_exact()


@pytest.mark.parametrize("point", ["task.before_segment", *DRIVER_POINTS[:2]])
def test_crash_with_a_sink_of_files(counting_job: MakeJob, point: str) -> None:
    job = counting_job(sink="files", records=1600)
    crash = f"{point}:3"
    assert job.run(crash_at=crash).process.returncode == CRASHED
    assert list(job.output.glob(".*/*")), "nothing was left to be committed or deleted"
    job.finish(crash_at=crash, tries=1)
    job.assert_exact()
    assert sorted(path.name for path in job.output.iterdir()) == job.counted().files


@pytest.mark.parametrize("point", DRIVER_POINTS)
def test_crash_in_the_last_epoch(counting_job: MakeJob, point: str) -> None:
    """Once it has been committed there is nothing left to do, least of all again."""
    job = counting_job()
    assert job.run(crash_at=f"{point}:11").process.returncode == CRASHED
    last = job.finish(tries=1)
    assert last.summary["epochs"] == (1 if point == "driver.before_manifest" else 0)
    job.assert_exact()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_crash_in_an_image_leaves_the_job_alone(counting_job: MakeJob, backend: str) -> None:
    job = counting_job(config={"state.backend.type": backend})
    run = job.run("--await-image", crash_at=IMAGE_POINT)
    assert run.process.returncode == 0, run.tail()
    assert job.crashed(IMAGE_POINT)
    assert "no image was made" in run.errors
    assert run.summary["images"] >= 1, "it was not tried again"
    job.assert_exact()


@pytest.mark.parametrize("occurrence", [1, 3])
def test_crash_while_a_rocksdb_store_catches_up(counting_job: MakeJob, occurrence: int) -> None:
    crash = f"store.catch_up:{occurrence}"
    job = counting_job(**CATCHING_UP)
    job.config["state.backend.type"] = "rocksdb"
    assert job.run(crash_at=crash).process.returncode == CRASHED
    job.finish(crash_at=crash)
    job.assert_exact()


def test_dying_again_and_again(counting_job: MakeJob) -> None:
    """A crash at every point in a row, some in the recovery from the one before."""
    job = counting_job()
    for point in (*DRIVER_POINTS, *TASK_POINTS, *DRIVER_POINTS):
        crash = f"{point}:2" if job.crashed(point) else point
        run = job.run(crash_at=crash)
        assert run.process.returncode == CRASHED, run.tail()
    job.finish()
    job.assert_exact()


# On Spark a worker's death is survived in the same process


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "crash", [IMAGE_POINT, "task.before_segment", "store.catch_up:2", "task.after_segment:3"]
)
def test_crash_in_a_worker_on_spark(counting_job: MakeJob, crash: str) -> None:
    settings = CATCHING_UP if crash.startswith("store") else {"records": 2800}
    job = counting_job(executor="spark", **settings)
    run = job.run("--await-image", crash_at=crash)
    assert run.process.returncode == 0, run.tail()
    assert job.crashed(crash)
    assert ("no image was made" if crash == IMAGE_POINT else "restarts in") in run.errors
    job.assert_exact()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("source", ["python", "files"])
def test_crashes_of_the_driver_on_spark(counting_job: MakeJob, tmp_path: Path, source: str) -> None:
    """One after the other in one job: each start dies at the next point, in its second epoch."""
    settings: dict[str, Any] = {}
    if source == "files":
        write_input(tmp_path / "input", records=2800, keys=20, rounds=7)
        settings["input"] = tmp_path / "input"
    job = counting_job(executor="spark", records=2800, **settings)
    for point in DRIVER_POINTS:
        run = job.run(crash_at=f"{point}:2")
        assert run.process.returncode == CRASHED, run.tail()
    last = job.finish(tries=2)
    assert last.summary["first"] > 2
    job.assert_exact()
