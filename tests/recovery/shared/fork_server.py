"""A process that has imported Penstock and forks a process for each script it is asked to run.

A script that is started thus finds all it imports loaded; apart from that its process is one of its
own: what it does, how it dies and what it leaves behind is not the server's. Started by
`forked_process.ForkServer`, with the descriptor of a socket as argument. Spark is not loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import penstock

_MOST_BYTES = 1 << 20
_NOT_LOADED = (
    "spark",
    "penstock.__main__",
    "penstock.cli",
    "penstock.demo",
    "penstock.state_processor",
    "penstock.testing",
)


def load_penstock() -> None:
    """All of it but what is for Spark."""
    _load(penstock.__path__, "penstock.")
    assert "pyspark" not in sys.modules
    assert threading.active_count() == 1, "a fork has only the thread that forks"


def _load(path: Iterable[str], prefix: str) -> None:
    for found in pkgutil.iter_modules(path, prefix):
        if not any(part in found.name for part in _NOT_LOADED):
            module = importlib.import_module(found.name)
            if found.ispkg:
                _load(module.__path__, f"{found.name}.")


def serve(requests: socket.socket) -> dict[str, Any]:
    """Returns in the process of a script, with what it is to be."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    while True:
        message, descriptors, *_ = socket.recv_fds(requests, _MOST_BYTES, 3)
        if not message:
            sys.exit()
        out, err, answers = descriptors
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            script = os.fork()
            if script == 0:
                os.close(answers)
                _stand_alone(out, err)
                request: dict[str, Any] = json.loads(message)
                return request
            _wait_for(script, answers)
        for descriptor in descriptors:
            os.close(descriptor)


def _wait_for(script: int, answers: int) -> None:
    """Tell who it is, then how it ended: only a parent gets to know that."""
    os.write(answers, f"{script}\n".encode())
    _, status = os.waitpid(script, 0)
    os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _stand_alone(out: int, err: int) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for own, standard in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(own, standard)
        os.close(own)


def run(script: str, arguments: list[str], environment: dict[str, str]) -> None:
    """As `python script arguments` would."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    load_penstock()
    run(**serve(socket.socket(fileno=int(sys.argv[1]))))
