"""A job that comes back with another parallelism goes on with the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MakeJob = Callable[..., Any]

DIED = 38


@pytest.mark.parametrize("steps", [(2, 3, 1), (1, 4, 2)], ids=str)
def test_another_parallelism(counting_job: MakeJob, steps: tuple[int, ...]) -> None:
    job = counting_job(config={"penstock.state.max-segments": "1000"})
    _rescale(job, steps, 3)


def test_another_parallelism_while_images_are_made(counting_job: MakeJob) -> None:
    """Some subtasks' files have been replaced by an image when it changes again, others' not."""
    _rescale(counting_job(), (2, 3, 1), 4, "--await-image")


def _rescale(job: Any, steps: tuple[int, ...], epochs: int, *arguments: str) -> None:
    *first, last = steps
    for parallelism in first:
        job.parallelism = parallelism
        run = job.run("--stop-after", str(epochs), *arguments)
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
