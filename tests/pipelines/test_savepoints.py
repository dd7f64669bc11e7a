"""Savepoints of running jobs, and jobs that begin from them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from gated import await_true, counts, expected, written

from penstock.common import JobStatus

SAVEPOINTS = "execution.checkpointing.savepoint-dir"
START = "execution.state-recovery.path"


@pytest.fixture
def job(restartable_env: Any, tmp_path: Path) -> Any:
    """Starts the counting job; the gate says how far it may read."""

    def start(gate: int, out: str = "out", function: Any = None, **settings: str) -> Any:
        (tmp_path / "gate").write_text(str(gate))
        keys = {name.replace("__", ".").replace("_", "-"): v for name, v in settings.items()}
        env = restartable_env({SAVEPOINTS: str(tmp_path / "savepoints"), **keys})
        counts(env, tmp_path / "gate", tmp_path / out, function)
        return env.execute_async("counting")

    return start


def await_output(out: Path, lines: list[str]) -> None:
    await_true(lambda: len(written(out)) >= len(lines))
    assert written(out) == lines


def test_stop_with_a_savepoint_and_go_on_from_it(job: Any, tmp_path: Path) -> None:
    first = job(23)
    await_output(tmp_path / "out", expected(range(23)))
    path = first.stop_with_savepoint(False).result()
    assert first.get_job_status().result() is JobStatus.FINISHED
    first.get_job_execution_result().result()  # it has ended well
    assert not (tmp_path / "checkpoints" / "job").exists()

    second = job(40, **{START: path})
    await_output(tmp_path / "out", expected(range(40)))
    second.cancel().result()


def test_a_savepoint_while_the_job_runs_on(job: Any, tmp_path: Path) -> None:
    first = job(10)
    await_output(tmp_path / "out", expected(range(10)))
    path = first.trigger_savepoint().result()
    assert path.startswith(str(tmp_path / "savepoints" / "savepoint-job-"))
    (tmp_path / "gate").write_text("30")
    await_output(tmp_path / "out", expected(range(30)))
    first.cancel().result()

    moved = shutil.move(path, tmp_path / "elsewhere")
    second = job(20, "again", **{START: str(moved), "penstock.job-id": "other"})
    await_output(tmp_path / "again", sorted(set(expected(range(20))) - set(expected(range(10)))))
    second.cancel().result()
