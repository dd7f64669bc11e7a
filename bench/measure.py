"""The common runner: contenders in processes of their own, one after the other, and medians."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plots import Plot

_ROOT = Path(__file__).resolve().parent.parent
_TIMEOUT = 1800.0
_LOG_LINES = 25

Params = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """How much to measure, and whom to tell what is going on."""

    quick: bool = False
    full: bool = False
    smoke: bool = False
    """Hardly any input: whether it runs at all. Goes with `quick`."""
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Goal:
    """A number that was promised, and the one that was measured."""

    what: str
    measured: float
    limit: float
    at_least: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


@dataclass
class Report:
    """What a benchmark found."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: Any = None
    plots: list[Plot] = field(default_factory=list)


class ContenderFailed(RuntimeError):
    """A contender did not end well."""


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def run(
    call: str, params: Params, timeout: float = _TIMEOUT, python: str = sys.executable
) -> Result:
    """Run ``module:function`` with `params` in a process of its own; what it returned."""
    with scratch() as directory:
        process = start(call, {"scratch": str(directory), **params}, directory, python)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ContenderFailed(f"{call} had not ended after {timeout:.0f} s") from None
        finally:
            kill(process)
        return result_of(call, directory, process)


@contextmanager
def scratch() -> Any:
    """A directory for whatever a contender leaves behind, gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def start(
    call: str, params: Params, directory: Path, python: str = sys.executable
) -> subprocess.Popen[bytes]:
    """Start a contender, in a process group of its own."""
    order = {"call": call, "params": params, "out": str(directory / "result.json")}
    # This checkout, whichever one is installed.
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_DIRS": str(directory),
        "TMPDIR": str(directory),
    }
    with open(directory / "log", "ab") as log:
        process = subprocess.Popen(
            [python, "-m", "bench.child"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode())
    process.stdin.close()
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a contender and its JVM at once. Python workers follow their JVM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def result_of(call: str, directory: Path, process: subprocess.Popen[bytes]) -> Result:
    out = directory / "result.json"
    if process.returncode != 0 or not out.exists():
        log = (directory / "log").read_text(errors="replace").splitlines()[-_LOG_LINES:]
        raise ContenderFailed("\n".join([f"{call} ended with {process.returncode}:", *log]))
    result: Result = json.loads(out.read_text())
    return result
