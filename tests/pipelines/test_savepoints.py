"""Savepoints of running jobs, and jobs that begin from them."""

from __future__ import annotations

import shutil
from pathlib import Path

from gated import START, StartJob, await_lines, await_true, open_gate, since, written

from penstock.common import JobStatus


def test_stop_with_a_savepoint_and_go_on_from_it(job: StartJob, tmp_path: Path) -> None:
    first = job(23)
    await_lines(tmp_path, 23)
    path = first.stop_with_savepoint(False).result()
    assert first.get_job_status().result() is JobStatus.FINISHED
    first.get_job_execution_result().result()  # it has ended well
    assert not (tmp_path / "checkpoints" / "job").exists()

    second = job(40, {START: path})
    await_lines(tmp_path, 40)
    second.cancel().result()


def test_a_savepoint_while_the_job_runs_on(job: StartJob, tmp_path: Path) -> None:
    first = job(10)
    await_lines(tmp_path, 10)
    path = first.trigger_savepoint().result()
    assert path.startswith(str(tmp_path / "savepoints" / "savepoint-job-"))
    open_gate(tmp_path / "gate", 30)
    await_lines(tmp_path, 30)
    first.cancel().result()

    moved = shutil.move(path, tmp_path / "elsewhere")
    second = job(20, {START: str(moved), "penstock.job-id": "other"}, out="again")
    await_true(lambda: len(written(tmp_path / "again")) >= 10)
    assert written(tmp_path / "again") == since(10, 20)
    second.cancel().result()
