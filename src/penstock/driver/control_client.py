"""Asks a running job for something, through its socket. The driver's side is `control`.

Light: it is loaded by short-lived commands, so it knows neither plans nor Spark.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from penstock.driver.registry import JobEntry
from penstock.errors import JobUnreachableError, RemoteJobError

_LOOK_SECONDS = 0.5
_CONNECT_SECONDS = 5.0

Answer = dict[str, Any]


def ask(
    entry: JobEntry,
    command: str,
    on_progress: Callable[[Answer], None] = lambda progress: None,
    timeout: float | None = None,
    **arguments: Any,
) -> Answer:
    """The job's result. JobUnreachableError if it gives none, RemoteJobError if it refuses.

    A job whose process dies meanwhile is noticed; without a `timeout` one that lives is waited for.
    """
    if entry.socket is None or not entry.is_here:
        raise JobUnreachableError.elsewhere(entry.name, entry.host, entry.pid, entry.is_here)
    deadline = None if timeout is None else time.monotonic() + timeout
    request = json.dumps({"command": command, **arguments}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(_CONNECT_SECONDS)
            connection.connect(entry.socket)
            connection.sendall(request)
            for answer in _answers(connection, entry, deadline):
                if "progress" in answer:
                    on_progress(answer["progress"])
                elif "error" in answer:
                    error = answer["error"]
                    raise RemoteJobError.of(entry.name, error["type"], error["message"])
                else:
                    result: Answer = answer["result"]
                    return result
        except OSError as error:
            raise JobUnreachableError.of(entry.name, entry.pid, str(error)) from None
    raise JobUnreachableError.of(entry.name, entry.pid, _why_silent(entry))


def _answers(
    connection: socket.socket, entry: JobEntry, deadline: float | None
) -> Iterator[Answer]:
    """One after the other, until the job says no more, or nobody is left to say it."""
    connection.settimeout(_LOOK_SECONDS)
    received = b""
    while True:
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            # A forked child of the driver's may hold the socket open after its death.
            if not entry.is_alive or (deadline is not None and time.monotonic() > deadline):
                return
            continue
        if not data:
            return
        *lines, received = (received + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _why_silent(entry: JobEntry) -> str:
    return "it gave no answer" if entry.is_alive else "its process has died"
