"""Runs the demo: starts the job, shows it, stops it, and says what was checkpointed."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.job_status import JobStatus
from penstock.common.user_directory import user_directory
from penstock.datastream import StreamExecutionEnvironment
from penstock.demo.board import BOARDS, Board
from penstock.demo.display import live_view, plain_line
from penstock.demo.job import SOURCE_UID, build
from penstock.driver.epoch_report import EpochReport
from penstock.driver.running_job import RunningJob
from penstock.errors import CheckpointError, JobCancelledError
from penstock.storage.checkpoint_layout import CheckpointLayout, parse_state_file
from penstock.storage.lease import Lease

_JOB_ID = "sensor-demo"
_EPOCH_MILLIS = 200
_REFRESH_SECONDS = 0.25
_PLAIN_SECONDS = 2.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class DemoSettings:
    seconds: float = 30.0
    rate: float = 5000.0
    checkpoint_dir: str | None = None
    fresh: bool = False

    @property
    def directory(self) -> str:
        return self.checkpoint_dir or default_directory()

    @property
    def readings(self) -> int:
        return max(1, int(self.seconds * self.rate))


def default_directory() -> str:
    """The same place at every start, so that a second start finds the first one's checkpoints."""
    if "PENSTOCK_STATE_DIR" in os.environ or os.access(os.path.expanduser("~"), os.W_OK):
        return os.path.join(user_directory(), "demo")
    return os.path.join(tempfile.gettempdir(), f"penstock-demo-{os.getuid()}")


def run_demo(settings: DemoSettings, console: Console) -> int:
    """Run the job to its end, or to Ctrl-C; the exit code."""
    console.soft_wrap = not console.is_terminal
    layout = CheckpointLayout.of_job(settings.directory, _JOB_ID)
    if settings.fresh:
        _forget(layout)
    board = BOARDS[_JOB_ID] = Board(settings.readings)
    files = _FileWatch(layout)
    log = os.path.join(settings.directory, "demo.log")
    os.makedirs(settings.directory, exist_ok=True)
    _introduce(console, settings, _newest_epoch(layout))
    with _stderr_to(log):
        job = _start(settings, board, console)
        try:
            _watch(job, board, files, console)
        except KeyboardInterrupt:
            _stop(job, console)
        outcome = _outcome(job)
    _summarise(console, settings, layout, board, files, outcome)
    console.print(f"What Spark had to say is in {log}", style="dim")
    return 0


def _introduce(console: Console, settings: DemoSettings, newest: int | None) -> None:
    console.print(
        f"[bold]Penstock demo[/]: {settings.readings:,} readings of 20 sensors, "
        f"{settings.rate:,.0f} a second, on Spark on this machine. Ctrl-C stops it.",
    )
    if newest is not None:
        console.print(
            f"Found the checkpoint of epoch {newest:,} of an earlier start: "
            "[bold]going on from there[/] (--fresh starts anew).",
        )


# The job


def _start(settings: DemoSettings, board: Board, console: Console) -> RunningJob:
    configuration = (
        Configuration()
        .set(options.CHECKPOINT_DIR, settings.directory)
        .set(options.JOB_ID, _JOB_ID)
        .set(options.CHECKPOINT_RETENTION, "RETAIN_ON_CANCELLATION")
        .set(options.EPOCH_INTERVAL, _EPOCH_MILLIS)
        .set(options.PARALLELISM, 2 if (os.cpu_count() or 1) > 1 else 1)
        .set(options.MAX_PARALLELISM, 128)
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(env, settings.readings, settings.rate, _JOB_ID)
    env.add_epoch_listener(_listener(board))
    with _waiting(console, "Starting Spark: a JVM and its Python workers, 10 to 20 seconds …"):
        job = env.execute_async("sensor demo")
        # Spark's own handler would also cancel the epoch under way; we let it end.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            while not board.last_epoch() and not job.get_job_execution_result().done():
                time.sleep(0.05)
        except KeyboardInterrupt:
            job.cancel()
    return job


def _listener(board: Board) -> Callable[[EpochReport], None]:
    def listen(report: EpochReport) -> None:
        readings = report.records_in.get(SOURCE_UID, 0)
        board.epoch(report.epoch, report.seconds, readings, report.state_bytes)

    return listen


def _watch(job: RunningJob, board: Board, files: _FileWatch, console: Console) -> None:
    result = job.get_job_execution_result()
    if console.is_terminal:
        with Live(live_view(board), console=console, auto_refresh=False) as live:
            while not result.done():
                time.sleep(_REFRESH_SECONDS)
                files.look()
                live.update(live_view(board), refresh=True)
        return
    next_line = 0.0
    while not result.done():
        time.sleep(_REFRESH_SECONDS)
        files.look()
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + _PLAIN_SECONDS
            console.print(plain_line(board), markup=False)


def _stop(job: RunningJob, console: Console) -> None:
    with _waiting(console, "Stopping after this epoch …"):
        job.cancel()
        deadline = time.monotonic() + _STOP_SECONDS
        while not job.get_job_execution_result().done() and time.monotonic() < deadline:
            time.sleep(0.05)


def _outcome(job: RunningJob) -> JobStatus:
    """How it ended; raises what it failed with."""
    try:
        job.get_job_execution_result().result(timeout=1)
    except JobCancelledError:
        return JobStatus.CANCELED
    return JobStatus.FINISHED


# Checkpoints


class _FileWatch:
    """Sees the state files come and go: a finished job leaves none."""

    def __init__(self, layout: CheckpointLayout) -> None:
        self._state = layout.state
        self._sizes: dict[str, int] = {}
        self._before = set(self._listed())

    def look(self) -> None:
        for name in self._listed():
            if name not in self._sizes and name not in self._before:
                try:
                    self._sizes[name] = os.path.getsize(os.path.join(self._state, name))
                except OSError:
                    continue

    def rewritten(self) -> tuple[int, int]:
        """Images and merged segments that were made meanwhile, and their bytes."""
        made = [size for name, size in self._sizes.items() if _kind(name) != "segment"]
        return len(made), sum(made)

    def _listed(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._state) if _kind(name) is not None]
        except FileNotFoundError:
            return []


def _kind(name: str) -> str | None:
    parsed = parse_state_file(name)
    return None if parsed is None else parsed.kind


def _newest_epoch(layout: CheckpointLayout) -> int | None:
    try:
        names = os.listdir(layout.epochs)
    except OSError:
        return None
    epochs = [int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()]
    return max(epochs, default=None)


def _forget(layout: CheckpointLayout) -> None:
    if os.path.exists(layout.root):
        with Lease.acquire(layout.root, {"job": "sensor demo --fresh"}):
            shutil.rmtree(layout.root, ignore_errors=True)


def _summarise(
    console: Console,
    settings: DemoSettings,
    layout: CheckpointLayout,
    board: Board,
    files: _FileWatch,
    outcome: JobStatus,
) -> None:
    epochs = board.epochs
    files.look()
    console.print()
    if epochs:
        written = sum(epoch.state_bytes for epoch in epochs)
        millis = statistics.median(epoch.seconds for epoch in epochs) * 1000
        images, image_bytes = files.rewritten()
        console.print(
            f"[bold]Checkpointed[/]: epochs {epochs[0].epoch:,} to {epochs[-1].epoch:,}, a median "
            f"of {millis:,.0f} ms each; {written:,} bytes of changes in segments, and "
            f"{images} images made of them in the background ({image_bytes:,} bytes).",
        )
    _exactly_once(console, board)
    if outcome is JobStatus.FINISHED:
        console.print(
            "The job read its input to the end, so it needs its checkpoints no more and has "
            f"removed them from {settings.directory}. Next time, stop it half-way with Ctrl-C or "
            "kill -9, and run [bold]make demo[/] again: it will go on where it was.",
        )
    else:
        console.print(
            f"The checkpoints are in {layout.root}: run [bold]make demo[/] again, and it goes on "
            "where it was; with kill -9 instead of Ctrl-C it would just as well.",
        )


def _exactly_once(console: Console, board: Board) -> None:
    """Every reading carries its number among those of its sensor: counts must equal it."""
    wrong = board.miscounted()
    if wrong:
        raise CheckpointError(f"readings were lost or counted twice: {wrong}")
    if board.sensors:
        console.print(
            f"[bold]Exactly once[/]: {board.readings():,} readings counted in keyed state, "
            f"{len(board.sensors)} sensors, and each count equals the number that the sensor's "
            "last reading carries."
        )


# The terminal


@contextmanager
def _waiting(console: Console, what: str) -> Iterator[None]:
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        console.print(what)
        yield


@contextmanager
def _stderr_to(path: str) -> Iterator[None]:
    """Everything that this process and its children write to standard error goes to a file.

    The JVM and Spark's workers would write into the middle of the table.
    """
    kept = os.dup(2)
    with open(path, "ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
