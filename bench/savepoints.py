"""What a savepoint of a large state takes, and a job's beginning from it, at several parallelisms.

Everything is compared within one run: a savepoint with copying its files and with the epochs that
wrote the state, what a restored job reads with the size of the savepoint's files.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

from bench.jobs import PARALLELISM, session
from bench.measure import (
    ContenderFailed,
    Goal,
    Options,
    Params,
    Report,
    Result,
    median,
    run,
    scratch,
)
from bench.touches import touching_job
from penstock.common.job_client import JobClient
from penstock.driver.epoch_report import EpochReport

_MIB = 1 << 20
_OTHER_PARALLELISMS = (5, 1)
_START = "execution.state-recovery.path"
_NOTE = (
    "Savepoint: while the job runs on. Copying: its files, once more, each flushed to disk. "
    "Restore: from the start of the job, in a session that is there, to its first committed epoch, "
    "with neither checkpoint nor local store; read: by all subtasks together."
)


def measure(options: Options) -> Report:
    keys = 20_000 if options.smoke else 100_000 if options.quick else 1_000_000
    rounds = 1 if options.quick else 3
    report = Report(
        "savepoints",
        f"savepoints of {keys:,} keys, and jobs that begin from them",
        ("what", "seconds", "MiB", "compared"),
        raw={},
    )
    params = {"backend": "hashmap", "keys": keys, "payload": 16, "touched": 1000}
    with scratch() as kept:
        options.say(f"{keys:,} keys: savepoints")
        params["savepoints"] = str(kept)
        made = run("bench.savepoints:saving", {**params, "rounds": 1 << 30, "times": rounds})
        report.raw["savepoint"] = made
        size = made["bytes"]
        seconds, copying = median(made["seconds"]), median(made["copying"])
        report.rows += [
            ("loading the state", f"{made['loading']:.1f}", _mib(made["state_bytes"]), ""),
            (
                "savepoint",
                f"{seconds:.2f}",
                _mib(size),
                f"{seconds / made['loading']:.2f} × loading",
            ),
            ("copying it", f"{copying:.2f}", _mib(size), f"{seconds / copying:.0f} × quicker"),
        ]
        for parallelism in (PARALLELISM, *_OTHER_PARALLELISMS):
            options.say(f"{keys:,} keys: restore at parallelism {parallelism}")
            further = {"path": made["path"], "parallelism": parallelism, "rounds": 1 << 30}
            found = [
                run("bench.savepoints:restoring", {**params, **further}) for _ in range(rounds)
            ]
            report.raw[f"restore at {parallelism}"] = found
            read = median(result["read"] for result in found)
            report.rows.append(
                (
                    f"restore, {PARALLELISM} → {parallelism} subtasks",
                    f"{median(result['seconds'] for result in found):.1f}",
                    _mib(read),
                    f"{read / size:.2f} × its files read",
                )
            )
            if not options.smoke:  # else the files are so small that everyone reads all of them
                what = f"bytes read per byte of savepoint, {PARALLELISM} → {parallelism} subtasks"
                report.goals.append(Goal(what, read / size, 1.2, at_least=False))
    report.notes.append(_NOTE)
    return report


def saving(params: Params) -> Result:
    """Load the state, then make savepoints while the job goes on touching it."""
    session()
    env = touching_job({**params, "load": params["keys"]})
    epochs: list[EpochReport] = []
    touched = threading.Event()

    def listen(report: EpochReport) -> None:
        epochs.append(report)
        if 0 < report.state_rows <= params["touched"]:
            touched.set()

    env.add_epoch_listener(listen)
    client = env.execute_async("savepoints")
    _await(touched, client)
    loading = [report for report in epochs if report.state_rows > params["touched"]]
    seconds, copying, path = [], [], ""
    for number in range(params["times"]):
        started = time.perf_counter()
        path = client.trigger_savepoint(f"{params['savepoints']}/{number}").result()
        seconds.append(time.perf_counter() - started)
        copying.append(_copied(Path(path) / "state", Path(params["scratch"]) / f"copy-{number}"))
    client.cancel().result()
    return {
        "path": path,
        "seconds": seconds,
        "copying": copying,
        "bytes": sum(file.stat().st_size for file in (Path(path) / "state").iterdir()),
        "loading": sum(report.seconds for report in loading),
        "state_bytes": sum(report.state_bytes for report in loading),
    }


def restoring(params: Params) -> Result:
    """Begin from a savepoint, and stop after the first epoch."""
    session()
    env = touching_job(params, {_START: params["path"]})
    epochs: list[EpochReport] = []
    first = threading.Event()

    def listen(report: EpochReport) -> None:
        epochs.append(report)
        if report.restored_bytes:
            first.set()

    env.add_epoch_listener(listen)
    started = time.perf_counter()
    client = env.execute_async("savepoints")
    _await(first, client)
    seconds = time.perf_counter() - started
    client.cancel().result()
    with_state = next(report for report in epochs if report.restored_bytes)
    return {"seconds": seconds, "read": with_state.restored_bytes, "epoch": with_state.seconds}


def _await(event: threading.Event, client: JobClient) -> None:
    while not event.wait(0.1):
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()  # raises what ended it
            raise ContenderFailed("the job has ended too early")


def _copied(source: Path, target: Path) -> float:
    started = time.perf_counter()
    target.mkdir()
    for file in source.iterdir():
        copy = shutil.copy(file, target)
        with open(copy, "rb") as written:
            os.fsync(written.fileno())
    return time.perf_counter() - started


def _mib(count: float) -> str:
    return f"{count / _MIB:.1f}"
