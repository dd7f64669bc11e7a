"""What the operating system knows about a contender's processes (Linux's /proc)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.1


def cpu_seconds() -> dict[str, float]:
    """Processor time up to now: of the driver (this process), its JVM, its Python workers."""
    spent = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for pid in _family():
        with suppress(OSError):
            # Its own time, and that of children which have ended.
            ticks = sum(int(field) for field in _stat(pid)[11:15])
            spent[_kind(pid)] += ticks / _TICKS
    return spent


def bytes_written() -> int:
    """Bytes that the living Python workers have sent to storage."""
    return sum(_io(pid) for pid in _workers())


@dataclass
class Memory:
    """The most that was seen, in bytes."""

    one_worker: int = 0
    all_workers: int = 0


@contextmanager
def watched_memory() -> Iterator[Memory]:
    """Watch the memory of the Python workers while the block runs."""
    seen = Memory()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            sizes = [_resident(pid) for pid in _workers()]
            seen.one_worker = max([seen.one_worker, *sizes])
            seen.all_workers = max(seen.all_workers, sum(sizes))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def _family() -> list[int]:
    """This process and all below it."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                parents[int(entry)] = int(_stat(int(entry))[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _workers() -> list[int]:
    return [pid for pid in _family() if _kind(pid) == "workers"]


def _kind(pid: int) -> str:
    command = _command(pid)
    if b"java" in command.split(b"\0")[0]:
        return "jvm"
    return "workers" if b"pyspark.daemon" in command else "driver"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[str]:
    """The fields behind the command's name, which may have spaces: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _resident(pid: int) -> int:
    """Memory of its own: pages shared with other workers are counted in part."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _io(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
