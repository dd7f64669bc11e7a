"""How many records the operators behind the head of a chain take.

Nobody counts them otherwise. Behind an operator that gives one record for each, it is known;
elsewhere a run is counted by two iterators of C, at a few tens of nanoseconds a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress, count
from typing import Any

from penstock.runtime.operators.base import Emit, EmitRun, OpenOperator
from penstock.runtime.operators.columns import ColumnOperator
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.operators.stateless import Map
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import Vertex

_ONE_FOR_EACH = (PythonSource, SparkSource, Map, AssignTime, ColumnOperator)


def told_by(vertex: Vertex, index: int) -> int | None:
    """Which operator of the chain takes as many records as this one does, if one is known to."""
    feeding = [
        (before, output)
        for before, operator in enumerate(vertex.operators)
        for output in operator.outputs
        if output.operator == index
    ]
    if len(feeding) != 1:
        return None
    before, output = feeding[0]
    alike = isinstance(vertex.operators[before].operator, _ONE_FOR_EACH) and output.tag is None
    return before if alike else None


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
