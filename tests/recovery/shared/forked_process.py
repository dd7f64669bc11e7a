"""Processes of a `fork_server`, to be handled like those of `subprocess`."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_SERVER = Path(__file__).with_name("fork_server.py")
_LONGEST_START = 120


class ForkServer:
    """One server. Its processes have its seed for the hashes of strings."""

    def __init__(self, hash_seed: int) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            )

    def start(
        self, command: list[str], environment: Mapping[str, str], out: IO[bytes], err: IO[bytes]
    ) -> ForkedProcess:
        """`command` is a script and its arguments."""
        script, *arguments = command
        request = {"script": script, "arguments": arguments, "environment": dict(environment)}
        answers, theirs = os.pipe()
        try:
            descriptors = [out.fileno(), err.fileno(), theirs]
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
        finally:
            os.close(theirs)
        return ForkedProcess(command, answers)

    def close(self) -> None:
        self._requests.close()
        self._process.wait(30)


class ForkedProcess:
    """A script at work. It heads a session and a process group of its own."""

    def __init__(self, command: list[str], answers: int) -> None:
        self.returncode: int | None = None
        self._command = command
        self._answers = os.fdopen(answers, "rb", buffering=0)
        if not self._answered(_LONGEST_START):
            raise subprocess.TimeoutExpired(command, _LONGEST_START)
        self.pid = self._answer()

    def poll(self) -> int | None:
        if self.returncode is None and self._answered(0):
            self.returncode = self._answer()
            self._answers.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None and not self._answered(timeout):
            raise subprocess.TimeoutExpired(self._command, timeout)
        code = self.poll()
        assert code is not None
        return code

    def _answered(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], seconds)[0])

    def _answer(self) -> int:
        line = self._answers.readline()
        assert line, f"nobody tells what became of {self._command}"
        return int(line)
