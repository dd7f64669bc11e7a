"""Streams that meet and part in all ways, under crashes: the result is that of no failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

CRASHED = 37
RECORDS, KEYS, SPLITS = 800, 12, 4
EVERYTHING: dict[str, Any] = {
    "program": "everything",
    "records": RECORDS,
    "keys": KEYS,
    "config": {"penstock.source.max-records-per-epoch": "25", "penstock.state.cache-entries": "4"},
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
Results = dict[str, list[Any]]


def numbered(records: int) -> Iterator[tuple[str, int]]:
    """What one of the sources gives."""
    for split in range(SPLITS):
        mine = range(split, KEYS, SPLITS)
        for i in range(records // SPLITS):
            yield f"k{mine[i % len(mine)]}", i // len(mine)


def expected() -> Results:
    """The program in a few lines, without streams."""
    left, right = list(numbered(RECORDS // 2)), list(numbered(RECORDS * 2 // 5))
    rules = list(numbered(RECORDS // 10))
    both = left + [record for record in right if record[1] % 2 == 0]
    kept = [record for record in both if record[1] % 3]
    main: list[Any] = [(*record, 0) for record in kept] + [(*record, 1) for record in right]
    keys = {key for key, *_ in main}
    main += [(key, sum(k == key for k, _ in kept), sum(k == key for k, _ in right)) for key in keys]
    sums = sum(number for _, number in rules), len({key for key, _ in rules})
    return {
        "main": sorted(main),
        "spared": sorted(record for record in both if record[1] % 3 == 0),
        "ended": sorted((key, sum(row[0] == key for row in main), *sums) for key in keys),
    }


def results(job: Any) -> Results:
    found = {sink: job.counted(sink) for sink in ("main", "spared", "ended")}
    assert [counted.strays for counted in found.values()] == [[], [], []]
    return {sink: sorted(counted.rows) for sink, counted in found.items()}


def test_without_failure(counting_job: MakeJob) -> None:
    job = counting_job(**EVERYTHING)
    run = job.run()
    assert run.process.returncode == 0, run.tail()
    assert results(job) == expected()


@pytest.mark.parametrize("point", POINTS)
def test_crash_on_the_local_executor(counting_job: MakeJob, point: str) -> None:
    job = counting_job(**EVERYTHING)
    crash = f"{point}:5"
    first = job.run(crash_at=crash)
    assert first.process.returncode == CRASHED, first.tail()
    last = job.finish(crash_at=crash)
    assert last.summary["first"] > 0, "it did not go on but begin again"
    assert results(job) == expected()


def test_other_parallelism_after_every_crash(counting_job: MakeJob) -> None:
    job = counting_job(**EVERYTHING)
    for point, parallelism in zip(POINTS, (2, 3, 1, 2, 4, 1), strict=True):
        job.parallelism = parallelism
        run = job.run(crash_at=f"{point}:2")
        assert run.process.returncode == CRASHED, run.tail()
    job.parallelism = 3
    job.finish()
    assert results(job) == expected()


@pytest.mark.spark
@pytest.mark.slow
def test_crashes_on_spark(counting_job: MakeJob) -> None:
    """The driver dies, then a worker. An epoch is one job of Spark's, and so is each attempt."""
    job = counting_job(executor="spark", **EVERYTHING)
    run = job.run(crash_at="driver.after_manifest:4")
    assert run.process.returncode == CRASHED, run.tail()
    crash = "task.after_segment:9"
    last = job.finish(crash_at=crash, tries=1)
    assert job.crashed(crash)
    assert last.errors.count("restarts in") == 1
    assert last.summary["spark_jobs"] == last.summary["epochs"] + 1
    assert results(job) == expected()
