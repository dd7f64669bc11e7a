"""A job in a process of its own, and what its user does with it from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gated import await_true, expected, written

from penstock.cli import main
from penstock.common import Configuration, JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.driver import registry

PROGRAM = Path(__file__).parent / "programs" / "counting.py"
SOURCES = Path(__file__).parents[2] / "src"
SHARED = Path(__file__).parent / "shared"
QUICK_JVM = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    (tmp_path / "gate").write_text("10")
    return tmp_path / "gate"


class Started:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def end(self) -> tuple[int, str]:
        """Exit code, and what it wrote to standard error."""
        _, err = self.process.communicate(timeout=90)
        return self.process.returncode, err


@pytest.fixture
def start(tmp_path: Path, gate: Path) -> Iterator[Callable[..., Started]]:
    """Runs the program by `penstock run`, and waits until its job runs."""
    started: list[subprocess.Popen[str]] = []

    def run(*flags: str, runs_on: str = "local") -> Started:
        before = len(registry.running())
        (tmp_path / "config.yaml").write_text(f"execution.checkpointing.dir: {tmp_path / 'c'}\n")
        command = [
            *(sys.executable, "-m", "penstock", "run", "-D", f"penstock.executor={runs_on}"),
            *("--config", str(tmp_path / "config.yaml"), "--job-id", "counts", "-p", "2"),
            *("--master", "local[2]", "--savepoint-dir", str(tmp_path / "savepoints"), *flags),
            *(str(PROGRAM), str(tmp_path)),
        ]
        path = os.pathsep.join([str(SOURCES), str(SHARED), *filter(None, sys.path)])
        process = subprocess.Popen(
            command,
            env={**os.environ, **QUICK_JVM, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        job = Started(process)
        await_true(lambda: len(registry.running()) > before or process.poll() is not None)
        return job

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command with --json in this process: the document that it prints."""

    def run(*arguments: str, code: int = 0, as_given: bool = False) -> Any:
        capsys.readouterr()
        assert main([*arguments, *([] if as_given else ["--json"])]) == code
        printed = capsys.readouterr()
        return json.loads(printed.out or printed.err)

    return run


def await_counts(tmp_path: Path, *ranges: range) -> None:
    await_true(lambda: written(tmp_path / "out") == expected(*ranges))


def test_a_job_is_seen_saved_stopped_and_started_again(
    start: Any, told: Any, tmp_path: Path, gate: Path
) -> None:
    first = start()
    await_counts(tmp_path, range(10))

    (job,) = told("list")["jobs"]
    assert (job["job_id"], job["name"], job["status"]) == ("counts", "counting", "RUNNING")
    assert (job["pid"], job["executor"]) == (first.process.pid, "local")
    assert (job["program"], job["arguments"]) == (str(PROGRAM), [str(tmp_path)])
    assert job["checkpoints"] == str(tmp_path / "c" / "counts")
    info = told("info", "counti")
    assert (info["run_id"], info["parallelism"]) == (job["run_id"], 2)
    assert info["epoch"] >= 0

    kept = told("checkpoints", "counts")["checkpoints"]
    assert kept[-1]["epoch"] >= info["epoch"]
    made = told("savepoint", "create", job["run_id"][:6], str(tmp_path / "other"))
    assert made["path"].startswith(str(tmp_path / "other"))

    gate.write_text("20")
    await_counts(tmp_path, range(20))
    stopped = told("stop", "counts")
    assert stopped["outcome"] == "FINISHED"
    assert first.end()[0] == 0
    assert told("list")["jobs"] == []
    # A job of another test's may just end in this process.
    ended = [job for job in told("list", "--all")["jobs"] if job["pid"] == first.process.pid]
    assert [job["status"] for job in ended] == ["FINISHED"]
    (listed,) = told("savepoint", "list")["savepoints"]
    assert listed["path"] == stopped["path"]
    assert told("savepoint", "show", stopped["path"])["problem"] is None

    gate.write_text("30")
    second = start("-s", stopped["path"])
    await_counts(tmp_path, range(30))
    cancelled = told("cancel", "counts", "--with-savepoint")
    assert cancelled["outcome"] == "CANCELED"
    code, err = second.end()
    assert (code, err.splitlines()[-1]) == (6, "penstock: job 'counting' was cancelled")
    assert len(told("savepoint", "list")["savepoints"]) == 2

    assert told("savepoint", "dispose", stopped["path"], "--yes") == {"disposed": stopped["path"]}
    assert [one["path"] for one in told("savepoint", "list")["savepoints"]] == [cancelled["path"]]


@pytest.mark.spark
def test_the_same_on_spark(start: Any, told: Any, tmp_path: Path) -> None:
    job = start(runs_on="spark")
    await_counts(tmp_path, range(10))
    (listed,) = told("list")["jobs"]
    assert (listed["executor"], listed["status"]) == ("spark", "RUNNING")
    stopped = told("stop", "counts")
    assert stopped["outcome"] == "FINISHED"
    assert job.end()[0] == 0
    assert told("savepoint", "show", stopped["path"])["problem"] is None


def test_a_job_that_dies_is_shown_once_as_lost(start: Any, told: Any, tmp_path: Path) -> None:
    job = start()
    await_counts(tmp_path, range(10))
    os.killpg(job.process.pid, signal.SIGKILL)
    job.end()

    (dead,) = told("list")["jobs"]
    assert (dead["job_id"], dead["status"]) == ("counts", "LOST")
    assert told("list")["jobs"] == []
    assert told("info", "counts")["status"] == "LOST"
    # Its checkpoints are there, and so is the way back.
    assert told("checkpoints", "counts")["checkpoints"]
    start()
    (again,) = told("list")["jobs"]
    assert again["run_id"] != dead["run_id"]


def test_ctrl_c_ends_a_job_in_order(start: Any, told: Any, tmp_path: Path) -> None:
    job = start()
    await_counts(tmp_path, range(10))
    os.killpg(job.process.pid, signal.SIGINT)
    code, err = job.end()
    assert (code, err) == (130, "")
    assert told("list")["jobs"] == []
    assert told("info", "counts")["status"] == "CANCELED"
    assert told("checkpoints", "counts")["checkpoints"]


def test_a_second_driver_is_refused(start: Any, told: Any, tmp_path: Path) -> None:
    start()
    code, err = start().end()
    assert code == 4
    assert "is in use by process" in err
    assert len(told("list")["jobs"]) == 1


def test_a_savepoint_that_is_none(start: Any, tmp_path: Path) -> None:
    code, err = start("-s", str(tmp_path / "none")).end()
    assert code == 3
    assert "it does not exist" in err


def test_detached(start: Any, told: Any, tmp_path: Path, gate: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    path = os.pathsep.join([str(SOURCES), str(SHARED), *filter(None, sys.path)])
    monkeypatch.setenv("PYTHONPATH", path)
    command = ["run", "--detached", str(PROGRAM), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (job,) = told("list")["jobs"]
    assert f"job counting runs: {job['run_id']}" in done.stdout
    assert told("cancel", job["run_id"])["outcome"] == "CANCELED"
    await_true(lambda: not os.path.exists(f"/proc/{job['pid']}"))


def test_detached_and_in_vain(told: Any, tmp_path: Path, monkeypatch: Any) -> None:
    program = tmp_path / "vain.py"
    program.write_text("print('so far'); raise SystemExit(17)")
    arguments = ["run", "--detached", "--json", str(program)]
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCES), *filter(None, sys.path)]))
    error = told(*arguments, code=17, as_given=True)["error"]
    assert error["code"] == 17
    assert error["message"].endswith("so far")


def test_why_a_job_restarts(told: Any, tmp_path: Path) -> None:
    settings = Configuration()
    settings.set_string("penstock.executor", "local")
    settings.set_string("restart-strategy.type", "fixed-delay")
    settings.set_string("restart-strategy.fixed-delay.delay", "1 h")
    settings.set_string("execution.checkpointing.dir", str(tmp_path / "c"))
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.from_collection([0]).map(lambda number: 1 // number).print()
    job = env.execute_async("failing")
    await_true(lambda: job.get_job_status().result() is JobStatus.RESTARTING)
    info = told("info", "failing")
    assert info["status"] == "RESTARTING"
    assert "ZeroDivisionError" in info["error"]
    job.cancel().result()


def test_what_the_job_refuses(start: Any, told: Any, tmp_path: Path) -> None:
    start("--savepoint-dir", "/proc/nowhere")
    await_counts(tmp_path, range(10))
    error = told("savepoint", "create", "counts", code=1)["error"]
    assert error["type"] == "RemoteJobError"
    assert "job 'counting': " in error["message"]
    # It goes on.
    assert told("list")["jobs"][0]["status"] == "RUNNING"
