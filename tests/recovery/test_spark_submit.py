"""The same file on a standalone cluster: a master, a worker, spark-submit, all processes of their
own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from penstock.driver import registry

_HOME = Path(pyspark.__file__).parent
_JOB = Path(__file__).parent / "jobs" / "submitted_job.py"
_READY = ("registered with master", "I have been elected leader")
_SOURCES = Path(__file__).parents[2] / "src"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
    return {
        **kept,
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(_SOURCES), os.environ.get("PYTHONPATH", "")]),
    }


@contextmanager
def _service(log: Path, kind: str, *arguments: str) -> Iterator[None]:
    """A part of the cluster, up to the end of the block."""
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=_environment())
    try:
        deadline = time.monotonic() + 60
        while not any(text in log.read_text() for text in _READY):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with one worker."""
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    at = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(_free_port())]
    size = ["--cores", "2", "--memory", "1g", "--webui-port", str(_free_port())]
    work = ["--work-dir", str(tmp_path / "work")]
    with (
        _service(tmp_path / "master.log", "master.Master", *at),
        _service(tmp_path / "worker.log", "worker.Worker", url, *size, *work),
    ):
        yield url


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.slow
def test_a_program_runs_unchanged_on_a_cluster(master: str, tmp_path: Path) -> None:
    """Application mode: the driver is the program, and its settings are in a file."""
    settings = tmp_path / "config.yaml"
    settings.write_text(f"""\
parallelism.default: 2
pipeline.max-parallelism: 64
execution.checkpointing.dir: {tmp_path / "checkpoints"}
penstock.source.max-records-per-epoch: 200
""")
    command = [
        str(_HOME / "bin" / "spark-submit"),
        *("--master", master, "--executor-memory", "512m", "--conf", "spark.ui.enabled=false"),
        str(_JOB),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**_environment(), "PENSTOCK_CONF": str(settings)},
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counted = f"counted {[(key, 200) for key in range(5)]} {master} 64"
    assert counted in done.stdout.splitlines()
    job = registry.ended()[-1]
    assert (job.name, job.executor, job.outcome) == ("submitted", "spark", "FINISHED")
    assert job.root == str(tmp_path / "checkpoints" / "submitted")
