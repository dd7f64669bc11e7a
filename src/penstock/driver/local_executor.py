"""Runs the plan in this process, stage by stage, with no JVM: for tests and debugging.

Everything but the transport is what Spark's tasks run: the plan goes through its file, rows are
ordered as an exchange would order them, instances live from epoch to epoch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from penstock.driver.epoch_loop import EpochLoop, RunAgain
from penstock.errors import EngineError, UnsupportedFeatureError
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.payload import ACKNOWLEDGEMENT, Row, read_header
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.plan_file import load_plan
from penstock.runtime.stopping import start, stop
from penstock.runtime.tasks import (
    close_idle,
    read_acknowledgement,
    run_python_sources,
    run_stage,
)
from penstock.storage.manifest import Manifest

_IDLE_SECONDS = 0.02


class LocalExecutor:
    """One thread, no parallelism in time; parallelism in subtasks is as planned."""

    def __init__(self, plan: PhysicalPlan, plan_path: str, interval: float) -> None:
        for vertex in plan.vertices:
            head = vertex.operators[0]
            if isinstance(head.operator, SparkSource):
                raise UnsupportedFeatureError(
                    f"source {head.name!r} ({head.location}) reads a Spark DataFrame, which needs "
                    "the Spark executor; set penstock.executor to spark"
                )
        self._plan = load_plan(plan_path)
        start(self._plan.settings.run_id)
        self._interval = interval
        self._closed = threading.Event()

    def run(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        """Epochs until the input ends or `stopping` says so."""
        try:
            self._run(loop, stopping)
        finally:
            if not loop.ended:  # else they may have to be told
                self._close_instances(loop)

    def _run(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None:
        if self._plan.settings.batch:
            _close(loop, self.execute, final=True)
            return
        loop.paced = loop.paced or self._interval > 0
        earliest = 0.0
        while not loop.ended:
            final = loop.at_end()
            if not final:
                self._closed.wait(max(0.0, earliest - time.monotonic(), loop.pause_left()))
            if stopping():
                break
            started = time.monotonic()
            before = loop.base
            _close(loop, self.execute, final)
            earliest = started + self._pace(before, loop)

    def _pace(self, before: Manifest | None, loop: EpochLoop) -> float:
        """Seconds from the beginning of one epoch to that of the next."""
        if loop.looping and loop.exhausted():
            return 0
        after = loop.base
        quiet = before is not None and after is not None and before.sources == after.sources
        return max(self._interval, _IDLE_SECONDS if quiet and not loop.looping else 0)

    def say_farewell(self, loop: EpochLoop) -> None:
        """Let who listens hear of the job's last epoch."""
        try:
            loop.say_farewell(self.execute)
        finally:
            self._close_instances(loop)

    def drain(self, loop: EpochLoop) -> None:
        """Bring event time to its end, though there may be more to read."""
        start(self._plan.settings.run_id)
        while not loop.ended:
            _close(loop, self.execute, final=True)
        self._close_instances(loop)

    def _close_instances(self, loop: EpochLoop) -> None:
        """This process may live on, with what functions and their threads hold."""
        close_idle(self._plan.settings.run_id, None if loop.base is None else loop.base.epoch)

    def execute(self, order: EpochOrder) -> list[Acknowledgement]:
        """One epoch: all stages, each task after the other."""
        rows = self._sources(order)
        for level in range(1, self._plan.levels + 1):
            rows = self._stage(level, order, rows)
        return [
            read_acknowledgement(row.payload)
            for row in rows
            if read_header(row.payload).kind == ACKNOWLEDGEMENT
        ]

    def _sources(self, order: EpochOrder) -> list[Row]:
        subtasks = max(
            (
                vertex.parallelism
                for vertex in self._plan.at_level(0)
                if isinstance(vertex.operators[0].operator, PythonSource)
            ),
            default=0,
        )
        return self._gathered(run_python_sources(self._plan, i, order) for i in range(subtasks))

    def _stage(self, level: int, order: EpochOrder, rows: list[Row]) -> list[Row]:
        partitions = self._plan.partitions(level)
        received: list[list[Row]] = [[] for _ in range(partitions)]
        for row in rows:
            received[row.partition % partitions].append(row)
        return self._gathered(
            run_stage(
                self._plan,
                level,
                index,
                order,
                sorted(part, key=lambda row: (row.time, row.producer, row.sequence)),
            )
            for index, part in enumerate(received)
        )

    def _gathered(self, tasks: Iterable[Iterable[list[Row]]]) -> list[Row]:
        found: list[Row] = []
        for task in tasks:
            for rows in task:
                found += rows
                if self._plan.settings.batch and self._closed.is_set():
                    raise EngineError("the job was stopped in its only epoch")
        return found

    def close(self) -> None:
        """End waiting; and the only epoch of a batch, since no other will notice."""
        self._closed.set()
        stop(self._plan.settings.run_id)


def _close(
    loop: EpochLoop, execute: Callable[[EpochOrder], list[Acknowledgement]], final: bool
) -> None:
    while True:
        try:
            loop.close(execute, final=final)
            return
        except RunAgain:
            continue
