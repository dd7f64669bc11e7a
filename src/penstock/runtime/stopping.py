"""Which runs were stopped, for tasks of this process that wait for something outside.

Only a driver in the same process can say so; elsewhere Spark ends the tasks of a stopped run.
"""

from __future__ import annotations

_stopped: set[str] = set()


def stop(run_id: str) -> None:
    _stopped.add(run_id)


def start(run_id: str) -> None:
    _stopped.discard(run_id)


def is_stopped(run_id: str) -> bool:
    return run_id in _stopped
