"""One driver per job directory: a lock that dies with its holder.

flock works between the machines that mount the directory over NFS (Linux ≥ 2.6.12) as well as on a
local disk. The file's content is for messages only.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.errors import CheckpointUnwritableError, LeaseHeldError

FILE_NAME = "lease.lock"


class Lease:
    """Made by `acquire`."""

    # Strong: a lease that nobody refers to any more is still held until the process ends.
    _held: ClassVar[set[Lease]] = set()

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd
        self._held.add(self)

    @classmethod
    def acquire(cls, directory: str, owner_info: Mapping[str, Any] | None = None) -> Lease:
        """Take the lease, or say who has it; `owner_info` is added to what others see."""
        path = os.path.join(directory, FILE_NAME)
        while True:
            fd = _open(path)
            try:
                if _locked(fd, directory, path):
                    _write(path, fd, {**(owner_info or {}), **_this_process()})
                    return cls(path, fd)
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def release(self) -> None:
        """Give the lease back; the file stays, since deleting it would let two hold it."""
        fd = self._forget()
        if fd is not None:
            # Not by closing alone: a child that was forked a moment ago may still have it open.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _forget(self) -> int | None:
        fd, self._fd = self._fd, None
        self._held.discard(self)
        return fd

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def is_held(directory: str) -> bool:
    """Whether a job runs in a directory, which stays untouched."""
    try:
        fd = os.open(os.path.join(directory, FILE_NAME), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _drop_inherited() -> None:
    # A forked child shares the open file, and would keep the lease after the driver's death.
    for lease in list(Lease._held):
        fd = lease._forget()
        if fd is not None:
            os.close(fd)


os.register_at_fork(after_in_child=_drop_inherited)


def _open(path: str) -> int:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise CheckpointUnwritableError.at(path, error) from error


def _locked(fd: int, directory: str, path: str) -> bool:
    """Lock the file; False if that is of no use, since its holder has deleted the directory."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LeaseHeldError.of(directory, _describe(_read(fd))) from None
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _this_process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    }


def _read(fd: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(fd, 1 << 16, 0))
    except ValueError:
        # New, or the holder is just writing.
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: str, fd: int, content: dict[str, Any]) -> None:
    data = json.dumps(content).encode()
    try:
        # Padded rather than truncated first: a reader never finds the file empty.
        size = os.fstat(fd).st_size
        os.pwrite(fd, data.ljust(size), 0)
        os.fsync(fd)
    except OSError as error:
        raise CheckpointUnwritableError.at(path, error) from error


def _describe(content: Mapping[str, Any]) -> str:
    if not content:
        return "another driver that is just starting"
    job = f" ({content['job']})" if "job" in content else ""
    return (
        f"process {content.get('pid')} on {content.get('host')}{job}, "
        f"since {content.get('started')}"
    )
