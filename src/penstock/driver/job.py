"""The life of one job: claim its directory, find its checkpoint, run, restart, finish."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol

from penstock import options
from penstock.common.completable_future import CompletableFuture
from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.restart_strategy import restart_strategy_from
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.driver.adoption import adopt
from penstock.driver.announcement import Announcement
from penstock.driver.committers import Commit, Committers
from penstock.driver.dependencies import cached_files
from penstock.driver.epoch_loop import EpochLoop, EpochReport, RunAgain
from penstock.driver.housekeeping import Housekeeper
from penstock.driver.job_id import job_id_of
from penstock.driver.restarts import RestartPolicy, policy_for
from penstock.driver.side_inputs import SideInputs, side_inputs_of
from penstock.driver.splits import with_splits
from penstock.errors import (
    AsyncTimeoutError,
    CheckpointMismatchError,
    CheckpointUnwritableError,
    EngineError,
    FileAccessError,
    JobCancelledError,
    PenstockError,
    SideInputError,
    SinkCommitError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from penstock.graph.stream_graph import Node
from penstock.plan.translate import PlanDefaults, translate
from penstock.refusals import later, refuses
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


class Executor(Protocol):
    """Runs epochs of a plan until the input ends or it is told to stop."""

    def run(self, loop: EpochLoop, stopping: Callable[[], bool]) -> None: ...

    def say_farewell(self, loop: EpochLoop) -> None: ...

    def close(self) -> None: ...


MakeExecutor = Callable[[PhysicalPlan, str, float], Executor]


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
        self._nodes = nodes
        self._defaults = defaults
        self._make_executor = make_executor
        self._collectors = collectors
        self._listeners = listeners
        self._parameters = parameters
        self._stop = threading.Event()
        self._given_up = False
        self._executor: Executor | None = None
        self._checkpoints = CheckpointConfig(configuration)
        _refuse_recovery_path(configuration)
        self.job_id = job_id_of(configuration, name)
        directory = configuration.get(options.CHECKPOINT_DIR)
        self._temporary = directory is None
        if directory is None:
            name_of_its_own = f"penstock-{secrets.token_hex(8)}"
            directory = os.path.join(tempfile.gettempdir(), name_of_its_own)
        self._fs, self._directory = filesystem_for(directory)
        self.layout = CheckpointLayout.of_job(self._directory, self.job_id)
        self.plan = self._translate()
        self._announcement = Announcement(self)

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
            self._run()
        except BaseException as error:
            self.status = JobStatus.FAILED
            failure = error
            raise
        finally:
            if self._temporary:
                shutil.rmtree(self._directory, ignore_errors=True)
            # Not before the lease is given back: who waits for the end may start the job again.
            self._announcement.end(failure)
        millis = int((time.monotonic() - started) * 1000)
        return JobExecutionResult(JobID(self.job_id), millis, {})

    def cancel(self) -> None:
        """Give the job up: it stops, and its checkpoint goes unless it is to be retained."""
        self._given_up = True
        self.interrupt()

    def interrupt(self) -> None:
        """Stop, with the checkpoint kept: started again, the program goes on from there."""
        if not self.status.is_terminal_state():
            self.status = JobStatus.CANCELLING
        self._stop.set()
        if self._executor is not None:
            self._executor.close()

    def trigger_savepoint(self, directory: str | None) -> Future[str]:
        raise _no_savepoints()

    def stop_with_savepoint(self, drain: bool, directory: str | None) -> Future[str]:
        raise _no_savepoints()

    def cancel_with_savepoint(self, directory: str | None) -> Future[str]:
        raise _no_savepoints()

    # Start

    def _translate(self) -> PhysicalPlan:
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
            run_id=secrets.token_hex(4),
            root=self.layout.root,
            local_dir=local_dir,
            state_backend=configuration.get(options.STATE_BACKEND),
            cache_entries=configuration.get(options.STATE_CACHE_ENTRIES),
            max_records_per_epoch=configuration.get(options.MAX_RECORDS_PER_EPOCH),
            epoch_seconds=self._epoch_seconds(),
            batch=batch,
            parameters={**configuration.to_dict(), **self._parameters},
            cached_files={file.name: file.path for file in cached_files(configuration)},
            watermark_interval=0 if batch else interval,
        )
        plan = translate(self._nodes, self._defaults, settings)
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

    def _epoch_seconds(self) -> float:
        """An epoch is a checkpoint, so the checkpoint interval is how long an epoch reads."""
        interval = self._checkpoints.get_checkpoint_interval()
        return interval / 1000 if interval > 0 else _LONGEST_READ_SECONDS

    def _run(self) -> None:
        with Lease.acquire(self.layout.root, {"job": self.name}):
            self._announcement.begin()
            self._remove_leftovers()
            log = CheckpointLog(self._fs, self.layout)
            log.remove_leftovers()
            base = self._base(log)
            plan, base = with_splits(self.plan, base, self._fs, self.layout)
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
            )
            loop.transform = keeper.transform
            self.status = JobStatus.RUNNING
            try:
                self._run_with_restarts(plan, plan_path, loop)
            finally:
                keeper.close()
                self._mark_committed(loop)
                committers.close()
            self.status = JobStatus.CANCELED if self._stop.is_set() else JobStatus.FINISHED
            self._clean_up()

    def _base(self, log: CheckpointLog) -> Manifest | None:
        newest = log.newest(self.job_id)
        if newest is None:
            return None
        if self.plan.settings.batch and not newest.final:
            raise CheckpointMismatchError.of_streaming(self.layout.root, newest.epoch)
        committed = self._fs.exists(self.layout.committed(newest.epoch))
        if committed:
            # Not once more: by now somebody may have taken away what was made visible.
            newest = replace(newest, committables={})
        base, changed = adopt(newest, self.plan, self.layout.root)
        if changed:
            if self._fs.exists(self.layout.tried(base.epoch)):
                # The epoch that was begun before has another number now.
                self._fs.write(self.layout.tried(base.epoch + 1), b"")
            log.commit(base)
        _log.info("job %s goes on from epoch %d", self.name, base.epoch)
        return base

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
                if not loop.ended:
                    executor.run(loop, self._stop.is_set)
                if loop.awaited:
                    executor.say_farewell(loop)
                return
            except RunAgain:
                continue
            except JobCancelledError:
                if not self._stop.is_set():
                    raise
                return  # a task that waited has noticed
            except KeyboardInterrupt:
                self.interrupt()
                raise
            except _WORTH_A_RESTART as error:
                if self._stop.is_set():
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
                self.status = JobStatus.RESTARTING
                _log.warning("job %s restarts in %d ms: %s", self.name, delay, error)
                self._stop.wait(delay / 1000)
                if self._stop.is_set():
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
            self._given_up
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


_NO_SAVEPOINTS = f"every epoch is a checkpoint; use those, until {later('F5')}"


class RunningJob(JobClient):
    """A job in a thread of its own."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._result: Future[JobExecutionResult] = Future()
        self._thread = threading.Thread(target=self._main, name=f"penstock {job.name}", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        try:
            result = self.job.run()
        except BaseException as error:
            _log.debug("job %s failed", self.job.name, exc_info=True)
            self._result.set_exception(_for_users(error))
        else:
            if self.job.status is JobStatus.CANCELED:
                self._result.set_exception(JobCancelledError.of(self.job.name))
            else:
                self._result.set_result(result)

    def log_failure(self) -> None:
        """Write to the log if the job fails: perhaps nobody asks for its result."""

        def log(ended: Future[JobExecutionResult]) -> None:
            error = ended.exception()
            if error is not None and not isinstance(error, JobCancelledError):
                _log.error("job %s failed: %s", self.job.name, error)

        self._result.add_done_callback(log)

    def get_job_id(self) -> JobID:
        return JobID(self.job.job_id)

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.job.status)

    def cancel(self) -> CompletableFuture[None]:
        self.job.cancel()
        done: Future[None] = Future()

        def ended(_: Any) -> None:
            done.set_result(None)

        self._result.add_done_callback(ended)
        return CompletableFuture(done)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture(self._result)

    @refuses(_NO_SAVEPOINTS)
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return CompletableFuture.failed(_no_savepoints())

    @refuses(_NO_SAVEPOINTS)
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        return CompletableFuture.failed(_no_savepoints())

    def wait(self) -> JobExecutionResult:
        """Block until the end; Ctrl-C stops the job, which goes on when it is started again."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.2)
        except KeyboardInterrupt:
            self.job.interrupt()
            self._thread.join()
            raise
        error = self._result.exception()
        if error is not None:
            raise error
        return self._result.result()


def _for_users(error: BaseException) -> BaseException:
    """Our errors name the user's line; the way there through the engine would only bury it."""
    if isinstance(error, UserFunctionError):
        error.with_cause()
    return error.with_traceback(None) if isinstance(error, PenstockError) else error


def _refuse_recovery_path(configuration: Configuration) -> None:
    path = configuration.get(options.RECOVERY_PATH)
    if path is not None:
        raise UnsupportedFeatureError.of(
            f"{options.RECOVERY_PATH.key} ({path})",
            "a job goes on from the newest checkpoint of its penstock.job-id below "
            "execution.checkpointing.dir; set those",
        )


def _no_savepoints() -> PenstockError:
    return UnsupportedFeatureError.of("savepoints", _NO_SAVEPOINTS)


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
