"""How a job is asked to stop: at once, or with a savepoint that it leaves behind.

Others ask while the job runs, each in a thread of its own; the job's thread looks here when an
executor has come back. Knows epochs and executors, not the job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from penstock.common.job_status import JobStatus
from penstock.driver.epoch_loop import EpochLoop
from penstock.driver.executor import Executor
from penstock.driver.savepoints import Savepoints, blank_manifest, promise
from penstock.errors import SavepointError

_log = logging.getLogger("penstock")


@dataclass
class StopRequest:
    """Somebody waits for a savepoint with which the job is to end."""

    directory: str
    drain: bool = False
    cancels: bool = False
    result: Future[str] = field(default_factory=promise)
    path: str | None = None

    @property
    def how(self) -> str:
        if self.cancels:
            return "cancelled with a savepoint"
        return "drained and stopped with a savepoint" if self.drain else "stopped with a savepoint"

    def is_like(self, other: StopRequest) -> bool:
        return (self.directory, self.how) == (other.directory, other.how)


class StopRequests:
    """Whether and how one job is to stop."""

    def __init__(self, job_name: str, savepoints: Savepoints, wake: Callable[[], None]) -> None:
        """`wake` brings the executor back that is at work."""
        self.lock = threading.Lock()
        """For the job's status as well: who asks and how it ends exclude each other."""
        self.given_up = False
        """The job's checkpoint is needed no more."""
        self.to_reopen = False
        """Event time was brought to its end for a savepoint that there is not."""
        self._name = job_name
        self._savepoints = savepoints
        self._wake = wake
        self._stop = threading.Event()
        self._request: StopRequest | None = None
        self._interrupted = False
        self._over = False

    def is_set(self) -> bool:
        """Whether the job is to stop."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> None:
        """Until the job is to stop, but no longer than this."""
        self._stop.wait(seconds)

    def interrupt(self) -> None:
        """Stop at once. Who calls this holds the lock, and wakes the executor without it."""
        self._interrupted = True
        self._stop.set()

    def add(self, request: StopRequest) -> Future[str]:
        """Stop with a savepoint, unless the job is about to end otherwise; its path."""
        with self.lock:
            if self._over or self._interrupted:
                raise SavepointError.job_ended(self._name, self.end_status().name)
            under_way = self._request
            if under_way is not None and under_way.is_like(request):
                return under_way.result
            if under_way is not None:
                raise SavepointError.already_stopping(self._name, under_way.how)
            self._request = request
            self._stop.set()
        self._wake()
        return request.result

    def carried_out(self, loop: EpochLoop, executor: Executor) -> bool:
        """Whether the job may end; not if the savepoint it was to leave could not be made."""
        with self.lock:
            request = None if self._interrupted else self._request
            if request is None:
                self._over = True
                return True
        drained = False
        try:
            if request.drain and not loop.ended:
                drained = loop.draining = True
                executor.drain(loop)
            manifest = loop.settled() if loop.base is not None else blank_manifest(loop.plan)
            if manifest is None:
                raise SavepointError.uncommitted(self._name)
            path = self._savepoints.take_now(request.directory, manifest)
        except Exception as error:
            _log.warning("job %s goes on, since no savepoint was made: %s", self._name, error)
            loop.draining = False
            self.to_reopen = drained and loop.ended
            with self.lock:
                self._request = None
                if not self._interrupted:
                    self._stop.clear()
            request.result.set_exception(error)
            return self._interrupted
        self.given_up = self.given_up or request.cancels
        request.path = path
        return True

    def end_status(self) -> JobStatus:
        """Of a job that ends without an error."""
        stopped = self._request is not None and not self._request.cancels
        if not self._stop.is_set() or (stopped and not self._interrupted):
            return JobStatus.FINISHED
        return JobStatus.CANCELED

    def answer(self, status: JobStatus) -> None:
        """The job has ended, with the savepoint or without: nobody is to wait for ever."""
        with self.lock:
            self._over = True
            request = self._request
        if request is None:
            return
        if request.path is not None:
            request.result.set_result(request.path)
        else:
            request.result.set_exception(SavepointError.job_ended(self._name, status.name))
