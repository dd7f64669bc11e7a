"""Whether a process that somebody wrote down is still the same one. Knows no jobs."""

from __future__ import annotations

import os
import subprocess

_STARTED = 19  # of the fields behind the command's name in /proc/<pid>/stat; see proc(5)


def start_mark(pid: int) -> str | None:
    """What tells a process from a later one with its number; None if there is no such process.

    That is when it started, as the kernel counts. A process that has ended and whose parent has not
    asked for its exit code yet counts as gone.
    """
    if os.path.exists("/proc/self/stat"):
        return _from_proc(pid)
    return _from_ps(pid)


def is_alive(pid: int, mark: str) -> bool:
    return start_mark(pid) == mark


def _from_proc(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The command's name is in parentheses, and may have some itself.
    fields = line.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else fields[_STARTED].decode()


def _from_ps(pid: int) -> str | None:
    command = ["ps", "-o", "state=,lstart=", "-p", str(pid)]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    state, _, started = shown.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
