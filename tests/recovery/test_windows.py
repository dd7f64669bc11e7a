"""Windows under crashes: at every named point, and the result is that of a run without failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

CRASHED = 37
# Few enough to be quick; more keys than memory keeps, so that stores are read and catch up. Windows
# fire in most epochs, and others are open when they end.
WINDOWS: dict[str, Any] = {
    "program": "windows",
    "records": 1200,
    "keys": 20,
    "config": {
        "penstock.state.cache-entries": "4",
        "penstock.source.max-records-per-epoch": "50",
    },
}
POINTS = (
    "task.before_segment",
    "task.after_segment",
    "store.catch_up",
    "driver.before_manifest",
    "driver.after_manifest",
    "driver.after_sinks",
)

MakeJob = Callable[..., Any]

_undisturbed: list[Any] = []


def rows_of(job: Any) -> list[Any]:
    counted = job.counted()
    assert counted.strays == []
    return sorted(counted.rows)


def undisturbed(counting_job: MakeJob) -> list[Any]:
    """What the windows give if nothing happens; found out once."""
    if not _undisturbed:
        job = counting_job(**WINDOWS)
        run = job.run()
        assert run.process.returncode == 0, run.tail()
        assert run.summary["epochs"] == 13
        _undisturbed.extend(rows_of(job))
    return _undisturbed


def test_without_failure(counting_job: MakeJob) -> None:
    """Nothing is lost or late: every number is in one tumbling window, and in three that slide."""
    rows = undisturbed(counting_job)
    each = WINDOWS["records"] // WINDOWS["keys"]
    total = WINDOWS["keys"] * sum(range(each))
    sums: Counter[str] = Counter()
    for kind, _, _, _, _, values in rows:
        sums[kind] += sum(values)
    assert sums["tumbling"] == sums["session"] == sums["merged"] == total
    assert sums["sliding"] == 3 * total
    assert 0 < sums["counted"] < total
    assert 0 < sums["evicted"] < 3 * total
    assert len({(kind, *window) for kind, *window, _, _ in rows if kind != "counted"}) == len(
        [row for row in rows if row[0] != "counted"]
    )


@pytest.mark.parametrize("point", POINTS)
def test_crash_on_the_local_executor(counting_job: MakeJob, point: str) -> None:
    expected = undisturbed(counting_job)
    job = counting_job(**WINDOWS)
    crash = f"{point}:4"
    first = job.run(crash_at=crash)
    assert first.process.returncode == CRASHED, first.tail()
    last = job.finish(crash_at=crash)
    assert last.summary["first"] is not None
    assert rows_of(job) == expected


def test_dying_again_and_again(counting_job: MakeJob) -> None:
    expected = undisturbed(counting_job)
    job = counting_job(**WINDOWS)
    for point in POINTS:
        run = job.run(crash_at=f"{point}:3")
        assert run.process.returncode == CRASHED, run.tail()
    job.finish()
    assert rows_of(job) == expected


def test_more_subtasks_after_a_crash(counting_job: MakeJob) -> None:
    """Windows, timers and merging sets go to whom their keys go to."""
    expected = undisturbed(counting_job)
    job = counting_job(**WINDOWS)
    assert job.run(crash_at="driver.after_manifest:5").process.returncode == CRASHED
    job.parallelism = 3
    job.finish()
    assert rows_of(job) == expected


@pytest.mark.spark
@pytest.mark.slow
def test_crashes_on_spark(counting_job: MakeJob) -> None:
    """A worker dies and is survived; then the driver, and the next start goes on."""
    expected = undisturbed(counting_job)
    job = counting_job(executor="spark", **WINDOWS)
    run = job.run(crash_at="driver.after_manifest:4")
    assert run.process.returncode == CRASHED, run.tail()
    crash = "task.after_segment:3"
    last = job.finish(crash_at=crash, tries=1)
    assert job.crashed(crash)
    assert "restarts in" in last.errors
    assert rows_of(job) == expected
