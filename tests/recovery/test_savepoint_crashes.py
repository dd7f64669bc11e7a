"""The driver dies while it writes a savepoint, or while a job begins from one."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SnapshotNotFoundError
from penstock.storage.snapshot import open_snapshot

MakeJob = Callable[..., Any]

CRASHED = 37
START = "execution.state-recovery.path"


def savepoint_of(run: Any) -> str:
    lines = [line for line in run.output.splitlines() if line.startswith("savepoint ")]
    assert len(lines) == 1
    return str(lines[0].partition(" ")[2])


def is_whole(path: Path) -> bool:
    try:
        snapshot = open_snapshot(str(path))
    except SnapshotNotFoundError:
        return False
    snapshot.check_files()
    return True


def assert_goes_on(first: Any, second: Any) -> None:
    """The second began where the savepoint was, and all counts are right in both."""
    first.assert_exact()
    rows = second.counted().rows
    assert 0 < len(rows) < first.records
    begun = Counter(key for key, *_ in rows)
    each = first.records // first.keys
    after = [(key, n, n + 1, 1) for key, count in begun.items() for n in range(each - count, each)]
    assert sorted(rows) == sorted(after)


def test_killed_while_a_savepoint_is_written(counting_job: MakeJob, tmp_path: Path) -> None:
    savepoints = tmp_path / "savepoints"
    job = counting_job()
    crash = "savepoint.before_manifest"
    assert job.run("--savepoint", str(savepoints), crash_at=crash).process.returncode == CRASHED
    [half] = savepoints.iterdir()
    assert list(half.glob("state/*.parquet"))
    assert not is_whole(half)

    # It is not taken for one, and the job goes on without it, to another.
    last = job.finish("--savepoint", str(savepoints), crash_at=crash, tries=1)
    path = savepoint_of(last)
    assert [p for p in savepoints.iterdir() if is_whole(p)] == [Path(path)]
    refused = counting_job(config={START: str(half)}).run()
    assert refused.process.returncode == 1
    assert "is not a whole savepoint" in refused.errors
    other = counting_job(config={START: path})
    other.finish(tries=1)
    assert_goes_on(job, other)


def test_killed_between_seeding_and_its_manifest(counting_job: MakeJob, tmp_path: Path) -> None:
    job = counting_job()
    path = savepoint_of(job.finish("--savepoint", str(tmp_path / "savepoints"), tries=1))
    other = counting_job(config={START: path})
    crash = "driver.before_seed"
    assert other.run(crash_at=crash).process.returncode == CRASHED
    assert list((other.directory / "checkpoints" / "counting").glob("state/*.parquet"))
    assert not list((other.directory / "checkpoints" / "counting").glob("epochs/*"))
    other.finish(crash_at=crash, tries=1)
    assert_goes_on(job, other)


@pytest.mark.spark
@pytest.mark.slow
def test_the_whole_driver_on_spark(counting_job: MakeJob, tmp_path: Path) -> None:
    """Killed from outside as soon as there is something of the savepoint."""
    savepoints = tmp_path / "savepoints"
    job = counting_job(executor="spark", records=2800)
    run = job.start("--savepoint", str(savepoints))
    run.wait_until(lambda: savepoints.exists() and os.listdir(savepoints))
    run.kill_group()
    assert run.process.returncode == -signal.SIGKILL
    last = job.finish("--savepoint", str(savepoints), tries=1)
    job.assert_exact()
    path = Path(savepoint_of(last))
    assert is_whole(path)
    for other in savepoints.iterdir():  # whole or not, but never thought to be
        assert is_whole(other) == (other / "savepoint.json").exists()
