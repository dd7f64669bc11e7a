"""The event time of a task's input: which channels there are, and how far they have come."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.graph.partitioning import Forward, Rescale, rescale_targets
from penstock.runtime.batch_writer import takes_batches
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.operators.sources import spark_source
from penstock.runtime.physical import PhysicalEdge, PhysicalOperator, PhysicalPlan, Vertex
from penstock.runtime.timetables import Arrivals
from penstock.runtime.watermarks import (
    ACTIVE,
    AHEAD,
    IDLE,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    WATERMARK,
    Channel,
    Control,
    Valve,
)
from penstock.storage.manifest import SubtaskState

# Stands for all that comes by an edge: from the tasks of a Spark source, of which there are more or
# fewer in every epoch, or from producers that tell no watermarks.
_ALL = -1


class InputTime:
    """The valve of one subtask, over the channels of its plan."""

    def __init__(
        self, plan: PhysicalPlan, vertex: Vertex, subtask: int, base: SubtaskState | None
    ) -> None:
        edges = [plan.edges[index] for index in vertex.inputs]
        self._vertex = vertex.index
        self._loop = LoopEnd() if vertex.feedback else None
        self._sources = {edge.index: sources_of(plan, edge.source) for edge in edges}
        self._spark = {
            edge.index: (source, _assigner(plan, edge))
            for edge in edges
            if edge.stamped and (source := spark_source(plan.vertices[edge.source])) is not None
        }
        self._heard: dict[int, dict[int, tuple[int, bool]]] = {}
        self._told_ahead = [
            edge.index
            for edge in edges
            if edge.index in self._spark and not takes_batches(edge.partitioning)
        ]
        self._arrivals: dict[int, Arrivals] = {}
        self._quiet_told = False
        self._times: Mapping[str, tuple[int, bool]] = {}
        self._ended: frozenset[int] = frozenset()
        self._channels: dict[int, list[Channel]] = {}
        for edge in edges:
            # Input without timestamps has no event time, and holds that of the rest back.
            whole = edge.index in self._spark or not edge.stamped
            producers = [_ALL] if whole else _producers(plan, edge, subtask)
            self._channels[edge.index] = [(edge.index, producer) for producer in producers]
        reached = MIN_TIMESTAMP if base is None or base.watermark is None else base.watermark
        self._valve = Valve([c for found in self._channels.values() for c in found], reached)
        self.watermark = reached
        """Where the task is."""

    def reached(self) -> list[Control]:
        """What a new instance must be told: where the one before it was."""
        return [(WATERMARK, self.watermark)] if self.watermark > MIN_TIMESTAMP else []

    def begin_epoch(self, order: EpochOrder) -> None:
        self._times, self._ended = order.times, frozenset(order.ended)
        self._heard.clear()
        self._arrivals = {edge: Arrivals() for edge in self._told_ahead}
        self._quiet_told = False
        self._valve.begin_epoch()
        if self._loop is not None:
            self._loop.begin_epoch()

    def receive(self, edge: int, producer: int, control: Control) -> list[Control]:
        """What a control event of a channel means for the task."""
        if edge not in self._spark:
            return self._passed(self._valve.receive((edge, producer), control))
        # Other tasks may still have older records: known when all have been read, or from all
        # timetables.
        heard = self._heard.setdefault(edge, {})
        kind, time = control
        if kind == AHEAD:
            self._arrivals[edge].expect(producer, time)
            return []
        before, _ = heard.get(producer, (MIN_TIMESTAMP, True))
        heard[producer] = (time, False) if kind == WATERMARK else (before, kind == IDLE)
        return []

    def passed(self, edge: int, producer: int) -> list[Control]:
        """A payload of records is through: what follows for the task from what is still to come."""
        arrivals = self._arrivals.get(edge)
        if arrivals is None or not arrivals.passed(producer):
            return []
        reached = self._reached_by(edge)
        if reached is None:
            return []
        least = arrivals.least
        time = reached if least is None else min(least - 1, reached)
        return self._passed(self._valve.receive((edge, _ALL), (WATERMARK, time)))

    def before_records(self) -> list[Control]:
        """What follows from edges of Spark sources by which nothing comes in this epoch: it is
        known with the timetables, which come before all records of any edge."""
        if self._quiet_told:
            return []
        self._quiet_told = True
        controls: list[Control] = []
        for edge, arrivals in self._arrivals.items():
            if not arrivals.expected:
                for control in self._of_spark(edge):
                    controls += self._valve.receive((edge, _ALL), control)
        return self._passed(controls)

    def sender(self, edge: int, producer: int) -> int:
        """A number for who sent a payload that is the same in every epoch. Tasks of a Spark source
        have none, so they share one."""
        return 0 if edge in self._spark else producer

    def end_epoch(self, order: EpochOrder) -> list[Control]:
        """The epoch's input is through; if it is the final one, all input is."""
        if order.final or (self._loop is not None and self._vertex in order.ended):
            self._valve.watermark = self.watermark = MAX_TIMESTAMP
            active = [(ACTIVE, 0)] if self._loop is not None else []
            return [*active, (WATERMARK, MAX_TIMESTAMP)]
        passed: list[Control] = []
        for edge in self._spark:
            for control in self._of_spark(edge):
                passed += self._valve.receive((edge, _ALL), control)
        for edge, sources in self._sources.items():
            if sources and sources.issubset(order.ended):
                for channel in self._channels[edge]:
                    passed += self._valve.receive(channel, (WATERMARK, MAX_TIMESTAMP))
        passed = self._passed(passed)
        if self._loop is not None:
            everybody = all(sources.issubset(order.ended) for sources in self._sources.values())
            passed += self._loop.waiting(everybody)
        return passed

    def _passed(self, controls: list[Control]) -> list[Control]:
        if self._loop is not None:
            controls = self._loop.held_back(controls)
        for kind, time in controls:
            if kind == WATERMARK:
                self.watermark = time
        return controls

    def _of_spark(self, edge: int) -> list[Control]:
        """What the tasks of a Spark source have come to; those without a record have no say."""
        _, assigner = self._spark[edge]
        if self._sources[edge].issubset(self._ended):
            return [(WATERMARK, MAX_TIMESTAMP)]
        reached = self._reached_by(edge)
        if reached is not None:
            return [(WATERMARK, reached)]
        watermark, idle = self._times.get(assigner, (MIN_TIMESTAMP, False))
        return [(WATERMARK, watermark), (IDLE, 0)] if idle else [(WATERMARK, watermark)]

    def _reached_by(self, edge: int) -> int | None:
        """Where a Spark source is by what its tasks have told."""
        source, _ = self._spark[edge]
        active = [time for time, idle in self._heard.get(edge, {}).values() if not idle]
        return source.reached(active) if active else None


class LoopEnd:
    """Holds the end of time back in a loop's head: records that are still in the loop would all be
    late.

    Meanwhile the head stays where it was. But as long as another of its subtasks gets input, one
    whose own input has ended is idle, so that nobody waits for it. That must end when the last
    input does: what follows would else think that nothing is to be waited for. The order tells
    that, an epoch later; until then whose input has just ended is not idle.
    """

    def __init__(self) -> None:
        self._ended = self._just_ended = self._idle = False

    def begin_epoch(self) -> None:
        self._just_ended = False

    def held_back(self, controls: list[Control]) -> list[Control]:
        ended = (WATERMARK, MAX_TIMESTAMP)
        if ended in controls:
            self._ended = self._just_ended = True
        return [control for control in controls if control != ended]

    def waiting(self, everybody: bool) -> list[Control]:
        """What is to be said at an epoch's end; `everybody`: the input of all subtasks had ended
        before it."""
        idle = self._ended and not self._just_ended and not everybody
        if idle == self._idle:
            return []
        self._idle = idle
        return [(IDLE, 0) if idle else (ACTIVE, 0)]


def sources_of(plan: PhysicalPlan, vertex: int) -> frozenset[int]:
    """The vertices that a vertex gets its records from, by whatever way: sources, and heads of
    loops, which may go on when their own sources have ended."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = [vertex]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        before = [plan.edges[index].source for index in plan.vertices[at].inputs]
        if plan.vertices[at].feedback or not before:
            found.add(at)
        else:
            todo += before
    return frozenset(found)


def _assigner(plan: PhysicalPlan, edge: PhysicalEdge) -> str:
    """The uid of what gave timestamps to the records of an edge, in the task that sends them."""
    before: dict[int, PhysicalOperator] = {}
    sender: PhysicalOperator | None = None
    for operator in plan.vertices[edge.source].operators:
        for output in operator.outputs:
            if output.operator is not None:
                before[output.operator] = operator
            elif output.edge == edge.index:
                sender = operator
    operators = plan.vertices[edge.source].operators
    assert sender is not None
    while not getattr(sender.operator, "timestamps", False):
        sender = before[operators.index(sender)]
    return sender.uid


def _producers(plan: PhysicalPlan, edge: PhysicalEdge, subtask: int) -> list[int]:
    """The subtasks that send to this one."""
    senders = plan.vertices[edge.source].parallelism
    if isinstance(edge.partitioning, Forward):
        return [subtask]
    if isinstance(edge.partitioning, Rescale):
        receivers = plan.vertices[edge.target].parallelism
        return [s for s in range(senders) if subtask in rescale_targets(s, senders, receivers)]
    return list(range(senders))
