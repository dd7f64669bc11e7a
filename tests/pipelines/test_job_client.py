"""execute_async and the job client: status, result, cancel."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.common import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.errors import JobCancelledError, UserFunctionError


def _await_status(client: Any, status: JobStatus) -> None:
    deadline = time.monotonic() + 60
    while client.get_job_status().result() is not status:
        assert time.monotonic() < deadline, client.get_job_status()
        time.sleep(0.01)


def test_finished(make_env: Any, capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env({"penstock.job-id": "count"})
    env.from_sequence(1, 3).print("n").set_parallelism(1)

    client = env.execute_async("counting")

    assert str(client.get_job_id()) == "count"
    result = client.get_job_execution_result().result(60)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert str(result.get_job_id()) == "count"
    assert result.get_net_runtime() > 0
    assert capsys.readouterr().out.splitlines() == ["n> 1", "n> 2", "n> 3"]


def test_cancelled(env: StreamExecutionEnvironment) -> None:
    epochs: list[Any] = []
    env.add_epoch_listener(epochs.append)
    env.from_source(DataGeneratorSource(lambda i: i, rate=100)).print()

    client = env.execute_async("endless")
    _await_status(client, JobStatus.RUNNING)
    while not epochs:
        time.sleep(0.01)
    assert not client.get_job_execution_result().done()
    client.cancel().result(60)

    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="'endless' was cancelled"):
        client.get_job_execution_result().result(60)


def test_failed(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1).map(lambda n: n / 0).print()

    client = env.execute_async()

    error = client.get_job_execution_result().exception(60)
    assert isinstance(error, UserFunctionError)
    assert error.original_type == "ZeroDivisionError"
    assert client.get_job_status().result() is JobStatus.FAILED


def test_two_jobs_at_once(env: StreamExecutionEnvironment) -> None:
    """An endless job does not keep another of the same program from its end."""
    env.from_source(DataGeneratorSource(lambda i: i, rate=100)).print("endless")
    endless = env.execute_async("endless")
    try:
        assert sorted(env.from_sequence(1, 5).execute_and_collect("other")) == [1, 2, 3, 4, 5]
        assert endless.get_job_status().result() is JobStatus.RUNNING
    finally:
        endless.cancel().result(60)
