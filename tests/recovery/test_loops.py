"""The job dies while records are in a loop: all come out of it, once, in order."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

MakeJob = Callable[..., Any]

CRASHED = 37
EPOCHS = 8
"""Three with input, four in which the last of it goes round, and the final one."""

TASK_POINTS = ("task.before_loop", "task.after_loop")
DRIVER_POINTS = ("driver.before_manifest", "driver.after_manifest")


def _job(counting_job: MakeJob, **settings: Any) -> Any:
    return counting_job(program="loop", records=1000, **settings)


def test_without_failure(counting_job: MakeJob) -> None:
    job = _job(counting_job)
    assert job.run().summary["epochs"] == EPOCHS
    job.assert_exact()


# Two subtasks pass a task's point in each epoch. So some of these crashes are while there is input,
# some while there is none.


@pytest.mark.parametrize(
    "crash",
    [f"{point}:{n}" for point in TASK_POINTS for n in (3, 10)]
    + [f"{point}:6" for point in DRIVER_POINTS],
)
def test_crash_on_the_local_executor(counting_job: MakeJob, crash: str) -> None:
    job = _job(counting_job)
    first = job.run(crash_at=crash)
    assert first.process.returncode == CRASHED, first.tail()
    assert job.finish(crash_at=crash).summary["first"] > 0
    job.assert_exact()


def test_dying_again_and_again(counting_job: MakeJob) -> None:
    """A crash at every point in a row, some in the recovery from the one before."""
    job = _job(counting_job)
    for point in (*DRIVER_POINTS, *TASK_POINTS):
        run = job.run(crash_at=f"{point}:2")
        assert run.process.returncode == CRASHED, run.tail()
    job.finish()
    job.assert_exact()


@pytest.mark.spark
@pytest.mark.slow
def test_kill_on_spark(counting_job: MakeJob) -> None:
    """The driver and its JVM, when the source is at its end and its records are in the loop."""
    job = _job(counting_job, executor="spark")
    run = job.start()
    run.wait_for_epoch(4)
    run.kill_group()
    assert run.process.returncode == -signal.SIGKILL
    assert job.finish(tries=1).summary["first"] > 4
    job.assert_exact()
