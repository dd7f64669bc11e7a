"""The event time of a task's input: which channels there are, and how far they have come."""

from __future__ import annotations

from penstock.graph.partitioning import Forward, Rescale, rescale_targets
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.physical import PhysicalEdge, PhysicalPlan, Vertex
from penstock.runtime.watermarks import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    WATERMARK,
    Channel,
    Control,
    Valve,
)
from penstock.storage.manifest import SubtaskState

# Stands for all tasks of a Spark source, of which there are more or fewer in every epoch.
_SPARK = -1


class InputTime:
    """The valve of one subtask, over the channels of its plan."""

    def __init__(
        self, plan: PhysicalPlan, vertex: Vertex, subtask: int, base: SubtaskState | None
    ) -> None:
        edges = [plan.edges[index] for index in vertex.inputs if plan.edges[index].stamped]
        self._spark = {edge.index for edge in edges if _from_spark(plan, edge)}
        self._heard: dict[int, dict[int, int]] = {}
        channels: list[Channel] = []
        for edge in edges:
            producers = [_SPARK] if edge.index in self._spark else _producers(plan, edge, subtask)
            channels += [(edge.index, producer) for producer in producers]
        unstamped = len(edges) < len(vertex.inputs)
        reached = MIN_TIMESTAMP if base is None or base.watermark is None else base.watermark
        # Input without timestamps has no event time, and holds that of the rest back.
        self._valve = Valve([*channels, (-1, -1)] if unstamped and channels else channels, reached)

    @property
    def watermark(self) -> int:
        return self._valve.watermark

    def reached(self) -> list[Control]:
        """What a new instance must be told: where the one before it was."""
        reached = self._valve.watermark
        return [(WATERMARK, reached)] if reached > MIN_TIMESTAMP else []

    def begin_epoch(self) -> None:
        self._heard.clear()
        self._valve.begin_epoch()

    def receive(self, edge: int, producer: int, control: Control) -> list[Control]:
        """What a control event of a channel means for the task."""
        if edge in self._spark:
            # Other tasks may still have older records: known when all have been read.
            if control[0] == WATERMARK:
                self._heard.setdefault(edge, {})[producer] = control[1]
            return []
        return self._valve.receive((edge, producer), control)

    def sender(self, edge: int, producer: int) -> int:
        """A number for who sent a payload that is the same in every epoch. Tasks of a Spark source
        have none, so they share one."""
        return 0 if edge in self._spark else producer

    def end_epoch(self, final: bool) -> list[Control]:
        """The epoch's input is through; if `final`, all input is."""
        if final:
            self._valve.watermark = MAX_TIMESTAMP
            return [(WATERMARK, MAX_TIMESTAMP)]
        controls: list[Control] = []
        for edge, heard in self._heard.items():
            reached = [time for time in heard.values() if time > MIN_TIMESTAMP]
            if reached:  # tasks without a record have no say
                controls += self._valve.receive((edge, _SPARK), (WATERMARK, min(reached)))
        return controls


def _from_spark(plan: PhysicalPlan, edge: PhysicalEdge) -> bool:
    return isinstance(plan.vertices[edge.source].operators[0].operator, SparkSource)


def _producers(plan: PhysicalPlan, edge: PhysicalEdge, subtask: int) -> list[int]:
    """The subtasks that send to this one."""
    senders = plan.vertices[edge.source].parallelism
    if isinstance(edge.partitioning, Forward):
        return [subtask]
    if isinstance(edge.partitioning, Rescale):
        receivers = plan.vertices[edge.target].parallelism
        return [s for s in range(senders) if subtask in rescale_targets(s, senders, receivers)]
    return list(range(senders))
