"""How much each of several Python sources reads, so that they keep pace in event time. Pure.

A day of one stream may be a thousand records and of another a million. If both read as many in an
epoch while a job is behind, the sparse one is soon days ahead, and operators where they meet keep
all of that until the other comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.common.watermark_strategy import WatermarkKind
from penstock.graph.partitioning import ByKey
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import PhysicalPlan, Vertex
from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP

_LEAST_SHARE = 1 / 32
"""Of the limit: what a source reads however far ahead it is, so that none ever stands still."""


@dataclass(frozen=True)
class Advance:
    """How a subtask of a source that has more to read comes along."""

    watermark: int
    millis_per_record: float
    """Of event time."""

    def until(self, watermark: int, further: float) -> float:
        """How many records bring it so much further than a watermark."""
        # The difference first: watermarks are too large for small differences of floats.
        return (watermark - self.watermark + further) / self.millis_per_record


def shares(advances: dict[str, Advance], limit: int) -> dict[str, int]:
    """How many records a subtask of each source may read, if the one that comes least far with
    `limit` records may read as many: the others as many as bring them there, too."""
    if len(advances) < 2:
        return {}
    slowest = min(advances, key=lambda uid: _reach(advances, uid, limit))
    at, further = advances[slowest].watermark, limit * advances[slowest].millis_per_record
    least = max(1, int(limit * _LEAST_SHARE))
    return {
        uid: limit if uid == slowest else min(limit, max(least, round(each.until(at, further))))
        for uid, each in advances.items()
    }


def _reach(advances: dict[str, Advance], uid: str, limit: int) -> float:
    """How far `limit` records bring a source, from where the first of all is."""
    first = min(each.watermark for each in advances.values())
    return advances[uid].watermark - first + limit * advances[uid].millis_per_record


@dataclass
class _Moved:
    """Where a subtask is in event time, and what it has read since it came there."""

    watermark: int
    records: int = 0
    advance: Advance | None = None
    """How it came there; None, if it has not moved yet."""

    def on(self, watermark: int, records: int) -> None:
        """Time may stand still for some epochs, as it does if days are all that it is told in."""
        self.records += records
        if self.watermark < watermark:
            if self.watermark > MIN_TIMESTAMP and self.records:
                pace = (watermark - self.watermark) / self.records
                self.advance = Advance(watermark, pace)
            self.watermark, self.records = watermark, 0


class SourcePace:
    """Lives as long as the driver: after a restart it is found anew, within two epochs."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._groups = _meeting(plan)
        self._vertices = {v: plan.vertices[v] for group in self._groups for v in group}
        self._timed = {v: _ways_to_keys(plan, vertex) for v, vertex in self._vertices.items()}
        self._moved: dict[tuple[int, int], _Moved] = {}
        """Of the subtasks that had more to read. Who has read all that there is keeps nobody
        waiting, and waits for nobody."""

    def limits(self, limit: int) -> dict[str, int]:
        """Uid of a source → what a subtask of it may read, where that is less than `limit`."""
        found: dict[str, int] = {}
        for group in self._groups:
            advances: dict[str, Advance] = {}
            for (vertex, _), moved in self._moved.items():
                if vertex in group and moved.advance is not None:
                    uid = self._vertices[vertex].operators[0].uid
                    known = advances.setdefault(uid, moved.advance)
                    if moved.advance.watermark < known.watermark:
                        advances[uid] = moved.advance
            found.update(shares(advances, limit))
        return {uid: records for uid, records in found.items() if records < limit}

    def learn(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """An epoch has been committed."""
        for a in acknowledgements:
            if a.vertex not in self._vertices:
                continue
            subtask = (a.vertex, a.subtask)
            at = min(a.watermarks.get(uid, MIN_TIMESTAMP) for uid in self._timed[a.vertex])
            if not a.cut_off or at >= MAX_TIMESTAMP:
                self._moved.pop(subtask, None)
            elif subtask in self._moved:
                read = a.records_in.get(self._vertices[a.vertex].uid, 0)
                self._moved[subtask].on(at, read)
            else:
                self._moved[subtask] = _Moved(at)


def _meeting(plan: PhysicalPlan) -> list[list[int]]:
    """Groups of sources whose records meet by key, of more than one. Elsewhere nothing is kept of
    whoever is ahead: to hold it back would only make its results late."""
    groups: list[list[int]] = []
    reached = {v.index: _downstream(plan, v.index) & _keyed(plan) for v in plan.vertices}
    for source in filter(_has_own_time, plan.vertices):
        joined, apart = [source.index], []
        for group in groups:
            if any(reached[source.index] & reached[other] for other in group):
                joined += group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [group for group in groups if len(group) > 1]


def _has_own_time(vertex: Vertex) -> bool:
    """Whether it starts with a source whose time comes of what it reads, not of the clock."""
    head = vertex.operators[0].operator
    if not isinstance(head, PythonSource):
        return False
    assigned = [head.time, *(o.operator for o in vertex.operators)]
    kinds = {time.strategy.kind for time in assigned if isinstance(time, AssignTime)}
    return WatermarkKind.INGESTION not in kinds


def _ways_to_keys(plan: PhysicalPlan, source: Vertex) -> list[str]:
    """The operators of a source's chain by which its records leave for where they meet others."""
    keyed = _keyed(plan)
    ways = {edge.index for edge in plan.edges if keyed & _downstream(plan, edge.target)}
    return [o.uid for o in source.operators if any(output.edge in ways for output in o.outputs)]


def _keyed(plan: PhysicalPlan) -> set[int]:
    return {edge.target for edge in plan.edges if isinstance(edge.partitioning, ByKey)}


def _downstream(plan: PhysicalPlan, vertex: int) -> set[int]:
    """Itself, and whatever its records may come to."""
    found, ahead = {vertex}, [vertex]
    while ahead:
        at = ahead.pop()
        new = {edge.target for edge in plan.edges if edge.source == at} - found
        found |= new
        ahead += new
    return found
