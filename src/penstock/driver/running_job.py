"""The handle on a job that runs in a thread of its own."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import Any

from penstock.common.completable_future import CompletableFuture
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.driver.job import Job
from penstock.errors import JobCancelledError, PenstockError, UserFunctionError

_log = logging.getLogger("penstock")


class RunningJob(JobClient):
    """A job in a thread of its own."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._result: Future[JobExecutionResult] = Future()
        self._result.set_running_or_notify_cancel()  # to cancel it is not to cancel the job
        self._ended = threading.Event()
        threading.Thread(target=self._main, name=f"penstock {job.name}", daemon=True).start()

    def _main(self) -> None:
        try:
            result = self.job.run()
        except BaseException as error:
            _log.debug("job %s failed", self.job.name, exc_info=True)
            self._result.set_exception(_for_users(error))
        else:
            if self.job.status is JobStatus.CANCELED:
                self._result.set_exception(JobCancelledError.of(self.job.name))
            else:
                self._result.set_result(result)
        finally:
            self._ended.set()

    def log_failure(self) -> None:
        """Write to the log if the job fails: perhaps nobody asks for its result."""

        def log(ended: Future[JobExecutionResult]) -> None:
            error = ended.exception()
            if error is not None and not isinstance(error, JobCancelledError):
                _log.error("job %s failed: %s", self.job.name, error)

        self._result.add_done_callback(log)

    def get_job_id(self) -> JobID:
        return JobID(self.job.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.job.status)

    def cancel(self) -> CompletableFuture[None]:
        self.job.cancel()
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()

        def ended(_: Any) -> None:
            done.set_result(None)

        self._result.add_done_callback(ended)
        return CompletableFuture(done)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return _asked(
            self.job.stop_with_savepoint, advance_to_end_of_event_time, savepoint_directory
        )

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return _asked(self.job.trigger_savepoint, savepoint_directory)

    def cancel_with_savepoint(
        self, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Give the job up, with a savepoint of its last epoch; its path."""
        return _asked(self.job.cancel_with_savepoint, savepoint_directory)

    def wait(self) -> JobExecutionResult:
        """Block until the end; Ctrl-C stops the job, which goes on when it is started again."""
        try:
            # Not by joining the thread: once that is interrupted, Python takes it for ended.
            while not self._ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.job.interrupt()
            self._ended.wait()
            raise
        error = self._result.exception()
        if error is not None:
            raise error
        return self._result.result()


def _for_users(error: BaseException) -> BaseException:
    """Our errors name the user's line; the way there through the engine would only bury it."""
    if isinstance(error, UserFunctionError):
        error.with_cause()
    return error.with_traceback(None) if isinstance(error, PenstockError) else error


def _asked(ask: Any, *arguments: Any) -> CompletableFuture[str]:
    """The answer; also a refusal comes with it, as from a job far away."""
    try:
        return CompletableFuture(ask(*arguments))
    except PenstockError as error:
        return CompletableFuture.failed(error)
