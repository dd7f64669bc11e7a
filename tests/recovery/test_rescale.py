"""A job that comes back with another parallelism goes on with the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MakeJob = Callable[..., Any]

DIED = 38


@pytest.mark.parametrize("segments", ["2", "1000"], ids=["images", "no images"])
@pytest.mark.parametrize("steps", [(2, 3, 1), (1, 4, 2), (3, 2, 3)], ids=str)
def test_another_parallelism(counting_job: MakeJob, steps: tuple[int, ...], segments: str) -> None:
    """Images are made of some subtasks' state and not yet of others' when it changes again."""
    job = counting_job(
        config={"penstock.state.max-segments": segments, "penstock.epoch.interval": "200 ms"}
        if segments == "2"
        else {"penstock.state.max-segments": segments},
    )
    *first, last = steps
    for parallelism in first:
        job.parallelism = parallelism
        run = job.run("--stop-after", "3" if segments == "1000" else "4")
        assert run.process.returncode == DIED, run.tail()
    job.parallelism = last
    job.finish(tries=1)
    job.assert_exact()


def test_rescaled_after_a_manifest_without_its_sinks_commit(counting_job: MakeJob) -> None:
    """What is to be committed belongs to its own epoch, whoever commits it in the end."""
    job = counting_job()
    job.run(crash_at="driver.after_manifest:3")
    job.parallelism = 3
    # Dies again before its first epoch is through: the commit is repeated once more.
    job.run(crash_at="task.before_segment")
    job.parallelism = 1
    job.finish(tries=1)
    job.assert_exact()
