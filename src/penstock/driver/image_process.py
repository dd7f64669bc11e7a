"""The process that rewrites state files for a driver: started when there is work, kept for more.

To start Python and load Arrow takes half a second of a processor, several times what the rewriting
of a small state takes; a job with short epochs would pay that every few of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

_LOW_PRIORITY = ["nice", "-n", "10"] if shutil.which("nice") else []

Answer = dict[str, Any]


class ImageProcess:
    """One order at a time; `close` may be called from another thread at any moment."""

    def __init__(self, closed: threading.Event) -> None:
        self._closed = closed
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, order: Mapping[str, object]) -> Answer | None:
        """What the process answers, None if it was stopped; OSError if it failed."""
        line = json.dumps(order).encode() + b"\n"
        known = self._process
        if known is not None:
            answered = self._exchange(known, line, order)
            if answered or known.wait() != 0:
                return self._read(known, answered)
            # It ended for want of work, just before it was asked.
        if self._closed.is_set():
            return None
        process = self._start()
        return self._read(process, self._exchange(process, line, order))

    def close(self) -> None:
        """End it, whatever it does. `closed` is set before, so that no other is started."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        """Wait for its end, once it is closed and nobody asks it any more."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            _close_pipes(self._process)
        self._process = process = subprocess.Popen(
            [*_LOW_PRIORITY, sys.executable, "-m", "penstock.storage.images"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            start_new_session=True,  # a Ctrl-C is for the driver, which sees to the process
        )
        if self._closed.is_set():
            process.kill()  # who closed it since may not have seen the process
        return process

    def _exchange(
        self, process: subprocess.Popen[bytes], line: bytes, order: Mapping[str, object]
    ) -> Answer | None:
        """The answer to this very order; None if the process ended without one."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            return None
        for answered in process.stdout:
            found = _answer_in(answered)
            if found is not None and found.get("name") == order["name"]:
                return found
            # Whatever else is printed there, by a module that Python loads when it starts, say.
        return None

    def _read(self, process: subprocess.Popen[bytes], answer: Answer | None) -> Answer | None:
        if self._closed.is_set():
            return None
        if answer is None or "files" not in answer:
            self._process = None
            code = process.wait()
            _close_pipes(process)
            raise ChildProcessError(f"exit code {code}" if answer is None else _problem(answer))
        return answer


def _answer_in(line: bytes) -> Answer | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _problem(answer: Answer) -> str:
    return f"{answer.get('error')}: {answer.get('message')}"[-300:]


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # of what was not written any more
                pipe.close()
