"""How long a job takes from its start after kill -9 to the first epoch that it commits."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from bench.jobs import session
from bench.measure import (
    ContenderFailed,
    Options,
    Params,
    Report,
    Result,
    kill,
    median,
    result_of,
    scratch,
    start,
)
from bench.touches import touching_job

_BACKENDS = ("hashmap", "rocksdb")
_WARM_TOUCHES = 3
_TIMEOUT = 600.0


def measure(options: Options) -> Report:
    keys = 100_000 if options.quick else 1_000_000
    report = Report(
        "restart",
        f"from start after kill -9 to the first committed epoch, {keys:,} keys in state",
        ("state", "seconds", "of which Python, JVM, session", "the epoch itself"),
        raw={},
    )
    rounds = 1 if options.quick else 3
    for backend in _BACKENDS:
        params = {"backend": backend, "keys": keys, "payload": 16, "touched": 1000}
        with scratch() as directory:
            options.say(f"{backend}: filling")
            fixed = {**params, "rounds": 1 << 30, "scratch": str(directory)}
            fill_and_kill(fixed, directory)
            for title, forget in (("store kept", False), ("store lost", True)):
                options.say(f"{backend}, {title}")
                results = [resume(fixed, directory, forget) for _ in range(rounds)]
                report.raw[f"{backend}, {title}"] = results
                report.rows.append(
                    (
                        f"{backend}, {title}",
                        *(
                            f"{median(result[key] for result in results):.1f}"
                            for key in ("seconds", "session", "epoch")
                        ),
                    )
                )
    report.notes.append(
        "Store kept: the same host starts again. Store lost: the local store is deleted first, as "
        "on another host, and rebuilt from the checkpoint."
    )
    return report


def fill_and_kill(params: Params, directory: Path) -> None:
    process = start("bench.restart:filling", params, directory)
    ready = directory / "ready"
    deadline = time.monotonic() + _TIMEOUT
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            kill(process)
            result_of("bench.restart:filling", directory, process)
            raise ContenderFailed("bench.restart:filling ended before it was killed")
        time.sleep(0.05)
    kill(process)


def resume(params: Params, directory: Path, forget: bool) -> Result:
    if forget:
        shutil.rmtree(directory / "stores", ignore_errors=True)
    started = time.time()
    process = start("bench.restart:resuming", params, directory)
    try:
        process.wait(_TIMEOUT)
    finally:
        kill(process)
    # It ends itself by kill -9 once it has told: nothing is tidied up for the next time.
    told = (directory / "told").read_text().split() if (directory / "told").exists() else []
    if len(told) != 3:
        result_of("bench.restart:resuming", directory, process)
    (directory / "told").unlink()
    session_at, epoch_seconds, committed_at = map(float, told)
    return {
        "seconds": committed_at - started,
        "session": session_at - started,
        "epoch": epoch_seconds,
    }


def filling(params: Params) -> Result:
    """Fill the state, touch it a few times, say so, and go on until killed."""
    env = touching_job(params)
    touches = 0

    def listen(epoch: object) -> None:
        nonlocal touches
        touches += 0 < getattr(epoch, "state_rows", 0) <= params["touched"]
        if touches == _WARM_TOUCHES:
            (Path(params["scratch"]) / "ready").touch()

    env.add_epoch_listener(listen)
    env.execute("restart")
    return {}


def resuming(params: Params) -> Result:
    """Go on, and die as soon as one epoch has been committed."""
    session()
    session_at = time.time()
    env = touching_job(params)

    def listen(epoch: object) -> None:
        seconds = getattr(epoch, "seconds", 0.0)
        (Path(params["scratch"]) / "told").write_text(f"{session_at} {seconds} {time.time()}")
        os.kill(os.getpid(), 9)

    env.add_epoch_listener(listen)
    env.execute("restart")
    return {}
