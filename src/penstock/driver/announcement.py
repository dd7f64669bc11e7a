"""A job makes itself known to its user's other processes while it runs, and must not suffer by it.

Whatever goes wrong here is logged, once per process if it is the user's state directory.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from typing import Protocol

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.local_paths import local_path
from penstock.driver import registry
from penstock.driver.control import Controllable, ControlServer
from penstock.driver.processes import start_mark
from penstock.driver.registry import JobEntry
from penstock.errors import InvalidArgumentError
from penstock.runtime.physical import PhysicalPlan

_log = logging.getLogger("penstock")
_LONGEST_ERROR = 2000
_warned = False


class Announced(Controllable, Protocol):
    """What is told of a job."""

    @property
    def configuration(self) -> Configuration: ...

    @property
    def plan(self) -> PhysicalPlan: ...

    @property
    def keeps_checkpoints(self) -> bool: ...


class Announcement:
    """Of one run of a job."""

    def __init__(self, job: Announced) -> None:
        self._job = job
        self._server: ControlServer | None = None
        self._entry: JobEntry | None = None

    def begin(self) -> None:
        """The job runs: from now on it is listed, and listens."""
        run_id = self._job.plan.settings.run_id
        try:
            self._server = ControlServer(self._job, registry.jobs_directory(), run_id)
        except OSError as error:
            _warn("job %s cannot be controlled from outside: %s", self._job.name, error)
        try:
            entry = _entry_of(self._job, None if self._server is None else self._server.path)
            registry.enter(entry)
            self._entry = entry
        except OSError as error:
            _warn("job %s cannot be listed: %s", self._job.name, error)

    def end(self, error: BaseException | None = None) -> None:
        """The job has ended, and so has its claim on its directory."""
        outcome = "FAILED" if error is not None else self._job.status.name
        entry, self._entry = self._entry, None
        server, self._server = self._server, None
        try:
            if entry is not None:
                registry.leave(
                    entry, outcome, None if error is None else str(error)[:_LONGEST_ERROR]
                )
        except OSError as problem:
            _warn("the end of job %s cannot be listed: %s", self._job.name, problem)
        finally:
            if server is not None:
                server.close(outcome)


def _entry_of(job: Announced, listening_at: str | None) -> JobEntry:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    savepoints = job.configuration.get(options.SAVEPOINT_DIR)
    settings = job.plan.settings
    return JobEntry(
        run_id=settings.run_id,
        job_id=job.job_id,
        name=job.name,
        program="" if main is None else os.path.abspath(main),
        arguments=sys.argv[1:],
        pid=os.getpid(),
        process_mark=start_mark(os.getpid()) or "",
        host=socket.gethostname(),
        executor=job.configuration.get(options.EXECUTOR),
        parallelism=max(vertex.parallelism for vertex in job.plan.vertices),
        root=settings.root if job.keeps_checkpoints else None,
        savepoint_dir=None if savepoints is None else _full(savepoints),
        started=int(time.time() * 1000),
        socket=listening_at,
    )


def _full(path: str) -> str:
    """For processes that work in another directory; a scheme that is not ours stays as it is."""
    try:
        return local_path(path, "savepoint directory")
    except InvalidArgumentError:
        return path


def _warn(message: str, *values: object) -> None:
    """Jobs of one process share a home: one warning is enough, more would drown other messages."""
    global _warned
    _log.log(logging.DEBUG if _warned else logging.WARNING, message, *values)
    _warned = True
