"""A running job listens to its user's other processes, on a Unix socket. The driver's side.

One request per connection, and answers, all of them lines of JSON::

    → {"command": "savepoint", "directory": null}
    ← {"progress": {"status": "RUNNING", "epoch": 17, …}}       while it takes
    ← {"result": {"path": "/data/savepoints/…"}}                 or {"error": {…}}

`cancel` and `stop` are answered when the job has ended. The client's side is `control_client`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, Protocol

from penstock.common.job_status import JobStatus
from penstock.driver.epoch_report import EpochReport
from penstock.driver.registry import make_private
from penstock.errors import CheckpointError, InvalidArgumentError

_log = logging.getLogger("penstock")

_LONGEST_PATH = 100  # the kernel's limit is 108 bytes, on some systems 104
_LONGEST_REQUEST = 1 << 16
_PROGRESS_SECONDS = 0.25
_REQUEST_SECONDS = 10.0
_LAST_ANSWERS_SECONDS = 2.0

Answer = dict[str, Any]


class Controllable(Protocol):
    """What a job lets others do with it."""

    @property
    def name(self) -> str: ...

    @property
    def job_id(self) -> str: ...

    @property
    def status(self) -> JobStatus: ...

    @property
    def reports(self) -> Sequence[EpochReport]: ...

    @property
    def restarted_by(self) -> str | None:
        """What made it restart, until an epoch has succeeded since."""
        ...

    def cancel(self) -> None: ...

    def trigger_savepoint(self, directory: str | None) -> Future[str]: ...

    def stop_with_savepoint(self, drain: bool, directory: str | None) -> Future[str]: ...

    def cancel_with_savepoint(self, directory: str | None) -> Future[str]: ...


class ControlServer:
    """Listens for one job, in threads of its own, until it is closed."""

    def __init__(self, job: Controllable, directory: str, run_id: str) -> None:
        """Begin to listen. OSError if there is no place for a socket."""
        self._job = job
        self._ended = threading.Event()
        self._outcome = ""
        self._private: str | None = None
        self.path = self._place(directory, run_id)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(self.path)
            os.chmod(self.path, 0o600)
            self._listener.listen()
            self._listener.setblocking(False)
        except OSError:
            self._listener.close()
            self._remove()
            raise
        self._wake, self._woken = socket.socketpair()
        self._connections: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, name="penstock control", daemon=True)
        self._thread.start()

    def close(self, outcome: str) -> None:
        """Tell those who wait how the job has ended, and listen no more."""
        self._outcome = outcome
        self._ended.set()
        self._wake.send(b".")
        self._thread.join()
        deadline = time.monotonic() + _LAST_ANSWERS_SECONDS
        for connection in self._connections:
            connection.join(max(0.0, deadline - time.monotonic()))
        for end in (self._listener, self._wake, self._woken):
            end.close()
        self._remove()

    def _place(self, directory: str, run_id: str) -> str:
        path = os.path.join(directory, f"{run_id}.sock")
        if len(os.fsencode(path)) <= _LONGEST_PATH:
            make_private(directory)
            return path
        self._private = tempfile.mkdtemp(prefix="penstock-control-")
        return os.path.join(self._private, "socket")

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)

    # Connections

    def _accept(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            ready.register(self._woken, selectors.EVENT_READ)
            while not self._ended.is_set():
                ready.select()
                # Whoever knocked may have gone again.
                with contextlib.suppress(OSError):
                    connection, _ = self._listener.accept()
                    self._serve_beside(connection)

    def _serve_beside(self, connection: socket.socket) -> None:
        self._connections = [thread for thread in self._connections if thread.is_alive()]
        thread = threading.Thread(
            target=self._serve, args=(connection,), name="penstock control", daemon=True
        )
        self._connections.append(thread)
        thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                if not _is_same_user(connection):
                    return
                for answer in self._answers(_request(connection)):
                    connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                return  # whoever asked has gone
            except Exception:
                _log.exception("a request to job %s failed", self._job.name)

    # Requests

    def _answers(self, request: Answer) -> Iterator[Answer]:
        try:
            command = _COMMANDS.get(request.get("command", ""))
            if command is None:
                raise InvalidArgumentError.of(
                    "command", f"one of {sorted(_COMMANDS)}", request.get("command")
                )
            yield from command(self, request)
        except Exception as error:
            yield {"error": {"type": type(error).__name__, "message": str(error)}}

    def _status(self, request: Answer) -> Iterator[Answer]:
        yield {"result": self._progress()}

    def _cancel(self, request: Answer) -> Iterator[Answer]:
        if request.get("savepoint"):
            made = self._job.cancel_with_savepoint(request.get("directory"))
            yield from self._until_made(made)
            yield from self._until_ended({"path": made.result()})
            return
        self._job.cancel()
        yield from self._until_ended({})

    def _stop(self, request: Answer) -> Iterator[Answer]:
        made = self._job.stop_with_savepoint(bool(request.get("drain")), request.get("directory"))
        yield from self._until_made(made)
        yield from self._until_ended({"path": made.result()})

    def _savepoint(self, request: Answer) -> Iterator[Answer]:
        made = self._job.trigger_savepoint(request.get("directory"))
        yield from self._until_made(made)
        yield {"result": {"path": made.result()}}

    def _until_made(self, made: Future[str]) -> Iterator[Answer]:
        """Progress, until the future is done; then what it raises."""
        while not made.done() and not self._ended.is_set():
            wait_for([made], _PROGRESS_SECONDS)
            yield {"progress": self._progress()}
        wait_for([made], _LAST_ANSWERS_SECONDS / 2)
        if not made.done():
            raise CheckpointError(f"it ended as {self._outcome} before the savepoint was made")
        made.result()

    def _until_ended(self, result: Answer) -> Iterator[Answer]:
        while not self._ended.wait(_PROGRESS_SECONDS):
            yield {"progress": self._progress()}
        yield {"result": {**result, "outcome": self._outcome}}

    def _progress(self) -> Answer:
        last = next(iter(self._job.reports[-1:]), None)
        return {
            "status": self._outcome or self._job.status.name,
            "error": self._job.restarted_by,
            "epoch": None if last is None else last.epoch,
            "epoch_seconds": None if last is None else last.seconds,
            "records_in": 0 if last is None else sum(last.records_in.values()),
            "state_bytes": 0 if last is None else last.state_bytes,
        }


_COMMANDS: dict[str, Callable[[ControlServer, Answer], Iterator[Answer]]] = {
    "status": ControlServer._status,
    "cancel": ControlServer._cancel,
    "stop": ControlServer._stop,
    "savepoint": ControlServer._savepoint,
}


def _request(connection: socket.socket) -> Answer:
    connection.settimeout(_REQUEST_SECONDS)
    with connection.makefile("rb") as lines:
        line = lines.readline(_LONGEST_REQUEST)
    try:
        request = json.loads(line)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}


def _is_same_user(connection: socket.socket) -> bool:
    """The socket's directory and mode keep others out; this holds where those are ignored."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return uid in (0, os.getuid())
