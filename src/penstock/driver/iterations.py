"""The loops of a job as the driver sees them: what is in each, whether it has ended, and since when
it turns without input. Knows neither tasks nor executors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.input_time import sources_of
from penstock.runtime.operators.iteration import LoopHead
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan, Vertex
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import LoopState, Manifest

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoopReport:
    """One loop after an epoch."""

    records: int
    """How many go round once more."""
    turns_without_input: int
    """How many epochs in a row it has had records while no source gave any."""


class Iterations:
    """Lives as long as the driver: after a restart, turns and waiting are counted anew."""

    def __init__(
        self,
        plan: PhysicalPlan,
        warn_after_turns: int = 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self._warn_after = warn_after_turns
        heads = [vertex for vertex in plan.vertices if vertex.feedback]
        self._heads = {vertex.operators[0].uid: vertex for vertex in heads}
        within = {vertex.index: _in_one_cycle_with(plan, vertex, heads) for vertex in heads}
        self._inputs = {v.index: _sources_of(plan, v, within[v.index]) for v in heads}
        """What must have ended before a head has."""
        self._within = {
            vertex.index: {head.operators[0].uid for head in within[vertex.index]}
            for vertex in heads
        }
        """The loops that must be empty, since what is in them may come back to a head."""
        self._sources = {vertex.uid for vertex in plan.at_level(0)}
        self._ended: frozenset[int] = frozenset()
        self._turns = dict.fromkeys(self._heads, 0)
        self._empty_since: float | None = None
        self._most_wait = max((_head(v).max_wait_millis for v in heads), default=0) / 1000

    # Before an epoch

    def ended(self, base: Manifest | None) -> list[int]:
        """The heads that have no more to give: nothing is in their loop or one within it, and by
        the base's epoch all that they get records from had ended."""
        loops = set() if base is None else set(base.loops)
        return [
            vertex.index
            for uid, vertex in self._heads.items()
            if loops.isdisjoint((uid, *self._within[vertex.index]))
            and self._inputs[vertex.index] <= self._ended
        ]

    def over(self, base: Manifest | None) -> bool:
        """Whether the job may end as far as its loops are concerned, when its input has ended."""
        if base is not None and base.loops:
            self._empty_since = None
            return False
        if not self._most_wait:
            return True
        if self._empty_since is None:
            self._empty_since = self._now()
        return self._now() - self._empty_since >= self._most_wait

    # After one

    def stored(self, acknowledgements: Iterable[Acknowledgement]) -> dict[str, LoopState]:
        """What goes round once more, by the uid of the loop's head."""
        found: dict[str, LoopState] = {}
        # In an order of its own: how tasks happened to end must not show in what follows.
        for a in sorted(acknowledgements, key=lambda a: (a.vertex, a.subtask)):
            for uid, sent in a.loops.items():
                if sent["files"]:
                    before = found.get(uid, LoopState(0, ()))
                    files = tuple(FileInfo.from_json(file) for file in sent["files"])
                    records = before.records + sent["records"]
                    found[uid] = LoopState(records, before.files + files)
        return found

    def learn(
        self, ended: Collection[int], manifest: Manifest, records_in: Mapping[str, int]
    ) -> dict[str, LoopReport]:
        """An epoch has been committed, whose order said what had ended before it."""
        self._ended = frozenset(ended)
        read = any(records_in.get(uid, 0) for uid in self._sources)
        reports = {}
        for uid, vertex in self._heads.items():
            loop = manifest.loops.get(uid, LoopState(0, ()))
            self._turns[uid] = self._turns[uid] + 1 if loop.records and not read else 0
            if self._warn_after and self._turns[uid] == self._warn_after:
                _warn(vertex.operators[0], loop.records, self._warn_after)
            reports[uid] = LoopReport(loop.records, self._turns[uid])
        return reports


def _in_one_cycle_with(plan: PhysicalPlan, vertex: Vertex, heads: list[Vertex]) -> list[Vertex]:
    """The other heads from which records come to a head, and to which they go from it."""
    before = _before(plan, vertex)
    return [
        head
        for head in heads
        if head is not vertex and head.index in before and vertex.index in _before(plan, head)
    ]


def _before(plan: PhysicalPlan, vertex: Vertex) -> set[int]:
    """All vertices from which records come to a vertex, by loops as well."""
    found: set[int] = set()
    todo = [vertex]
    while todo:
        at = todo.pop()
        for index in (*at.inputs, *at.feedback):
            source = plan.edges[index].source
            if source not in found:
                found.add(source)
                todo.append(plan.vertices[source])
    return found


def _sources_of(plan: PhysicalPlan, head: Vertex, within: list[Vertex]) -> frozenset[int]:
    """What a head gets records from by its input, and what else is let into the loop behind it."""

    def by(edges: Iterable[int]) -> frozenset[int]:
        found = (sources_of(plan, plan.edges[index].source) for index in edges)
        return frozenset[int]().union(*found)

    cycle = [head, *within]
    elsewhere = by(index for v in cycle for index in (*v.inputs, *v.feedback))
    return by(head.inputs) | (elsewhere - {vertex.index for vertex in cycle})


def _head(vertex: Vertex) -> LoopHead:
    head = vertex.operators[0].operator
    assert isinstance(head, LoopHead)
    return head


def _warn(head: PhysicalOperator, records: int, turns: int) -> None:
    _log.warning(
        "%s (%s) has turned %d times without input and still has %d records in its loop; if it "
        "does not come to an end, look at what lets records out of it: what is given to "
        "close_with(...) must not take all of them",
        head.name,
        head.location,
        turns,
        records,
    )
