"""What an epoch took, and how much of that was work on records. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import PhysicalPlan


@dataclass(frozen=True)
class EpochCost:
    """What an epoch took, and whether there was more to read."""

    seconds: float
    """From the end of the epoch before to its own, without pauses that were asked for."""
    working: float
    """Of these, the time in which tasks worked on records."""
    records: int
    """The most that one subtask of a source has read."""
    cut_off: bool
    """Whether a source was stopped by the limit, not by its end."""

    @property
    def fixed(self) -> float:
        return max(0.0, self.seconds - self.working)

    @property
    def fixed_share(self) -> float:
        return self.fixed / self.seconds if self.seconds > 0 else 0.0


def cost_of(
    plan: PhysicalPlan, acknowledgements: list[Acknowledgement], seconds: float, slots: int
) -> EpochCost:
    """The cost of an epoch that took so many seconds, on so many slots."""
    levels: dict[int, dict[tuple[int, int], float]] = {}
    records = 0
    for a in acknowledgements:
        vertex = plan.vertices[a.vertex]
        head = vertex.operators[0]
        # Vertices of a level share their tasks, but for sources of Spark's.
        task = (a.vertex if isinstance(head.operator, SparkSource) else -1, a.subtask)
        tasks = levels.setdefault(vertex.level, {})
        tasks[task] = max(a.seconds, tasks.get(task, 0.0))
        if isinstance(head.operator, PythonSource):
            records = max(records, a.records_in.get(vertex.uid, 0))
    working = working_seconds((tasks.values() for tasks in levels.values()), slots)
    cut_off = any(a.cut_off for a in acknowledgements)
    return EpochCost(seconds, min(working, seconds), records, cut_off)


def at_their_limit(
    plan: PhysicalPlan, acknowledgements: list[Acknowledgement], held_back: Collection[str]
) -> bool:
    """Whether a source might have read more, but for those that were held back for others' sake."""
    heads = (plan.vertices[a.vertex].operators[0].uid for a in acknowledgements if a.cut_off)
    return any(uid not in held_back for uid in heads)


def working_seconds(levels: Iterable[Collection[float]], slots: int) -> float:
    """How long tasks worked, of which each level has some that run side by side as far as there
    are slots, and one level after the other."""
    return sum(max(*tasks, sum(tasks) / slots) for tasks in levels if tasks)
