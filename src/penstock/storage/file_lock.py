"""An exclusive lock between processes, which the kernel frees when the holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import StateError

# A holder works for seconds, when it rebuilds a large store for minutes.
TIMEOUT_SECONDS = 600.0


class FileLock:
    """flock on a file of its own; nested use by the same object is counted."""

    def __init__(self, path: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._path = path
        self._timeout = timeout
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        # Python opens without inheritance, so a child process cannot keep the lock alive.
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._wait_for(fd)
            self._depth = 1
            yield
        finally:
            self._depth = 0
            os.close(fd)

    def _wait_for(self, fd: int) -> None:
        give_up = time.monotonic() + self._timeout
        pause = 0.001
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise StateError(
                        f"{self._path} was held by another process for {self._timeout:.0f} s; "
                        "look for a hanging worker on this machine and end it"
                    ) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
