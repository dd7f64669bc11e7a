"""Epoch after epoch: order, run, judge, commit. Knows no executor: it is given a way to run.

The order of steps is the protocol of DESIGN section 4. The manifest's appearance is the commit
point; what comes after it is repeated after a crash, what comes before is done anew.
"""

from __future__ import annotations

import base64
import logging
import math
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.driver.acceptance import judge
from penstock.driver.committers import Prepared, prepared_by, stored_in
from penstock.driver.epoch_length import EpochCost, EpochLength, working_seconds
from penstock.driver.iterations import Iterations, LoopReport
from penstock.driver.side_inputs import SideInputs, SideInputStatus
from penstock.driver.source_time import SourceTime
from penstock.driver.splits import SplitDiscovery
from penstock.driver.type_changes import merged_types, untold
from penstock.errors import CheckpointMismatchError, EngineError, LeaseHeldError
from penstock.runtime.epoch import Acknowledgement, EpochOrder, subtask_name
from penstock.runtime.operators.sinks import WriteSink
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan
from penstock.runtime.watermarks import MIN_TIMESTAMP
from penstock.state.redistribution import as_text
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.crash_points import reach
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import (
    Manifest,
    SourceState,
    SparkSourceName,
    SubtaskState,
    VertexState,
)

_log = logging.getLogger(__name__)

_MOST_RUNS = 8

Execute = Callable[[EpochOrder], list[Acknowledgement]]


class RunAgain(Exception):
    """The epoch was not accepted through no fault of the program: run it again from its base."""


@dataclass(frozen=True)
class EpochReport:
    """What an epoch did, for whoever watches."""

    epoch: int
    seconds: float
    records_in: Mapping[str, int]
    records_out: Mapping[str, int]
    state_bytes: int
    """Bytes of state written by this epoch."""
    state_rows: int
    final: bool
    batch: int | None
    metrics: Mapping[str, list[Any]] = field(default_factory=dict)
    seconds_by_step: Mapping[str, float] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """Operator uid → how far its slowest subtask is in event time; absent before a watermark."""
    side_inputs: Mapping[str, SideInputStatus] = field(default_factory=dict)
    """Rows and age of each side input, by name."""
    loops: Mapping[str, LoopReport] = field(default_factory=dict)
    """Uid of each iteration → what is in its loop."""
    restored_bytes: int = 0
    """Bytes of checkpoint files that tasks read, to bring their stores to the epoch's base."""
    cost: EpochCost | None = None
    """What it took in all, and how much of that was work on records."""
    record_limit: int | None = None
    """What a subtask of a Python source might read, if that is adapted."""

    @property
    def idle(self) -> bool:
        return not any(self.records_in.values())


class EpochLoop:
    """The commit side of one job."""

    def __init__(
        self,
        plan: PhysicalPlan,
        log: CheckpointLog,
        base: Manifest | None,
        mode: CheckpointingMode,
        commit_sinks: Callable[[Prepared], None],
        listener: Callable[[EpochReport], None],
        after_commit: Callable[[Manifest], None] = lambda manifest: None,
        min_pause: float = 0.0,
        side_inputs: SideInputs | None = None,
        warn_after_turns: int = 0,
        length: EpochLength | None = None,
    ) -> None:
        self.plan = plan
        self.base = base
        self._log = log
        self._mode = mode
        self._commit_sinks = commit_sinks
        self._listener = listener
        self._after_commit = after_commit
        # At most once there is no second run, so none that learns which edges must be frozen.
        frozen = plan.edges if mode is CheckpointingMode.AT_MOST_ONCE else ()
        self._frozen_edges = {edge.index for edge in frozen}
        self._attempts = 0
        self._again = 0
        self._min_pause = min_pause
        self._checkpointed = float("-inf")
        # What was prepared and could not be committed; unknown until the base has been seen to.
        self._uncommitted: Prepared | None = {} if base is None else None
        self._splits = SplitDiscovery(plan, log.fs, log.layout)
        self._time = SourceTime(plan)
        self._side_inputs = side_inputs or SideInputs((), log.fs, log.layout.side_inputs, 0)
        self._iterations = Iterations(plan, warn_after_turns)
        self._changed_types: dict[str, dict[str, str]] = {}
        self._length = length
        self._ended_at: float | None = None
        self.slots = 1
        """How many tasks the executor runs at the same time."""
        self.paced = min_pause > 0
        """Whether there is to be time between epochs, which is no cost then."""
        self.draining = False
        """Whether event time is brought to its end for a savepoint, with input left perhaps."""
        self.under_way = False
        """Whether an epoch is being worked on."""
        self.rows_to_read: Mapping[str, int] = {}
        """How many rows those Spark sources have of which that is known."""
        self.spark_sources: tuple[SparkSourceName, ...] | None = None
        """What Spark reads from, if it is the engine."""
        self.transform: Callable[[Manifest], Manifest] = lambda manifest: manifest
        """Lets background work put its results into the next manifest."""
        self.acknowledged: Callable[[list[Acknowledgement], float], None] | None = None
        """Is told of each epoch that was run, and for how long, before it is judged."""

    def recover(self) -> None:
        """Repeat what may be missing after the last commit."""
        if self.base is None:
            return
        if self._mode is CheckpointingMode.AT_MOST_ONCE:
            self._uncommitted = {}  # it has had its one chance
            return
        if self._uncommitted is None:
            self._uncommitted = stored_in(self.base)
        self._commit_sinks(self._uncommitted)

    @property
    def sinks_committed(self) -> bool:
        """Whether all that the base's epoch prepared has been made visible."""
        return self._uncommitted == {}

    def settled(self) -> Manifest | None:
        """The base, unless its output is still to be committed."""
        base = self.base
        return base if self.sinks_committed and base is self.base else None

    def reopen(self) -> None:
        """Go on though the last epoch has been: as from a savepoint of it."""
        assert self.base is not None
        base = self.base.reopened()
        manifest = replace(base, epoch=base.epoch + 1, base=base.epoch, committables={})
        self._log.commit(manifest)
        self.base = manifest
        self._attempts += 1  # instances that made the last epoch know of the end of time

    @property
    def ended(self) -> bool:
        """Whether the last epoch of the job has been committed."""
        return self.base is not None and self.base.final

    def pause_left(self) -> float:
        """Seconds until the next epoch may begin; executors wait as long, or until told to stop."""
        return max(0.0, self._checkpointed + self._min_pause - time.monotonic())

    def exhausted(self) -> bool:
        """Whether every Python source has been read to its end."""
        return all(
            self._read_to_its_end(vertex.operators[0])
            for vertex in self.plan.vertices
            if isinstance(vertex.operators[0].operator, PythonSource)
        )

    def at_end(self) -> bool:
        """Whether the next epoch may be the last: nothing is to be read, nothing in a loop."""
        return self.exhausted() and self._iterations.over(self.base)

    @property
    def looping(self) -> bool:
        """Whether records are in a loop, which the next epoch has to work on."""
        return self.base is not None and bool(self.base.loops)

    def _read_to_its_end(self, head: PhysicalOperator) -> bool:
        if not head.operator.bounded or head.uid in self._splits.more_to_come():
            return False
        planned = (split.split_id for split in self.plan.splits[head.uid])
        known = (*planned, *self._splits.found().get(head.uid, ()))
        return all(self._is_read(head.uid, split) for split in known)

    def _is_read(self, uid: str, split: str) -> bool:
        return self._positions(uid).get(split, ("", False))[1]

    def _positions(self, uid: str) -> Mapping[str, tuple[str, bool]]:
        if self.base is None or uid not in self.base.sources:
            return {}
        return self.base.sources[uid].positions

    def close(
        self,
        execute: Execute,
        batch: int | None = None,
        offsets: str | None = None,
        final: bool = False,
        called: bool = True,
    ) -> None:
        """Run one epoch and commit it. A batch that is in the base already is only completed.

        `called`: Python sources take part.
        """
        if batch is not None and self._recognised(batch, offsets):
            self.recover()
            return
        self.under_way = True
        try:
            self._run_epoch(execute, batch, offsets, final, called)
        finally:
            self.under_way = False

    def _run_epoch(
        self, execute: Execute, batch: int | None, offsets: str | None, final: bool, called: bool
    ) -> None:
        started = time.perf_counter()
        before, self._ended_at = self._ended_at, None
        order = self._order(batch, final)
        steps = {"order": time.perf_counter() - started}
        acknowledgements = execute(order)
        steps["run"] = time.perf_counter() - started - steps["order"]
        if self.acknowledged is not None:
            self.acknowledged(acknowledgements, steps["run"])
        verdict = judge(self.plan, acknowledgements, called)
        if verdict.error is not None:
            raise verdict.error
        if not verdict.accepted:
            self._frozen_edges.update(verdict.freeze_edges)
            self._run_again(order, verdict.conflict)
        self._spread_changed_types(order, acknowledgements)
        before_commit = time.perf_counter()
        self._commit(order, acknowledgements, batch, offsets)
        self._time.learn(order.clock, acknowledgements)
        self._side_inputs.committed()
        self._changed_types = {}
        self._checkpointed = time.monotonic()
        steps["commit"] = time.perf_counter() - before_commit
        self._again = 0
        ended = time.perf_counter()
        cost = self._cost(acknowledgements, ended - (before or started))
        if self._length is not None:
            self._length.learn(cost)
        if cost.cut_off and not self.paced:
            self._ended_at = ended  # the next one follows at once
        self._report(order, acknowledgements, batch, started, steps, cost)

    def _cost(self, acknowledgements: list[Acknowledgement], seconds: float) -> EpochCost:
        levels: dict[int, dict[tuple[int, int], float]] = {}
        records = 0
        for a in acknowledgements:
            vertex = self.plan.vertices[a.vertex]
            head = vertex.operators[0]
            # Vertices of a level share their tasks, but for sources of Spark's.
            task = (a.vertex if isinstance(head.operator, SparkSource) else -1, a.subtask)
            tasks = levels.setdefault(vertex.level, {})
            tasks[task] = max(a.seconds, tasks.get(task, 0.0))
            if isinstance(head.operator, PythonSource):
                records = max(records, a.records_in.get(head.uid, 0))
        working = working_seconds((tasks.values() for tasks in levels.values()), self.slots)
        cut_off = any(a.cut_off for a in acknowledgements)
        return EpochCost(seconds, min(working, seconds), records, cut_off)

    def _spread_changed_types(
        self, order: EpochOrder, acknowledgements: list[Acknowledgement]
    ) -> None:
        """A state has one type in all subtasks. If one has met it declared otherwise than it is
        stored, and another that has some of it has not, all are told and the epoch is run again."""
        missing = untold(self.plan, self.base, acknowledgements)
        if missing:
            for uid, states in missing.items():
                self._changed_types.setdefault(uid, {}).update(states)
            self._run_again(order, None)

    def _run_again(self, order: EpochOrder, conflict: str | None) -> NoReturn:
        self._again += 1
        if self._again > _MOST_RUNS:
            self._again = 0
            raise EngineError(
                f"epoch {order.epoch} was run {_MOST_RUNS} times and never came out whole: "
                f"{conflict or 'its records keep changing'}"
            )
        if conflict is not None:
            _log.warning("epoch %d is run again: %s", order.epoch, conflict)
        raise RunAgain

    @property
    def awaited(self) -> tuple[int, ...]:
        """The vertices that wait to be told of the last epoch."""
        if self.base is None or not self.base.final:
            return ()
        listeners = set(self.base.listeners)
        return tuple(
            vertex.index
            for vertex in self.plan.vertices
            if not listeners.isdisjoint(operator.uid for operator in vertex.operators)
        )

    def say_farewell(self, execute: Execute) -> None:
        """Tell them; there is no next epoch to do it. Repeated if the driver dies meanwhile."""
        order = replace(self._order(None, final=True), farewell=self.awaited)
        for acknowledgement in execute(order):
            if acknowledgement.error is not None:
                raise pickle.loads(acknowledgement.error)

    def failed(self) -> None:
        """An attempt at the next epoch was lost."""
        self._attempts += 1

    # Steps of an epoch

    def _recognised(self, batch: int, offsets: str | None) -> bool:
        base = self.base
        if base is None or base.batch is None or batch > base.batch:
            return False
        if batch == base.batch and offsets == base.offsets:
            return True
        raise CheckpointMismatchError(
            f"Spark offers batch {batch} with other offsets than the checkpoint of epoch "
            f"{base.epoch} (batch {base.batch}) has; {self._log.layout.spark} was changed by "
            "something else: start from a savepoint or with a new job id"
        )

    def _order(self, batch: int | None, final: bool) -> EpochOrder:
        base = self.base
        clock = int(time.time() * 1000)
        side_inputs = self._side_inputs.at(clock)
        epoch = 0 if base is None else base.epoch + 1
        positions = {}
        tokens = {}
        found = self._splits.look(self._is_read)
        if base is not None:
            for uid, source in base.sources.items():
                known = found.get(uid, {})
                for split, position in source.positions.items():
                    # Nobody is told of what was found and read: it would be more and more.
                    if split not in known or not position[1]:
                        positions[f"{uid}|{split}"] = position
            for vertex in self.plan.vertices:
                for index, subtask in enumerate(base.vertices[vertex.uid].subtasks):
                    tokens[subtask_name(vertex.index, index)] = subtask.token
        return EpochOrder(
            epoch=epoch,
            base=None if base is None else base.epoch,
            clock=clock,
            attempt=self._attempts,
            final=final,
            skip=self._must_skip(epoch, final),
            tokens=tokens,
            frozen_edges=tuple(sorted(self._frozen_edges)),
            positions=positions,
            splits={
                uid: [told for split, told in splits.items() if not self._is_read(uid, split)]
                for uid, splits in found.items()
            },
            more_to_come=self._splits.more_to_come(),
            ended=self._ended(batch),
            times={} if self.plan.settings.batch else self._time.times(clock),
            slowest=self._time.slowest(),
            side_inputs=side_inputs,
            most_records=None if self._length is None else self._length.records,
            read_seconds=None if self._length is None else self._length.seconds,
            changed_types=self._changed_types,
        )

    def _ended(self, batch: int | None) -> tuple[int, ...]:
        """The sources that have no more to give. Without a batch, no Spark source has."""
        rows = {} if self.base is None else self.base.rows_read
        found = []
        for vertex in self.plan.vertices:
            head = vertex.operators[0]
            if isinstance(head.operator, PythonSource):
                ended = self._read_to_its_end(head)
            elif isinstance(head.operator, SparkSource):
                all_read = rows.get(head.uid, 0) >= self.rows_to_read.get(head.uid, math.inf)
                ended = head.operator.bounded and (batch is None or all_read)
            else:
                continue
            if ended:
                found.append(vertex.index)
        return (*found, *self._iterations.ended(self.base))

    def _must_skip(self, epoch: int, final: bool) -> bool:
        """At most once: an epoch that was tried before is read and dropped."""
        reads_nothing = final and not self.plan.settings.batch
        if self._mode is not CheckpointingMode.AT_MOST_ONCE or reads_nothing:
            return False
        marker = self._log.layout.tried(epoch)
        if self._log.fs.exists(marker):
            return True
        self._log.fs.write(marker, b"")
        self._log.fs.delete(self._log.layout.tried(epoch - 1))
        return False

    def _commit(
        self,
        order: EpochOrder,
        acknowledgements: list[Acknowledgement],
        batch: int | None,
        offsets: str | None,
    ) -> None:
        manifest = self.transform(self._manifest(order, acknowledgements, batch, offsets))
        prepared = prepared_by(acknowledgements, order.epoch)
        if self._mode is CheckpointingMode.AT_LEAST_ONCE:
            self._commit_sinks(prepared)
        reach("driver.before_manifest")
        try:
            self._log.commit(manifest)
        except FileExistsError:
            raise LeaseHeldError.of(
                self._log.layout.root, "another driver, which committed this epoch first"
            ) from None
        # In this order: another thread may ask for an epoch of which nothing is left to commit.
        self._uncommitted = prepared
        self.base = manifest
        reach("driver.after_manifest")
        self._commit_sinks(prepared)
        reach("driver.after_sinks")
        _afterwards(self._after_commit, manifest)

    def _manifest(
        self,
        order: EpochOrder,
        acknowledgements: list[Acknowledgement],
        batch: int | None,
        offsets: str | None,
    ) -> Manifest:
        settings = self.plan.settings
        base = self.base
        by_subtask = {(a.vertex, a.subtask): a for a in acknowledgements}
        types = merged_types({} if base is None else base.state_types, acknowledgements)
        loops = self._iterations.stored(acknowledgements)
        return Manifest(
            job_id=settings.job_id,
            job_name=settings.job_name,
            epoch=order.epoch,
            base=order.base,
            batch=batch if batch is not None else (base.batch if base else None),
            offsets=offsets if batch is not None else (base.offsets if base else None),
            created=int(time.time() * 1000),
            vertices={
                vertex.uid: VertexState(
                    tuple(operator.uid for operator in vertex.operators),
                    vertex.parallelism,
                    vertex.max_parallelism,
                    tuple(
                        _advanced(
                            base.vertices[vertex.uid].subtasks[subtask] if base else None,
                            by_subtask.get((vertex.index, subtask)),
                            order.epoch,
                        )
                        for subtask in range(vertex.parallelism)
                    ),
                )
                for vertex in self.plan.vertices
            },
            sources=self._sources(acknowledgements),
            rows_read=self._rows_read(acknowledgements),
            state_types=types,
            committables=self._durable(acknowledgements, order.epoch),
            listeners=self._listeners(acknowledgements),
            loops=loops,
            spark_sources=self._spark_sources(),
            origin=None if base is None else base.origin,
            # The last watermark may have made timers fire, and these sent something round again.
            final=order.final and not loops,
            drained=order.final and not loops and self.draining,
        )

    def _spark_sources(self) -> tuple[SparkSourceName, ...]:
        if self.spark_sources is not None:
            return self.spark_sources
        return () if self.base is None else self.base.spark_sources

    def _sources(self, acknowledgements: list[Acknowledgement]) -> dict[str, SourceState]:
        found = dict(self.base.sources) if self.base is not None else {}
        for a in acknowledgements:
            if a.positions:
                uid = self.plan.vertices[a.vertex].operators[0].uid
                known = found[uid].positions if uid in found else {}
                found[uid] = SourceState({**known, **a.positions})
        return found

    def _rows_read(self, acknowledgements: list[Acknowledgement]) -> dict[str, int]:
        found = dict(self.base.rows_read) if self.base is not None else {}
        for a in acknowledgements:
            head = self.plan.vertices[a.vertex].operators[0]
            if isinstance(head.operator, SparkSource):
                found[head.uid] = found.get(head.uid, 0) + sum(a.records_in.values())
        return found

    def _listeners(self, acknowledgements: list[Acknowledgement]) -> tuple[str, ...]:
        known = {o.uid for vertex in self.plan.vertices for o in vertex.operators}
        before = set() if self.base is None else known.intersection(self.base.listeners)
        return tuple(sorted(before.union(*(a.listeners for a in acknowledgements))))

    def _durable(
        self, acknowledgements: list[Acknowledgement], epoch: int
    ) -> dict[str, list[dict[str, Any]]]:
        durable = {
            operator.uid
            for vertex in self.plan.vertices
            for operator in vertex.operators
            if isinstance(operator.operator, WriteSink) and operator.operator.durable
        }
        found: dict[str, list[dict[str, Any]]] = {}
        for a in acknowledgements:
            for uid, items in a.committables.items():
                if uid in durable:
                    found.setdefault(uid, []).extend(
                        {
                            "epoch": epoch,
                            "subtask": a.subtask,
                            "attempt": a.token,
                            "data": base64.b64encode(item).decode(),
                        }
                        for item in items
                    )
        return found

    def _report(
        self,
        order: EpochOrder,
        acknowledgements: list[Acknowledgement],
        batch: int | None,
        started: float,
        steps: dict[str, float],
        cost: EpochCost,
    ) -> None:
        assert self.base is not None
        files = [file for a in acknowledgements for file in a.files]
        loops = [loop for a in acknowledgements for loop in a.loops.values()]
        files += [file for loop in loops for file in loop["files"]]
        records_in = _summed(a.records_in for a in acknowledgements)
        metrics: dict[str, list[Any]] = {}
        for a in acknowledgements:
            for uid, found in a.metrics.items():
                metrics.setdefault(uid, []).append(found)
        _afterwards(
            self._listener,
            EpochReport(
                epoch=order.epoch,
                seconds=time.perf_counter() - started,
                records_in=records_in,
                records_out=_summed(a.records_out for a in acknowledgements),
                state_bytes=sum(file["bytes"] for file in files),
                state_rows=sum(file["rows"] for file in files),
                final=self.base.final,
                batch=batch,
                metrics=metrics,
                seconds_by_step=steps,
                watermarks=_watermarks(self.plan, acknowledgements),
                side_inputs=self._side_inputs.status(order.clock),
                loops=self._iterations.learn(order.ended, self.base, records_in),
                restored_bytes=sum(a.restored_bytes for a in acknowledgements),
                cost=cost,
                record_limit=order.most_records,
            ),
        )


def _afterwards(call: Callable[[Any], None], argument: Any) -> None:
    """The epoch has happened: nothing that follows can fail it."""
    try:
        call(argument)
    except Exception:
        _log.exception("after an epoch was committed")


def _advanced(
    before: SubtaskState | None, acknowledgement: Acknowledgement | None, epoch: int
) -> SubtaskState:
    before = before or SubtaskState("")
    if acknowledgement is None:
        return before
    files = tuple(FileInfo.from_json(file) for file in acknowledgement.files)
    operators = {uid: as_text(data) for uid, data in acknowledgement.operator_state.items()}
    return replace(
        before.with_segment(acknowledgement.token, epoch, files),
        watermark=acknowledgement.watermark,
        operators=operators,
    )


def _watermarks(plan: PhysicalPlan, acknowledgements: list[Acknowledgement]) -> dict[str, int]:
    lowest: dict[str, int] = {}
    for a in acknowledgements:
        operators = plan.vertices[a.vertex].operators
        if isinstance(operators[0].operator, SparkSource) and not a.reached:
            continue  # a task that had no records says nothing about its source
        for operator in operators:
            found = a.watermarks.get(operator.uid, MIN_TIMESTAMP)
            lowest[operator.uid] = min(found, lowest.get(operator.uid, found))
    return {uid: found for uid, found in lowest.items() if found > MIN_TIMESTAMP}


def _summed(counts: Any) -> dict[str, int]:
    total: dict[str, int] = {}
    for found in counts:
        for name, count in found.items():
            total[name] = total.get(name, 0) + count
    return total
