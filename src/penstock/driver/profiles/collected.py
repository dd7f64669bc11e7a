"""All that was told of where a job's time goes, over its epochs, subtasks and restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.driver.epoch_report import EpochReport
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.profiling.samples import TaskProfile

# Of a whole job: a flame graph with more of them is not looked at.
_MOST_STACKS = 50_000


@dataclass
class Steps:
    """Seconds of the driver's clock."""

    starting: float = 0.0
    """Until the first epoch began."""
    order: float = 0.0
    in_tasks: float = 0.0
    """Of running: the longest task of each stage, one stage after the other."""
    engine: float = 0.0
    """Of running: all the rest, which is planning, scheduling and moving rows."""
    commit: float = 0.0
    between: float = 0.0
    """Neither before the first epoch nor in one that was committed."""


@dataclass
class CollectedProfile:
    """Of one job. `in_turn`: tasks run one after the other, not side by side."""

    plan: PhysicalPlan
    in_turn: bool
    interval: float
    clock: Callable[[], float] = time.perf_counter
    tasks: TaskProfile = field(default_factory=TaskProfile)
    records: dict[str, int] = field(default_factory=dict)
    """Operator uid → records that it took."""
    subtasks: dict[str, set[int]] = field(default_factory=dict)
    """Vertex uid → its subtasks that have been at work."""
    steps: Steps = field(default_factory=Steps)
    epochs: int = 0
    failed_epochs: int = 0
    _begun: float = 0.0
    _first: float | None = None
    _in_epochs: float = 0.0

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def acknowledged(self, acknowledgements: list[Acknowledgement], seconds: float) -> None:
        """An epoch was run, for so long; it may still turn out to have failed."""
        if self._first is None:
            self._first = self.clock() - seconds
        for a in acknowledgements:
            if a.profile is not None:
                self._add(a.profile)
            if a.vertex >= 0:
                vertex = self.plan.vertices[a.vertex]
                self.subtasks.setdefault(vertex.uid, set()).add(a.subtask)
                head = vertex.operators[0].uid
                for number in a.records_in.values():
                    self.records[head] = self.records.get(head, 0) + number
        in_tasks = min(seconds, self._in_tasks(acknowledgements))
        self.steps.in_tasks += in_tasks
        self.steps.engine += seconds - in_tasks
        self._in_epochs += seconds
        if any(a.error is not None or a.freeze_edges for a in acknowledgements):
            self.failed_epochs += 1

    def committed(self, report: EpochReport) -> None:
        self.epochs += 1
        for step in ("order", "commit"):
            seconds = report.seconds_by_step.get(step, 0.0)
            setattr(self.steps, step, getattr(self.steps, step) + seconds)
            self._in_epochs += seconds

    def end(self) -> float:
        """The job is over; how long it took."""
        now = self.clock()
        first = now if self._first is None else self._first
        self.steps.starting = first - self._begun
        self.steps.between = max(0.0, now - first - self._in_epochs)
        return now - self._begun

    def _add(self, found: TaskProfile) -> None:
        for spot, micros in found.micros.items():
            self.tasks.add(spot, micros, _MOST_STACKS)
        self.tasks.samples += found.samples
        for uid, number in found.records.items():
            self.records[uid] = self.records.get(uid, 0) + number

    def _in_tasks(self, acknowledgements: Iterable[Acknowledgement]) -> float:
        """How long tasks had it in hand. Those of one level share theirs with one another."""
        longest: dict[tuple[int, int], float] = {}
        for a in acknowledgements:
            if a.vertex >= 0:
                place = (self.plan.vertices[a.vertex].level, a.subtask)
                longest[place] = max(longest.get(place, 0.0), a.seconds)
        if self.in_turn:
            return sum(longest.values())
        levels: dict[int, float] = {}
        for (level, _), seconds in longest.items():
            levels[level] = max(levels.get(level, 0.0), seconds)
        return sum(levels.values())
