"""How many records the operators behind the head of a chain take.

Nobody counts them otherwise. A run is counted by two iterators of C, at a few tens of nanoseconds a
record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, count
from typing import Any

from penstock.runtime.operators.base import Emit, EmitRun, OpenOperator


class RecordCounts:
    """Of one task instance."""

    def __init__(self) -> None:
        self._counters: dict[str, Iterator[int]] = {}
        self._before: dict[str, int] = {}

    def of(self, uid: str, operator: OpenOperator) -> None:
        """Count what an operator takes from now on."""
        counter = self._counters[uid] = count(1)
        self._before[uid] = 0
        operator.process = _counted(operator.process, counter)
        if operator.run is not None:
            operator.run = _counted_run(operator.run, counter)

    def take(self) -> dict[str, int]:
        """The number of records since it was last asked."""
        found = {}
        for uid, counter in self._counters.items():
            now = next(counter)  # itself counts as one
            found[uid] = now - 1 - self._before[uid]
            self._before[uid] = now
        return found


def _counted(process: Emit, counter: Iterator[int]) -> Emit:
    def counting(value: Any) -> None:
        next(counter)
        process(value)

    return counting


def _counted_run(run: EmitRun, counter: Iterator[int]) -> EmitRun:
    def counting(values: Iterable[Any]) -> None:
        run(compress(values, counter))  # all numbers from 1 on are true

    return counting
