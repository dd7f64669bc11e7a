"""What each checkpointing mode promises when something fails, and that it is not another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

CRASHED = 37

MakeJob = Callable[..., Any]


def _recovered(job: Any, crash_at: str) -> Counter[str]:
    """What each key was counted in the sink, after a crash and a restart."""
    assert job.run(crash_at=crash_at).process.returncode == CRASHED
    job.finish(crash_at=crash_at)
    counted = job.counted()
    assert counted.strays == []
    per_key: Counter[str] = counted.per_key
    return per_key


@pytest.mark.parametrize("point", ["task.after_segment:3", "driver.before_manifest:3"])
def test_exactly_once_is_equal(counting_job: MakeJob, point: str) -> None:
    job = counting_job()
    assert _recovered(job, point) == job.expected
    job.assert_exact()


@pytest.mark.parametrize(
    ("point", "again"),
    [
        ("driver.before_manifest:3", True),  # the sinks have committed, the epoch has not
        ("task.after_segment:3", False),
        ("driver.after_manifest:3", False),
        ("driver.after_sinks:3", False),
    ],
)
def test_at_least_once_loses_nothing(counting_job: MakeJob, point: str, again: bool) -> None:
    job = counting_job(mode="AT_LEAST_ONCE")
    counted = _recovered(job, point)
    assert all(counted[key] >= count for key, count in job.expected.items())
    assert (counted.total() > job.expected.total()) is again
    # Nothing comes but what was read, and state is never counted twice.
    rows = set(job.counted().rows)
    assert rows == {(key, n, n + 1, 1) for key, count in job.expected.items() for n in range(count)}


@pytest.mark.parametrize(
    ("point", "lost"),
    [
        ("task.before_segment:3", True),
        ("task.after_segment:3", True),
        ("driver.before_manifest:3", True),
        ("driver.after_manifest:3", True),  # in state, but no more in the sink
        ("driver.after_sinks:3", False),
    ],
)
def test_at_most_once_repeats_nothing(counting_job: MakeJob, point: str, lost: bool) -> None:
    job = counting_job(mode="AT_MOST_ONCE")
    counted = _recovered(job, point)
    assert all(counted[key] <= count for key, count in job.expected.items())
    assert (counted.total() < job.expected.total()) is lost
    numbers = Counter((key, number) for key, number, *_ in job.counted().rows)
    assert set(numbers.values()) == {1}
    # What is lost is one epoch, not more.
    assert job.expected.total() - counted.total() in (0, 400)


def test_modes_are_alike_without_failure(counting_job: MakeJob) -> None:
    for mode in ("EXACTLY_ONCE", "AT_LEAST_ONCE", "AT_MOST_ONCE"):
        job = counting_job(mode=mode)
        assert job.run().process.returncode == 0
        job.assert_exact()


@pytest.mark.spark
@pytest.mark.slow
def test_on_spark(counting_job: MakeJob) -> None:
    """The driver dies between the sinks' commit and the manifest, or before both, by the mode."""
    counts = {}
    for mode in ("AT_LEAST_ONCE", "AT_MOST_ONCE"):
        job = counting_job(executor="spark", mode=mode, records=1600)
        counts[mode] = _recovered(job, "driver.before_manifest:3").total()
    assert counts == {"AT_LEAST_ONCE": 1600 + 400, "AT_MOST_ONCE": 1600 - 400}
