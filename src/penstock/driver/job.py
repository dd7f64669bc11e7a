"""The life of one job: claim its directory, find its checkpoint, run, restart, finish."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.restart_strategy import restart_strategy_from
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.driver.adoption import adopt, max_parallelisms
from penstock.driver.announcement import Announcement
from penstock.driver.beginning import beginning
from penstock.driver.committers import Commit, Committers
from penstock.driver.dependencies import cached_files
from penstock.driver.epoch_loop import EpochLoop, RunAgain
from penstock.driver.epoch_report import EpochReport
from penstock.driver.executor import Executor, MakeExecutor
from penstock.driver.housekeeping import Housekeeper
from penstock.driver.job_id import job_id_of
from penstock.driver.profiling import Profiling, sampling_seconds
from penstock.driver.reading import adapts_length, epoch_length, most_records
from penstock.driver.restarts import RestartPolicy, policy_for
from penstock.driver.savepoints import Savepoints, blank_manifest, requested_directory
from penstock.driver.side_inputs import SideInputs, side_inputs_of
from penstock.driver.source_pace import SourcePace
from penstock.driver.source_starts import parse_starts, with_starts
from penstock.driver.splits import with_splits
from penstock.driver.stop_requests import StopRequest, StopRequests
from penstock.errors import (
    AsyncTimeoutError,
    CheckpointUnwritableError,
    EngineError,
    FileAccessError,
    JobCancelledError,
    SideInputError,
    SinkCommitError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from penstock.graph.stream_graph import Node
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.physical import JobSettings, PhysicalPlan
from penstock.runtime.plan_file import dump_plan, plan_name
from penstock.runtime.stores import remove_stores
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.compaction import CompactionPolicy
from penstock.storage.filesystem import filesystem_for
from penstock.storage.lease import Lease
from penstock.storage.manifest import Manifest

_log = logging.getLogger("penstock")

Listener = Callable[[EpochReport], None]

_LONGEST_READ_SECONDS = 10.0
# Before a checkpoint that could not be written is tried again, if that is to be tolerated.
_TOLERATED_DELAY_MILLIS = 1000
# How long a savepoint waits for a job's first epoch to begin.
_FIRST_EPOCH_SECONDS = 2.0
# Between a job's directory and its run, in the name of one that is about to be deleted.
_GONE = ".gone-"

# What may go better next time. Other errors are in the program or its settings.
_WORTH_A_RESTART = (
    EngineError,
    UserFunctionError,
    AsyncTimeoutError,
    SinkCommitError,
    CheckpointUnwritableError,
    FileAccessError,
    SideInputError,
)


class Job:
    """One job on its way from submission to an end."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        name: str | None,
        configuration: Configuration,
        defaults: PlanDefaults,
        make_executor: MakeExecutor,
        collectors: Mapping[int, Commit],
        listeners: list[Listener],
        parameters: Mapping[str, str],
    ) -> None:
        self.name = name or configuration.get(options.PIPELINE_NAME)
        self.configuration = configuration
        self.status = JobStatus.CREATED
        self.reports: list[EpochReport] = []
        self.restarted_by: str | None = None
        self._nodes = with_starts(nodes, parse_starts(configuration.get(options.SOURCE_START)))
        self._defaults = defaults
        self._make_executor = make_executor
        self._collectors = collectors
        self._listeners = listeners
        self._parameters = parameters
        self._executor: Executor | None = None
        self._checkpoints = CheckpointConfig(configuration)
        self.job_id = job_id_of(configuration, name)
        directory = configuration.get(options.CHECKPOINT_DIR)
        self._temporary = directory is None
        if directory is None:
            name_of_its_own = f"penstock-{secrets.token_hex(8)}"
            directory = os.path.join(tempfile.gettempdir(), name_of_its_own)
        self._fs, self._directory = filesystem_for(directory)
        self.layout = CheckpointLayout.of_job(self._directory, self.job_id)
        self._run_id = secrets.token_hex(4)
        self.plan = self._translate()
        self._savepoints = Savepoints(self.name, self.job_id, lambda: self._log.layout)
        self._log = CheckpointLog(self._fs, self.layout)
        self._stops = StopRequests(self.name, self._savepoints, self._wake)
        self._announcement = Announcement(self)
        self._profiling = Profiling(configuration, self.name)

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether its directory outlives this run, unless it is finished or given up."""
        return not self._temporary

    def run(self) -> JobExecutionResult:
        """Run to the end, restarts included. Raises what ended it if it was not success."""
        started = time.monotonic()
        if self._temporary:
            os.mkdir(self._directory, 0o700)
        failure: BaseException | None = None
        try:
            self._profiling.begin()
            self._run()
        except BaseException as error:
            with self._stops.lock:
                self.status = JobStatus.FAILED
            failure = error
            raise
        finally:
            self._savepoints.close(self.status.name)
            if self._temporary:
                shutil.rmtree(self._directory, ignore_errors=True)
            self._profiling.end()
            self._stops.answer(self.status)
            # Not before the lease is given back: who waits for the end may start the job again.
            self._announcement.end(failure)
        millis = int((time.monotonic() - started) * 1000)
        return JobExecutionResult(JobID(self.job_id), millis, {})

    def cancel(self) -> None:
        """Give the job up: it stops, and its checkpoint goes unless it is to be retained."""
        self._stops.given_up = True
        self.interrupt()

    def interrupt(self) -> None:
        """Stop, with the checkpoint kept: started again, the program goes on from there."""
        with self._stops.lock:
            if not self.status.is_terminal_state():
                self.status = JobStatus.CANCELLING
            self._stops.interrupt()
        self._wake()

    def _wake(self) -> None:
        if self._executor is not None:
            self._executor.close()

    # Savepoints

    def trigger_savepoint(self, directory: str | None = None) -> Future[str]:
        """Make a savepoint while the job runs on; its path."""
        return self._savepoints.request(self._savepoint_directory(directory))

    def stop_with_savepoint(self, drain: bool, directory: str | None = None) -> Future[str]:
        """End the job after the epoch under way, with a savepoint; its path.

        With `drain` event time is brought to its end first. If the savepoint cannot be made, the
        job goes on.
        """
        return self._stops.add(StopRequest(self._savepoint_directory(directory), drain))

    def cancel_with_savepoint(self, directory: str | None = None) -> Future[str]:
        """The same, and the job counts as cancelled."""
        return self._stops.add(StopRequest(self._savepoint_directory(directory), cancels=True))

    def _savepoint_directory(self, given: str | None) -> str:
        own = self._directory if self._temporary else self.layout.root
        wished = given or self.configuration.get(options.SAVEPOINT_DIR)
        return requested_directory(self.plan.settings, wished, own)

    # Start

    def _translate(self, stored: Mapping[str, int] | None = None) -> PhysicalPlan:
        configuration = self.configuration
        local_dir = configuration.get(options.STATE_LOCAL_DIR)
        if local_dir is None:
            local_dir = os.path.join(tempfile.gettempdir(), f"penstock-{os.getuid()}")
        if self._temporary:
            local_dir = os.path.join(self._directory, "stores")
        batch = self._is_batch()
        interval = configuration.get(options.AUTO_WATERMARK_INTERVAL)
        settings = JobSettings(
            job_id=self.job_id,
            job_name=self.name,
            run_id=self._run_id,
            root=self.layout.root,
            local_dir=local_dir,
            state_backend=configuration.get(options.STATE_BACKEND),
            cache_entries=configuration.get(options.STATE_CACHE_ENTRIES),
            cache_memory=_cache_memory(configuration),
            max_records_per_epoch=most_records(configuration, self._adapts_length()),
            epoch_seconds=self._epoch_seconds(),
            batch=batch,
            parameters={**configuration.to_dict(), **self._parameters},
            cached_files={file.name: file.path for file in cached_files(configuration)},
            watermark_interval=0 if batch else interval,
            profile_interval=sampling_seconds(configuration),
        )
        plan = translate(self._nodes, self._defaults, settings, stored)
        if settings.batch:
            _check_bounded(plan)
            _check_no_loops(plan)
        return plan

    def _is_batch(self) -> bool:
        mode = str(self.configuration.get(options.RUNTIME_MODE)).upper()
        if mode != "AUTOMATIC":
            return mode == "BATCH"
        if any(node.feedback is not None for node in self._nodes):
            return False  # there is but one mode for loops
        sources = [node.operator for node in self._nodes if not node.inputs]
        return all(getattr(source, "bounded", True) for source in sources)

    def _adapts_length(self) -> bool:
        mode = self._checkpoints.get_checkpointing_mode()
        return not self._is_batch() and adapts_length(self.configuration, mode)

    def _epoch_seconds(self) -> float:
        """An epoch is a checkpoint, so the checkpoint interval is how long an epoch reads."""
        interval = self._checkpoints.get_checkpoint_interval()
        return interval / 1000 if interval > 0 else _LONGEST_READ_SECONDS

    def _run(self) -> None:
        with Lease.acquire(self.layout.root, {"job": self.name}):
            self._announcement.begin()
            self._remove_leftovers()
            self._log.remove_leftovers()
            base = self._base()
            log = self._log
            plan, base = with_splits(self.plan, base, self._fs, log.layout)
            plan_path = self._write_plan(plan)
            committers = Committers(plan, self._collectors)
            keeper = Housekeeper(
                log,
                plan,
                self.configuration.get(options.CHECKPOINTS_RETAINED),
                CompactionPolicy(self.configuration.get(options.STATE_MAX_SEGMENTS)),
            )
            loop = EpochLoop(
                plan,
                log,
                base,
                self._checkpoints.get_checkpointing_mode(),
                committers.commit,
                self._on_epoch,
                keeper.after_commit,
                self._checkpoints.get_min_pause_between_checkpoints() / 1000,
                SideInputs(
                    side_inputs_of(plan),
                    self._fs,
                    self.layout.side_inputs,
                    self.configuration.get(options.SIDE_INPUT_MAX_ROWS),
                ),
                self.configuration.get(options.ITERATION_WARN_AFTER_TURNS),
                epoch_length(self.configuration) if self._adapts_length() else None,
                SourcePace(plan) if self.configuration.get(options.KEEP_PACE) else None,
            )
            loop.transform = keeper.transform
            self._profiling.attach(loop)
            settled = partial(_settled, loop, blank_manifest(plan), time.monotonic())
            self._savepoints.begin(settled, keeper.holding)
            self.status = JobStatus.RUNNING
            try:
                self._run_with_restarts(plan, plan_path, loop)
                self._savepoints.close(self._stops.end_status().name)
            except BaseException:
                # With the lease still held: another driver may drop what is being copied.
                self._savepoints.close(JobStatus.FAILED.name)
                raise
            finally:
                keeper.close()
                self._mark_committed(loop)
                committers.close()
            with self._stops.lock:
                self.status = self._stops.end_status()
            self._clean_up()

    def _base(self) -> Manifest | None:
        log = self._log
        found = beginning(log, self.configuration, self.plan.settings, self._fitted)
        if found is None:
            return None
        base, changed = self._fitted(found, self.layout.root)
        if changed:
            if self._fs.exists(self.layout.tried(base.epoch)):
                # The epoch that was begun before has another number now.
                self._fs.write(self.layout.tried(base.epoch + 1), b"")
            log.commit(base)
        if base.origin is not None:
            fork = base.origin.fork
            self._log = CheckpointLog(self._fs, replace(self.layout, fork=fork))
            self.plan = replace(self.plan, settings=replace(self.plan.settings, fork=fork))
        # A driver died before there was the savepoint for which it had ended event time.
        self._stops.to_reopen = base.drained
        _log.info("job %s goes on from epoch %d", self.name, base.epoch)
        return base

    def _fitted(self, stored: Manifest, path: str) -> tuple[Manifest, bool]:
        """The epoch as this program needs it, whose key groups the plan takes over."""
        self.plan = self._translate(max_parallelisms(stored))
        drop = self.configuration.get(options.RECOVERY_IGNORE_UNCLAIMED)
        return adopt(stored, self.plan, path, drop)

    def _write_plan(self, plan: PhysicalPlan) -> str:
        data = dump_plan(plan)
        path = os.path.join(self.layout.plans, plan_name(data))
        self._fs.write(path, data)
        return path

    # Run

    def _run_with_restarts(self, plan: PhysicalPlan, plan_path: str, loop: EpochLoop) -> None:
        policy = self._policy()
        tolerable = self._checkpoints.get_tolerable_checkpoint_failure_number()
        tolerated = 0
        interval = self.configuration.get(options.EPOCH_INTERVAL) / 1000
        while True:
            epoch_before = loop.base
            executor = self._executor = self._make_executor(plan, plan_path, interval)
            try:
                loop.recover()
                if self._stops.to_reopen:
                    loop.reopen()
                    self._stops.to_reopen = False
                if not loop.ended:
                    executor.run(loop, self._stops.is_set)
                if not self._stops.carried_out(loop, executor):
                    continue
                if loop.awaited:
                    executor.say_farewell(loop)
                return
            except RunAgain:
                continue
            except JobCancelledError:
                if not self._stops.is_set():
                    raise
                if self._stops.carried_out(loop, executor):
                    return  # a task that waited has noticed
            except KeyboardInterrupt:
                self.interrupt()
                raise
            except _WORTH_A_RESTART as error:
                if self._stops.is_set() and self._stops.carried_out(loop, executor):
                    return
                loop.failed()
                if loop.base is not epoch_before:
                    policy.on_success(_now())
                    tolerated = 0
                delay: int | None
                if isinstance(error, CheckpointUnwritableError) and tolerated < tolerable:
                    tolerated += 1
                    delay = _TOLERATED_DELAY_MILLIS
                else:
                    delay = policy.on_failure(_now())
                if delay is None:
                    raise
                self.restarted_by = str(error)
                self.status = JobStatus.RESTARTING
                _log.warning("job %s restarts in %d ms: %s", self.name, delay, error)
                self._stops.wait(delay / 1000)
                if self._stops.is_set() and self._stops.carried_out(loop, executor):
                    return
                self.status = JobStatus.RUNNING
            finally:
                executor.close()

    def _policy(self) -> RestartPolicy:
        return policy_for(restart_strategy_from(self.configuration), self._checkpointing())

    def _checkpointing(self) -> bool:
        return not self._temporary or self._checkpoints.is_checkpointing_enabled()

    def _on_epoch(self, report: EpochReport) -> None:
        self.reports.append(report)
        self._profiling.committed(report)
        self.restarted_by = None
        del self.reports[:-1000]
        for listener in self._listeners:
            listener(report)

    # End

    def _mark_committed(self, loop: EpochLoop) -> None:
        """So that a program with other sinks may go on from here: no output waits for these."""
        if loop.base is not None and loop.base.committables and loop.sinks_committed:
            with contextlib.suppress(CheckpointUnwritableError):
                self._fs.write(self.layout.committed(loop.base.epoch), b"")

    def _clean_up(self) -> None:
        """A finished job needs its files no more; a failed or interrupted one goes on from them."""
        retention = self._checkpoints.get_externalized_checkpoint_retention()
        delete = self.status is JobStatus.FINISHED or (
            self._stops.given_up
            and retention is not ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        )
        if delete:
            # Renamed first: half a checkpoint must not be found if this process dies meanwhile.
            gone = f"{self.layout.root}{_GONE}{self.plan.settings.run_id}"
            self._fs.rename(self.layout.root, gone)
            self._fs.delete_tree(gone)
            remove_stores(self.plan.settings)

    def _remove_leftovers(self) -> None:
        """What an earlier run had no time to delete."""
        prefix = os.path.basename(self.layout.root) + _GONE
        for name in self._fs.list(self._directory):
            if name.startswith(prefix):
                self._fs.delete_tree(os.path.join(self._directory, name))


def _settled(loop: EpochLoop, blank: Manifest, begun: float) -> Manifest | None:
    """The epoch that a savepoint may be made of. The first one is waited for, unless there is
    nothing to read: then it is the job as it begins."""
    if loop.base is not None:
        return loop.settled()
    awaited = loop.under_way or time.monotonic() - begun < _FIRST_EPOCH_SECONDS
    return None if awaited else blank


def _cache_memory(configuration: Configuration) -> int:
    """Who only says how many values a task shall keep means that many."""
    said = configuration.contains(options.STATE_CACHE_MEMORY)
    counted = configuration.contains(options.STATE_CACHE_ENTRIES)
    return 0 if counted and not said else configuration.get(options.STATE_CACHE_MEMORY)


def _check_bounded(plan: PhysicalPlan) -> None:
    for vertex in plan.at_level(0):
        head = vertex.operators[0]
        if not getattr(head.operator, "bounded", True):
            raise UnsupportedFeatureError.of(
                f"source {head.name!r} ({head.location}) in BATCH mode",
                "it never ends; use RuntimeExecutionMode.STREAMING",
            )


def _check_no_loops(plan: PhysicalPlan) -> None:
    for vertex in plan.vertices:
        if vertex.feedback:
            head = vertex.operators[0]
            raise UnsupportedFeatureError.of(
                f"iteration {head.name!r} ({head.location}) in BATCH mode",
                "use RuntimeExecutionMode.STREAMING, in which it ends as well if its input does",
            )


def _now() -> int:
    return int(time.time() * 1000)
