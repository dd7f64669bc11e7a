"""Futures, ids, states and results of jobs."""

from concurrent.futures import Future

import pytest

from penstock.common import (
    CompletableFuture,
    InputDependencyConstraint,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
)
from penstock.errors import InvalidArgumentError


def test_future():
    future: Future[int] = Future()
    wrapped = CompletableFuture(future)
    seen = []
    wrapped.add_done_callback(seen.append)
    assert not wrapped.done()
    assert repr(wrapped) == "CompletableFuture(pending)"
    future.set_result(5)
    assert (wrapped.done(), wrapped.result(), wrapped.exception()) == (True, 5, None)
    assert seen == [wrapped]


def test_completed_failed_cancelled():
    assert CompletableFuture.completed(1).result() == 1
    failed = CompletableFuture.failed(KeyError("x"))
    assert isinstance(failed.exception(), KeyError)
    with pytest.raises(KeyError):
        failed.result()
    cancelled = CompletableFuture(Future())
    assert cancelled.cancel()
    assert cancelled.cancelled()
    assert repr(cancelled) == "CompletableFuture(cancelled)"


def test_job_id():
    assert str(JobID("abc")) == "abc"
    assert JobID("abc") == JobID("abc")
    assert len(str(JobID.generate())) == 32
    assert JobID.generate() != JobID.generate()
    with pytest.raises(InvalidArgumentError):
        JobID("")


def test_status():
    over = {s for s in JobStatus if s.is_globally_terminal_state()}
    assert over == {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert {s for s in JobStatus if s.is_terminal_state()} == over | {JobStatus.SUSPENDED}


def test_result():
    result = JobExecutionResult(JobID("j"), 12, {"n": 3})
    assert result.get_job_id() == JobID("j")
    assert result.get_net_runtime() == 12
    assert result.get_accumulator_result("n") == 3
    assert result.get_accumulator_result("m") is None
    assert result.get_all_accumulator_results() == {"n": 3}


def test_job_client_is_only_an_interface():
    with pytest.raises(TypeError):
        JobClient()
    assert [c.name for c in InputDependencyConstraint] == ["ANY", "ALL"]
