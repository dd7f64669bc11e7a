"""The jobs of this user: those that run, each in a file of its own, and the last that have ended.

::

    <user's state directory>/
      jobs/<run id>.json     a job that runs, or whose process has died
      jobs/<run id>.sock     where it listens; see `control`
      ended/<run id>.json    a job that has ended, or was found dead

Nothing here is needed to run a job or to go on with one, so writing is quick rather than durable.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from penstock.common.user_directory import user_directory
from penstock.driver.processes import is_alive

_ENDED_KEPT = 50
LOST = "LOST"
"""The outcome of a job whose process has died without a word."""


@dataclass(frozen=True)
class JobEntry:
    """What is known of a job from outside of its process."""

    run_id: str
    job_id: str
    name: str
    program: str
    arguments: list[str]
    pid: int
    process_mark: str
    """Tells the process from a later one with its number."""
    host: str
    executor: str
    parallelism: int
    root: str | None
    """The job's own directory of checkpoints; None if it goes when the job ends."""
    savepoint_dir: str | None
    started: int
    """Milliseconds since 1970, like `ended`."""
    socket: str | None
    """Where the process listens; None if it does not."""
    ended: int | None = None
    outcome: str | None = None
    error: str | None = None

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, as far as this machine can tell."""
        return self.outcome is None and (not self.is_here or is_alive(self.pid, self.process_mark))


def jobs_directory() -> str:
    return os.path.join(user_directory(), "jobs")


def _ended_directory() -> str:
    return os.path.join(user_directory(), "ended")


def enter(entry: JobEntry) -> None:
    """Write down that a job runs. OSError if that is not possible."""
    _write(jobs_directory(), entry)


def leave(entry: JobEntry, outcome: str, error: str | None = None) -> JobEntry:
    """Write down that a job has ended."""
    ended = replace(entry, ended=int(time.time() * 1000), outcome=outcome, error=error, socket=None)
    try:
        _write(_ended_directory(), ended)
        _forget_oldest()
    finally:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(jobs_directory(), _file_name(entry)))
    return ended


def running() -> list[JobEntry]:
    """The jobs that run, here or on other hosts, the newest last."""
    return [entry for entry in _read_all(jobs_directory()) if entry.is_alive]


def bury_dead() -> list[JobEntry]:
    """The jobs that died since somebody looked; they are among the ended ones from now on."""
    dead = [entry for entry in _read_all(jobs_directory()) if not entry.is_alive]
    return [_buried(entry) for entry in dead if not _has_left(entry)]


def ended() -> list[JobEntry]:
    """The last jobs that have ended, the newest last."""
    return sorted(_read_all(_ended_directory()), key=lambda entry: entry.ended or 0)


def _has_left(entry: JobEntry) -> bool:
    """Whether it ended in order after all, between two looks at it."""
    return os.path.exists(os.path.join(_ended_directory(), _file_name(entry)))


def _buried(entry: JobEntry) -> JobEntry:
    if entry.socket is not None:
        with suppress(OSError):
            os.unlink(entry.socket)
    with suppress(OSError):  # a home that can only be read
        return leave(entry, LOST)
    return replace(entry, outcome=LOST)


def _forget_oldest() -> None:
    found = list(os.scandir(_ended_directory()))
    if len(found) > _ENDED_KEPT:
        with suppress(FileNotFoundError):  # another driver does the same
            found.sort(key=lambda file: file.stat().st_mtime_ns)
            for file in found[:-_ENDED_KEPT]:
                os.unlink(file.path)


def _file_name(entry: JobEntry) -> str:
    return f"{entry.run_id}.json"


def _write(directory: str, entry: JobEntry) -> None:
    make_private(directory)
    path = os.path.join(directory, _file_name(entry))
    # Renamed into place: whoever lists the jobs at the same time finds the whole of it.
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(asdict(entry), file)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def make_private(directory: str) -> None:
    """A directory that is nobody else's business."""
    if not os.path.isdir(directory):
        os.makedirs(directory, exist_ok=True)
        os.chmod(directory, 0o700)


def _read_all(directory: str) -> list[JobEntry]:
    return sorted(_read(directory), key=lambda entry: (entry.started, entry.run_id))


def _read(directory: str) -> Iterator[JobEntry]:
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        if name.endswith(".json"):
            entry = _parsed(os.path.join(directory, name))
            if entry is not None:
                yield entry


def _parsed(path: str) -> JobEntry | None:
    """None for what went meanwhile, and for what another version has written."""
    try:
        with open(path, encoding="utf-8") as file:
            raw: dict[str, Any] = json.load(file)
        known = {field.name for field in fields(JobEntry)}
        return JobEntry(**{key: value for key, value in raw.items() if key in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
