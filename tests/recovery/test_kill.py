"""`kill -9` from outside, at whatever moment: of a worker, of an executor, of the driver."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

MakeJob = Callable[..., Any]

CLUSTER = "local-cluster[2,1,1024]"


@pytest.mark.parametrize("epoch", [1, 4])
def test_driver_on_the_local_executor(counting_job: MakeJob, epoch: int) -> None:
    job = counting_job(config={"penstock.epoch.interval": "50 ms"})
    run = job.start()
    run.wait_for_epoch(epoch)
    run.kill_group()
    assert run.process.returncode == -signal.SIGKILL
    assert job.finish(tries=1).summary["first"] >= epoch + 1
    job.assert_exact()


@pytest.mark.spark
@pytest.mark.slow
def test_python_worker(counting_job: MakeJob) -> None:
    """The restart strategy brings the job back within the same driver."""
    job = counting_job(executor="spark")
    run = job.start()
    run.wait_for_epoch(2)
    run.wait_until(lambda: _kill_workers(run) or "restarts in" in run.errors)
    assert run.wait() == 0, run.tail()
    assert "restarts in" in run.errors
    job.assert_exact()


@pytest.mark.spark
@pytest.mark.slow
def test_driver_and_its_jvm(counting_job: MakeJob) -> None:
    """Killed twice; each time it comes back with another parallelism."""
    job = counting_job(executor="spark")
    for parallelism, epoch in ((2, 2), (3, 6)):
        job.parallelism = parallelism
        run = job.start()
        run.wait_for_epoch(epoch)
        run.kill_group()
    job.parallelism = 1
    last = job.finish(tries=1)
    assert last.summary["first"] > 6
    job.assert_exact()


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.slow
def test_executor(counting_job: MakeJob) -> None:
    """Spark starts another executor and repeats the lost tasks; the driver need not."""
    job = counting_job(executor="spark", config={"penstock.spark.master": CLUSTER})
    run = job.start()
    run.wait_for_epoch(2)
    executors = run.descendants("CoarseGrainedExecutorBackend")
    assert len(executors) == 2
    _kill(executors[0])
    assert run.wait() == 0, run.tail()
    assert "restarts in" not in run.errors
    job.assert_exact()


def _kill_workers(run: Any) -> None:
    """One that is idle is not missed, so this is done until one was at work."""
    # The daemon forks the workers, so all have one command line; the daemon is the first.
    for worker in run.descendants("pyspark.daemon")[1:]:
        _kill(worker)
    time.sleep(0.05)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself
        os.kill(pid, signal.SIGKILL)
