"""Epoch after epoch: order, run, judge, commit. Knows no executor: it is given a way to run.

The order of steps is the protocol (docs/architecture.md, life of an epoch). The manifest's
appearance is the commit point; what comes after it is repeated after a crash, what comes before is
done anew.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.driver.acceptance import judge
from penstock.driver.committers import Prepared, prepared_by, stored_in
from penstock.driver.epoch_cost import EpochCost, at_their_limit, cost_of
from penstock.driver.epoch_length import EpochLength
from penstock.driver.epoch_manifest import manifest_of
from penstock.driver.epoch_report import EpochReport, report_of
from penstock.driver.iterations import Iterations
from penstock.driver.side_inputs import SideInputs
from penstock.driver.source_pace import SourcePace
from penstock.driver.source_progress import SourceProgress, positions_to_tell, splits_to_tell
from penstock.driver.source_time import SourceTime
from penstock.driver.splits import SplitDiscovery
from penstock.driver.type_changes import untold
from penstock.errors import CheckpointMismatchError, EngineError, LeaseHeldError
from penstock.runtime.epoch import Acknowledgement, EpochOrder, subtask_name
from penstock.runtime.physical import PhysicalPlan
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.crash_points import reach
from penstock.storage.manifest import Manifest, SparkSourceName

_log = logging.getLogger(__name__)

_MOST_RUNS = 8

Execute = Callable[[EpochOrder], list[Acknowledgement]]


class RunAgain(Exception):
    """The epoch was not accepted through no fault of the program: run it again from its base."""


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
        pace: SourcePace | None = None,
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
        self._progress = SourceProgress(plan, SplitDiscovery(plan, log.fs, log.layout))
        self._time = SourceTime(plan)
        self._side_inputs = side_inputs or SideInputs((), log.fs, log.layout.side_inputs, 0)
        self._iterations = Iterations(plan, warn_after_turns)
        self._changed_types: dict[str, dict[str, str]] = {}
        self._length = length
        self._pace = pace
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
        return self._progress.exhausted(self.base)

    def at_end(self) -> bool:
        """Whether the next epoch may be the last: nothing is to be read, nothing in a loop."""
        return self.exhausted() and self._iterations.over(self.base)

    @property
    def looping(self) -> bool:
        """Whether records are in a loop, which the next epoch has to work on."""
        return self.base is not None and bool(self.base.loops)

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
        cost = cost_of(self.plan, acknowledgements, ended - (before or started), self.slots)
        if self._length is not None:
            held_back = order.paced_records.keys()
            limited = at_their_limit(self.plan, acknowledgements, held_back)
            self._length.learn(replace(cost, cut_off=limited))
        if self._pace is not None:
            self._pace.learn(acknowledgements)
        if cost.cut_off and not self.paced:
            self._ended_at = ended  # the next one follows at once
        self._report(order, acknowledgements, batch, started, steps, cost)

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
        if self._length is not None:
            self._length.lost()

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
        found = self._progress.look(base)
        ended = (
            *self._progress.ended(base, batch, self.rows_to_read),
            *self._iterations.ended(base),
        )
        most_records = None if self._length is None else self._length.records
        return EpochOrder(
            epoch=epoch,
            base=None if base is None else base.epoch,
            clock=clock,
            attempt=self._attempts,
            final=final,
            skip=self._must_skip(epoch, final),
            tokens=self._tokens(),
            frozen_edges=tuple(sorted(self._frozen_edges)),
            positions=positions_to_tell(base, found),
            splits=splits_to_tell(base, found),
            more_to_come=self._progress.more_to_come(),
            ended=ended,
            times={} if self.plan.settings.batch else self._time.times(clock),
            slowest=self._time.slowest(),
            side_inputs=side_inputs,
            most_records=most_records,
            paced_records={}
            if most_records is None or self._pace is None
            else self._pace.limits(most_records),
            read_seconds=None if self._length is None else self._length.seconds,
            changed_types=self._changed_types,
        )

    def _tokens(self) -> dict[str, str]:
        """The attempt of each subtask that made the base."""
        if self.base is None:
            return {}
        return {
            subtask_name(vertex.index, index): subtask.token
            for vertex in self.plan.vertices
            for index, subtask in enumerate(self.base.vertices[vertex.uid].subtasks)
        }

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
        manifest = self.transform(
            manifest_of(
                self.plan,
                self.base,
                order,
                acknowledgements,
                batch=batch,
                offsets=offsets,
                created=int(time.time() * 1000),
                loops=self._iterations.stored(acknowledgements),
                spark_sources=self.spark_sources,
                draining=self.draining,
            )
        )
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
        report = report_of(
            self.plan,
            order,
            acknowledgements,
            self.base,
            batch=batch,
            seconds=time.perf_counter() - started,
            steps=steps,
            cost=cost,
            side_inputs=self._side_inputs.status(order.clock),
        )
        loops = self._iterations.learn(order.ended, self.base, report.records_in)
        _afterwards(self._listener, replace(report, loops=loops))


def _afterwards(call: Callable[[Any], None], argument: Any) -> None:
    """The epoch has happened: nothing that follows can fail it."""
    try:
        call(argument)
    except Exception:
        _log.exception("after an epoch was committed")
