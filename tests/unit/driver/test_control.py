"""A job that listens, and those who talk to it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock.common.job_status import JobStatus
from penstock.driver.control import ControlServer
from penstock.driver.control_client import ask
from penstock.driver.processes import start_mark
from penstock.driver.registry import JobEntry
from penstock.errors import CheckpointError, JobUnreachableError, RemoteJobError


class FakeJob:
    """Does what it is told when the test says so."""

    name = "Alerts"
    job_id = "alerts"

    def __init__(self) -> None:
        self.status = JobStatus.RUNNING
        self.reports: list[Any] = []
        self.restarted_by: str | None = None
        self.asked: list[tuple[Any, ...]] = []
        self.savepoint: Future[str] = Future()
        self.was_asked = threading.Event()

    def _note(self, *what: Any) -> None:
        self.asked.append(what)
        self.was_asked.set()

    def cancel(self) -> None:
        self.status = JobStatus.CANCELLING
        self._note("cancel")

    def trigger_savepoint(self, directory: str | None) -> Future[str]:
        self._note("savepoint", directory)
        return self.savepoint

    def stop_with_savepoint(self, drain: bool, directory: str | None) -> Future[str]:
        self._note("stop", drain, directory)
        return self.savepoint

    def cancel_with_savepoint(self, directory: str | None) -> Future[str]:
        self._note("cancel with", directory)
        return self.savepoint


@pytest.fixture
def job() -> FakeJob:
    return FakeJob()


@pytest.fixture
def server(job: FakeJob, tmp_path: Path) -> Iterator[ControlServer]:
    server = ControlServer(job, str(tmp_path), "r")
    yield server
    if os.path.exists(server.path):
        server.close("FINISHED")


def _entry(path: str | None, pid: int | None = None, mark: str | None = None) -> JobEntry:
    pid = os.getpid() if pid is None else pid
    mark = mark or start_mark(pid) or ""
    host = socket.gethostname()
    return JobEntry(
        "r", "alerts", "Alerts", "", [], pid, mark, host, "local", 1, None, None, 0, path
    )


class Asking:
    """A question that is answered in its own time."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._ask, args=(question,))
        self._thread.start()

    def _ask(self, question: Callable[[], Any]) -> None:
        try:
            self._result = question()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._result


def test_status(server: ControlServer) -> None:
    answer = ask(_entry(server.path), "status")
    assert (answer["status"], answer["epoch"]) == ("RUNNING", None)


def test_a_cancelled_job_is_waited_for(server: ControlServer, job: FakeJob) -> None:
    seen: list[dict[str, Any]] = []
    heard = threading.Event()

    def progress(answer: dict[str, Any]) -> None:
        seen.append(answer)
        heard.set()

    asking = Asking(lambda: ask(_entry(server.path), "cancel", progress, savepoint=False))
    assert heard.wait(20)
    server.close("CANCELED")

    assert asking.result() == {"outcome": "CANCELED"}
    assert job.asked == [("cancel",)]
    assert seen[0]["status"] == "CANCELLING"
    assert not os.path.exists(server.path)


def test_a_savepoint(server: ControlServer, job: FakeJob) -> None:
    asking = Asking(lambda: ask(_entry(server.path), "savepoint", directory="/sp"))
    job.savepoint.set_result("/sp/savepoint-1")
    assert asking.result() == {"path": "/sp/savepoint-1"}
    assert job.asked == [("savepoint", "/sp")]


def test_stop_and_drain(server: ControlServer, job: FakeJob) -> None:
    asking = Asking(lambda: ask(_entry(server.path), "stop", drain=True, directory=None))
    assert job.was_asked.wait(20)
    job.savepoint.set_result("/sp/savepoint-1")
    server.close("FINISHED")
    assert asking.result() == {"path": "/sp/savepoint-1", "outcome": "FINISHED"}
    assert job.asked == [("stop", True, None)]


def test_cancel_with_savepoint(server: ControlServer, job: FakeJob) -> None:
    asking = Asking(lambda: ask(_entry(server.path), "cancel", savepoint=True, directory="/sp"))
    assert job.was_asked.wait(20)
    job.savepoint.set_result("/sp/savepoint-1")
    server.close("CANCELED")
    assert asking.result() == {"path": "/sp/savepoint-1", "outcome": "CANCELED"}
    assert job.asked == [("cancel with", "/sp")]


def test_what_the_job_raises_arrives(server: ControlServer, job: FakeJob) -> None:
    job.savepoint.set_exception(CheckpointError("no space"))
    with pytest.raises(RemoteJobError, match="'Alerts': no space") as caught:
        ask(_entry(server.path), "savepoint", directory=None)
    assert caught.value.type_name == "CheckpointError"


def test_any_error_arrives(server: ControlServer, job: FakeJob) -> None:
    job.savepoint.set_exception(OSError(28, "No space left on device"))
    with pytest.raises(RemoteJobError, match="No space left"):
        ask(_entry(server.path), "savepoint", directory=None)


def test_a_job_that_ends_before_its_savepoint(server: ControlServer, job: FakeJob) -> None:
    asking = Asking(lambda: ask(_entry(server.path), "savepoint", directory=None))
    assert job.was_asked.wait(20)
    server.close("FAILED")
    with pytest.raises(RemoteJobError, match="ended as FAILED before"):
        asking.result()


@pytest.mark.parametrize("line", [b"\n", b"what?\n", b"[1]\n", b'{"command": "dance"}\n'])
def test_a_request_that_is_none(server: ControlServer, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(server.path)
        connection.sendall(line)
        with connection.makefile() as answers:
            (answer,) = map(json.loads, answers)
    assert "must be one of ['cancel', 'savepoint'" in answer["error"]["message"]


def test_nobody_is_kept_by_one_who_says_nothing(server: ControlServer) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(server.path)
        assert ask(_entry(server.path), "status")["status"] == "RUNNING"


def test_a_job_that_has_gone(server: ControlServer) -> None:
    server.close("FINISHED")
    with pytest.raises(JobUnreachableError, match="does not answer"):
        ask(_entry(server.path), "status")


def test_a_driver_that_dies_meanwhile(tmp_path: Path) -> None:
    """A child of its may still hold the socket open, and never answer."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(JobUnreachableError, match="its process has died"):
            ask(_entry(path, mark="1"), "cancel")


def test_one_that_lives_and_is_silent(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(JobUnreachableError, match="it gave no answer"):
            ask(_entry(path), "status", timeout=0.1)


def test_one_without_a_socket() -> None:
    with pytest.raises(JobUnreachableError, match="does not listen"):
        ask(_entry(None), "status")


def test_only_the_user_may_connect(server: ControlServer) -> None:
    assert os.stat(server.path).st_mode & 0o777 == 0o600


def test_a_path_too_long_for_a_socket(job: FakeJob, tmp_path: Path) -> None:
    server = ControlServer(job, str(tmp_path / ("x" * 120)), "r")
    private = os.path.dirname(server.path)
    assert os.stat(private).st_mode & 0o777 == 0o700
    assert ask(_entry(server.path), "status")["status"] == "RUNNING"
    server.close("FINISHED")
    assert not os.path.exists(private)


def test_a_driver_with_many_open_files(job: FakeJob, tmp_path: Path) -> None:
    """Beyond what select() can name."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, usual)
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual[1], usual[1]))
        for _ in range(1100):
            files.enter_context(open(os.devnull))
        server = ControlServer(job, str(tmp_path), "r")
        assert ask(_entry(server.path), "status")["status"] == "RUNNING"
        server.close("FINISHED")
