"""Looks at running jobs, or talks to one. Light: knows neither plans nor Spark."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Callable
from typing import Any

from penstock.cli.exit_codes import OK
from penstock.cli.finding import known_job, running_job
from penstock.cli.output import (
    in_words,
    iso_time,
    local_time,
    print_facts,
    print_json,
    print_table,
    waiting,
)
from penstock.driver import registry
from penstock.driver.control_client import ask
from penstock.driver.registry import JobEntry
from penstock.errors import PenstockError

_STATUS_SECONDS = 2.0


def list_jobs(arguments: argparse.Namespace) -> int:
    dead = registry.bury_dead()
    entries = registry.running()
    ended = registry.ended() if arguments.all else dead
    jobs = [_described(entry, _live(entry)) for entry in [*ended, *entries]]
    if arguments.json:
        print_json({"jobs": jobs})
        return OK
    rows = [
        (
            job["run_id"],
            _told_apart(job, jobs),
            job["status"],
            job["epoch"],
            job["parallelism"],
            job["executor"],
            in_words(job["seconds"]),
            f"{job['pid']} on {job['host']}",
            os.path.basename(job["program"]),
        )
        for job in jobs
    ]
    columns = ("run", "name", "status", "epoch", "p", "on", "for", "process", "program")
    print_table(columns, rows, "No jobs are running.")
    return OK


def _told_apart(job: dict[str, Any], jobs: list[dict[str, Any]]) -> str:
    """The name, with the job id where others have the name too."""
    name: str = job["name"]
    ids = {other["job_id"] for other in jobs if other["name"] == name}
    return name if len(ids) == 1 else f"{name} ({job['job_id']})"


def info(arguments: argparse.Namespace) -> int:
    entry = known_job(arguments.job)
    job = _described(entry, _live(entry))
    if arguments.json:
        print_json(job)
        return OK
    print_facts(
        {
            "Name": job["name"],
            "Status": job["status"],
            "Job id": job["job_id"],
            "Run": job["run_id"],
            "Program": " ".join(map(shlex.quote, [job["program"], *job["arguments"]])),
            "Process": f"{job['pid']} on {job['host']}",
            "Executor": job["executor"],
            "Parallelism": job["parallelism"],
            "Started": f"{local_time(entry.started)}, {in_words(job['seconds'])} "
            + ("ago" if entry.ended is None else "before its end"),
            "Ended": local_time(entry.ended),
            "Error": job["error"],
            "Epoch": job["epoch"],
            "Records in it": job["records_in"],
            "Its seconds": job["epoch_seconds"],
            "Checkpoints": job["checkpoints"] or "none that outlive the job",
            "Savepoints": job["savepoints"],
        }
    )
    return OK


def cancel(arguments: argparse.Namespace) -> int:
    with_savepoint = arguments.with_savepoint is not None
    return _ask(
        arguments,
        f"Cancelling job {arguments.job} …",
        "cancel",
        lambda job, result: f"job {job} has ended: {result['outcome']}",
        savepoint=with_savepoint,
        directory=_directory(arguments.with_savepoint),
    )


def stop(arguments: argparse.Namespace) -> int:
    return _ask(
        arguments,
        f"Stopping job {arguments.job} with a savepoint …",
        "stop",
        lambda job, result: f"job {job} has ended: {result['outcome']}",
        drain=arguments.drain,
        directory=_directory(arguments.savepoint_path),
    )


def create_savepoint(arguments: argparse.Namespace) -> int:
    return _ask(
        arguments,
        f"Job {arguments.job} writes a savepoint …",
        "savepoint",
        lambda job, result: "",
        directory=_directory(arguments.directory),
    )


def _ask(
    arguments: argparse.Namespace,
    waiting_for: str,
    command: str,
    sentence: Callable[[str, dict[str, Any]], str],
    **request: Any,
) -> int:
    """Ask the job, wait for its answer, show it: a savepoint's path alone on a line."""
    entry = running_job(arguments.job)
    with waiting(waiting_for, arguments.json) as tell:

        def on_progress(progress: dict[str, Any]) -> None:
            tell(f"({progress['status'].lower()}, epoch {progress['epoch']})")

        result = ask(entry, command, on_progress, **request)
    if arguments.json:
        print_json({"run_id": entry.run_id, "job_id": entry.job_id, "name": entry.name, **result})
        return OK
    if said := sentence(entry.name, result):
        print(said)
    if "path" in result:
        print(result["path"])
    return OK


def _directory(given: str | None) -> str | None:
    """As this process understands it: the job may have another working directory."""
    if not given or "://" in given:
        return given or None
    return os.path.abspath(given)


def _live(entry: JobEntry) -> dict[str, Any]:
    """What the job says of itself, if it can be asked."""
    if entry.outcome is not None or not entry.is_here or entry.socket is None:
        return {}
    try:
        return ask(entry, "status", timeout=_STATUS_SECONDS)
    except PenstockError:
        return {}


def _described(entry: JobEntry, live: dict[str, Any]) -> dict[str, Any]:
    """The keys are documented in docs/guide/command-line.md."""
    end = time.time() * 1000 if entry.ended is None else entry.ended
    unknown = "RUNNING" if entry.is_here else "ELSEWHERE"
    return {
        "run_id": entry.run_id,
        "job_id": entry.job_id,
        "name": entry.name,
        "status": entry.outcome or live.get("status", unknown),
        "error": entry.error,
        "program": entry.program,
        "arguments": entry.arguments,
        "pid": entry.pid,
        "host": entry.host,
        "executor": entry.executor,
        "parallelism": entry.parallelism,
        "started": iso_time(entry.started),
        "ended": iso_time(entry.ended),
        "seconds": round(max(0.0, (end - entry.started) / 1000), 3),
        "epoch": live.get("epoch"),
        "epoch_seconds": live.get("epoch_seconds"),
        "records_in": live.get("records_in"),
        "checkpoints": entry.root,
        "savepoints": entry.savepoint_dir,
    }
