"""The epoch that changes the type of a state is lost, and the one after it is as if it were not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MakeJob = Callable[..., Any]

CRASHED = 37
DIED = 38
POINTS = ("task.rewriting", "task.after_segment", "driver.before_manifest", "driver.after_manifest")


@pytest.mark.parametrize("point", POINTS)
def test_crash_in_the_epoch_that_changes_a_type(counting_job: MakeJob, point: str) -> None:
    """An epoch meets some of the keys, and has memory for one: what it changes is written before
    the rest is converted."""
    few = {"penstock.source.max-records-per-epoch": "25"}
    job = counting_job(records=800, keys=200, config=few)
    assert job.run("--stop-after", "5").process.returncode == DIED
    job.number = "DOUBLE"
    first = job.run(crash_at=point)
    assert first.process.returncode == CRASHED, first.tail()
    # With another parallelism, those that take over have entries of several that died.
    job.parallelism = 3
    job.finish(tries=1)
    job.assert_exact()


def test_the_version_before_goes_on_if_the_change_was_not_committed(counting_job: MakeJob) -> None:
    job = counting_job(records=2000)
    assert job.run("--stop-after", "3").process.returncode == DIED
    job.number = "DOUBLE"
    assert job.run(crash_at="driver.before_manifest").process.returncode == CRASHED
    job.number = "LONG"
    job.finish(tries=1)
    job.assert_exact()


def test_the_version_before_is_refused_once_the_change_is_committed(counting_job: MakeJob) -> None:
    job = counting_job(records=2000)
    assert job.run("--stop-after", "3").process.returncode == DIED
    job.number = "DOUBLE"
    assert job.run(crash_at="driver.after_manifest").process.returncode == CRASHED
    job.number = "LONG"
    refused = job.run()
    assert refused.process.returncode not in (0, CRASHED)
    assert "it was Double and is Long" in refused.errors
    job.number = "DOUBLE"
    job.finish(tries=1)
    job.assert_exact()
