"""Starts the counting job as a process of its own, watches it, and judges what it left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "shared"))
from forked_process import ForkedProcess, ForkServer

if TYPE_CHECKING:
    Process = subprocess.Popen[bytes] | ForkedProcess

_SCRIPT = Path(__file__).parent / "jobs" / "counting_job.py"
_ARGUMENTS = (
    "program",
    "sink",
    "records",
    "keys",
    "executor",
    "mode",
    "parallelism",
    "input",
    "output",
    "number",
)
_LONGEST = 150
# Short-lived JVMs are not worth an optimizing compiler, nor a web server.
_QUICK_JVM = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
}


Start = Callable[[list[str], dict[str, str], IO[bytes], IO[bytes]], "Process"]
"""Runs a script with arguments in an environment: its output goes to two files."""


def started(
    command: list[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]
) -> subprocess.Popen[bytes]:
    """A process of its own, from the beginning."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdout=out,
        stderr=err,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


@cache
def fork_servers() -> tuple[ForkServer, ...]:
    """Two that hash strings differently, as every start of Python does: a job that goes on in
    another process must not notice."""
    return ForkServer(hash_seed=1), ForkServer(hash_seed=2)


@pytest.fixture(autouse=True, scope="session")
def end_fork_servers() -> Iterator[None]:
    yield
    if fork_servers.cache_info().currsize:
        for server in fork_servers():
            server.close()


class Run:
    """One process of the job, in a process group of its own."""

    def __init__(
        self, start: Start, command: list[str], environment: dict[str, str], log: Path
    ) -> None:
        self._out, self._err = log.with_suffix(".out"), log.with_suffix(".err")
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = start(command, environment, out, err)

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def errors(self) -> str:
        return self._err.read_text()

    @property
    def summary(self) -> dict[str, Any]:
        """What the run says about itself when it ends well."""
        summary: dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return summary

    def wait(self, seconds: float = _LONGEST) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_group()
            raise AssertionError(f"not done after {seconds} s\n{self.tail()}") from None

    def wait_for_epoch(self, epoch: int, seconds: float = _LONGEST) -> None:
        self.wait_until(lambda: f"\nepoch {epoch} " in f"\n{self.output}", seconds)

    def wait_until(self, reached: Callable[[], Any], seconds: float = _LONGEST) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := reached()):
            assert self.process.poll() is None, f"it ended early\n{self.tail()}"
            assert time.monotonic() < deadline, f"not reached\n{self.tail()}"
            time.sleep(0.01)
        return found

    def kill_group(self) -> None:
        """The driver and its JVM at once, as when a machine loses power."""
        # The group's number is the driver's, and ours to use only until that has ended.
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def descendants(self, needle: str) -> list[int]:
        """Processes below the job with a text in their command line."""
        return [pid for pid in _below(self.process.pid) if needle in _command(pid)]

    def tail(self) -> str:
        return f"{self.output[-2000:]}\n{self.errors[-6000:]}"


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except OSError:
        pass  # it is gone
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@dataclass
class Counted:
    """What can be read in the sink's directory."""

    rows: list[Any]
    files: list[str]
    strays: list[str]
    """Names that a reader of the directory would see and that no commit made."""

    @property
    def per_key(self) -> Counter[str]:
        return Counter(key for key, *_ in self.rows)


@dataclass
class CountingJob:
    """The job in one directory; may be run many times."""

    directory: Path
    records: int = 4000
    keys: int = 20
    executor: str = "local"
    program: str = "counting"
    sink: str = "own"
    mode: str = "EXACTLY_ONCE"
    parallelism: int = 2
    number: str = "LONG"
    input: Path | None = None
    config: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        defaults = {
            "penstock.source.max-records-per-epoch": "200",
            # State is read from the store in every epoch, not from memory.
            "penstock.state.cache-entries": "1",
            "penstock.state.max-segments": "2",
            "penstock.spark.master": "local[2]",
        }
        self.config = {**defaults, **self.config}

    @property
    def output(self) -> Path:
        return self.directory / "out"

    @property
    def expected(self) -> Counter[str]:
        """The count of each key, if nothing is lost and nothing comes twice."""
        return Counter(
            f"k{key}" for key in range(self.keys) for _ in range(self.records // self.keys)
        )

    def start(self, *arguments: str, crash_at: str | None = None) -> Run:
        command = [str(_SCRIPT)]
        for name in _ARGUMENTS:
            if (value := getattr(self, name)) is not None:
                command += [f"--{name}", str(value)]
        command += ["--checkpoints", str(self.directory / "checkpoints")]
        for item in self.config.items():
            command += ["--config", "=".join(item)]
        environment = {**os.environ, **_QUICK_JVM}
        if crash_at is not None:
            environment["PENSTOCK_CRASH_AT"] = crash_at
            environment["PENSTOCK_CRASH_ONCE"] = str(self._marker(crash_at))
        self.directory.mkdir(parents=True, exist_ok=True)
        log = self.directory / f"run{len(self.runs)}"
        self.runs.append(Run(self._way(), [*command, *arguments], environment, log))
        return self.runs[-1]

    def _way(self) -> Start:
        """Without Spark, to import everything takes longer than most runs."""
        if self.executor != "local":
            return started
        servers = fork_servers()
        return servers[len(self.runs) % len(servers)].start

    def run(self, *arguments: str, crash_at: str | None = None) -> Run:
        """Run once, to whatever end."""
        run = self.start(*arguments, crash_at=crash_at)
        run.wait()
        return run

    def finish(self, *arguments: str, crash_at: str | None = None, tries: int = 4) -> Run:
        """Start it again and again until it ends well."""
        for _ in range(tries):
            run = self.run(*arguments, crash_at=crash_at)
            if run.process.returncode == 0:
                return run
        raise AssertionError(f"not done after {tries} tries\n{run.tail()}")

    def crashed(self, crash_at: str) -> bool:
        """Whether somebody died at this point."""
        return self._marker(crash_at).exists()

    def _marker(self, crash_at: str) -> Path:
        return self.directory / f"crashed-{crash_at}"

    def counted(self, sink: str = "") -> Counted:
        """What a sink has committed; of a program with several, the one in this directory."""
        rows: list[Any] = []
        files, strays = [], []
        for path in sorted((self.output / sink).iterdir()):
            if path.name.startswith("part-"):
                files.append(path.name)
                rows += [tuple(json.loads(line)) for line in path.read_text().splitlines()]
            elif not path.name.startswith("."):
                strays.append(path.name)
        return Counted(rows, files, strays)

    def assert_exact(self) -> None:
        """Every record counted once, in order, in state and in the sink."""
        counted = self.counted()
        assert counted.strays == []
        assert counted.per_key == self.expected
        each = self.records // self.keys
        exact = sorted((f"k{key}", n, n + 1, 1) for key in range(self.keys) for n in range(each))
        assert sorted(counted.rows) == exact

    def end(self) -> None:
        for run in self.runs:
            run.kill_group()


@pytest.fixture
def counting_job(tmp_path: Path) -> Iterator[Callable[..., CountingJob]]:
    """Makes jobs, each in a directory of its own; what they left running is ended."""
    jobs: list[CountingJob] = []

    def make(**settings: Any) -> CountingJob:
        job = CountingJob(tmp_path / f"job{len(jobs)}", **settings)
        jobs.append(job)
        return job

    yield make
    for job in jobs:
        job.end()
