"""How much each of several Python sources reads, so that they keep pace in event time. Pure.

A day of one stream may be a thousand records and of another a million. If both read as many in an
epoch while a job is behind, the sparse one is soon days ahead, and operators where they meet keep
all of that until the other comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.graph.partitioning import ByKey
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP

_LEAST_SHARE = 1 / 32
"""Of the limit: what a source reads however far ahead it is, so that none ever stands still."""


@dataclass(frozen=True)
class Advance:
    """How a source that has more to read came along in the last epoch."""

    watermark: int
    millis_per_record: float
    """Of event time, for each record that one subtask reads."""

    def after(self, records: float) -> float:
        return self.watermark + records * self.millis_per_record


def shares(advances: dict[str, Advance], limit: int) -> dict[str, int]:
    """How many records a subtask of each source may read, if the one that comes least far with
    `limit` records may read as many: the others as many as bring them there, too."""
    if len(advances) < 2:
        return {}
    target = min(each.after(limit) for each in advances.values())
    least = max(1, int(limit * _LEAST_SHARE))
    return {
        uid: min(limit, max(least, round((target - each.watermark) / each.millis_per_record)))
        for uid, each in advances.items()
    }


class SourcePace:
    """Lives as long as the driver: after a restart it is found anew, within two epochs."""

    def __init__(self, plan: PhysicalPlan) -> None:
        sources = [v for v in plan.vertices if isinstance(v.operators[0].operator, PythonSource)]
        self._uids = {v.index: v.operators[0].uid for v in sources}
        self._last = {v.index: v.operators[-1].uid for v in sources}
        self._groups = _meeting(plan, [v.index for v in sources])
        self._watermarks: dict[int, int] = {}
        self._advances: dict[int, Advance] = {}

    def limits(self, limit: int) -> dict[str, int]:
        """Uid of a source → what a subtask of it may read, where that is less than `limit`."""
        found: dict[str, int] = {}
        for group in self._groups:
            advances = {self._uids[v]: self._advances[v] for v in group if v in self._advances}
            found.update(shares(advances, limit))
        return {uid: records for uid, records in found.items() if records < limit}

    def learn(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """An epoch has been committed."""
        if not self._groups:
            return
        watermarks: dict[int, int] = {}
        records: dict[int, int] = {}
        behind = set()
        for a in acknowledgements:
            if a.vertex in self._uids:
                at = a.watermarks.get(self._last[a.vertex], MIN_TIMESTAMP)
                watermarks[a.vertex] = min(at, watermarks.get(a.vertex, at))
                read = a.records_in.get(self._uids[a.vertex], 0)
                records[a.vertex] = max(read, records.get(a.vertex, 0))
                if a.cut_off:
                    behind.add(a.vertex)
        before, self._watermarks = self._watermarks, watermarks
        # Who has read all that there is keeps nobody waiting, and waits for nobody.
        self._advances = {v: a for v, a in self._advances.items() if v in behind}
        for vertex in behind:
            since, at = before.get(vertex, MIN_TIMESTAMP), watermarks[vertex]
            if MIN_TIMESTAMP < since < at < MAX_TIMESTAMP and records[vertex]:
                self._advances[vertex] = Advance(at, (at - since) / records[vertex])
            else:  # its time stands still, which says nothing about its records
                self._advances.pop(vertex, None)


def _meeting(plan: PhysicalPlan, sources: list[int]) -> list[list[int]]:
    """Groups of sources whose records meet by key, of more than one. Elsewhere nothing is kept of
    whoever is ahead: to hold it back would only make its results late."""
    keyed = {edge.target for edge in plan.edges if isinstance(edge.partitioning, ByKey)}
    reached = {source: _downstream(plan, source) & keyed for source in sources}
    groups: list[list[int]] = []
    for source in sources:
        joined, apart = [source], []
        for group in groups:
            if any(reached[source] & reached[other] for other in group):
                joined += group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [group for group in groups if len(group) > 1]


def _downstream(plan: PhysicalPlan, source: int) -> set[int]:
    found, ahead = {source}, [source]
    while ahead:
        at = ahead.pop()
        new = {edge.target for edge in plan.edges if edge.source == at} - found
        found |= new
        ahead += new
    return found
