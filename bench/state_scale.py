"""Large state: what an epoch writes that touches little of it, and how much memory it takes."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

from bench.jobs import session
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.processes import bytes_written, watched_memory
from bench.touches import touching_job
from penstock.driver.epoch_report import EpochReport

_BACKENDS = ("hashmap", "rocksdb")
_MIB = 1 << 20
_KEYS_PER_TOUCH = 1000
_SMALL_PAYLOAD = 16
_LARGE_PAYLOAD = 1000
_LIVE_VALUES = 5000
_WRITTEN_NOTE = (
    "Keys: how many, and the bytes of each value's payload. Written: the changelog segments, from "
    "which the local stores are brought up to date. Load: without the first epoch."
)
_MEMORY_NOTE = (
    "Worker: the most that one Python worker had, sampled; shared pages in part. In the "
    f"last line a task keeps at most {_LIVE_VALUES:,} values live, so that state stays on disk."
)


def measure(options: Options) -> Report:
    report = Report(
        "state_scale",
        "large state, of which an epoch touches little",
        (
            "keys, backend",
            "state",
            "written/epoch",
            "part",
            "load keys/s",
            "epoch ms",
            "touch keys/s",
            "worker MiB",
        ),
        raw={},
    )
    for backend in _BACKENDS:
        keys = 100_000 if options.quick else 1_000_000
        options.say(f"{keys:,} keys, {backend}")
        result = _measured(report, backend, keys, _SMALL_PAYLOAD, keys // _KEYS_PER_TOUCH)
        part = result["epoch_bytes"] / result["state_bytes"]
        report.goals.append(
            Goal(f"written of the state per epoch, {backend}", part, 0.01, at_least=False)
        )
    keys = 4_000_000 if options.full else 50_000 if options.quick else 200_000
    options.say(f"{keys:,} keys of {_LARGE_PAYLOAD} bytes, rocksdb")
    _measured(report, "rocksdb", keys, _LARGE_PAYLOAD, 2000)
    report.notes += [_WRITTEN_NOTE, _MEMORY_NOTE]
    return report


def _measured(report: Report, backend: str, keys: int, payload: int, touched: int) -> Result:
    params = {
        "backend": backend,
        "keys": keys,
        "payload": payload,
        "touched": touched,
        "rounds": 15,
        # Of each of two subtasks: eight epochs, or as many as keep an epoch at 10 MB each.
        "load": 10_000 if payload > _SMALL_PAYLOAD else keys // 16,
        "cache_entries": _LIVE_VALUES if payload > _SMALL_PAYLOAD else 200_000,
    }
    result = run("bench.state_scale:contender", params)
    title = f"{keys:,} × {payload} B, {backend}"
    report.raw[title] = result
    report.rows.append(
        (
            title,
            _size(result["state_bytes"]),
            _size(result["epoch_bytes"]),
            f"1/{result['state_bytes'] / result['epoch_bytes']:.0f}",
            f"{result['load_rate']:,.0f}",
            f"{result['epoch_seconds'] * 1000:.0f}",
            f"{result['touch_rate']:,.0f}",
            f"{result['one_worker'] / _MIB:.0f}",
        )
    )
    return result


def contender(params: Params) -> Result:
    session()
    env = touching_job(params)
    epochs: list[tuple[float, int, EpochReport]] = []
    env.add_epoch_listener(
        lambda report: epochs.append((time.perf_counter(), bytes_written(), report))
    )
    with watched_memory() as memory:
        env.execute("state scale")
    touching = [at for at, epoch in enumerate(epochs) if _touches(epoch[2], params)]
    first = touching[0]
    loading = epochs[:first]
    periods = [epochs[at][0] - epochs[at - 1][0] for at in touching]
    state_bytes = sum(report.state_bytes for _, _, report in loading)
    return {
        "state_bytes": state_bytes,
        "epoch_bytes": median(epochs[at][2].state_bytes for at in touching),
        "worker_bytes": median(epochs[b][1] - epochs[a][1] for a, b in pairwise(touching)),
        "load_rate": _rows(loading[1:]) / (loading[-1][0] - loading[0][0]),
        "load_seconds": [after[0] - before[0] for before, after in pairwise(loading)],
        "epoch_seconds": median(periods),
        "periods": periods,
        "touch_rate": params["touched"] / median(periods),
        "one_worker": memory.one_worker,
        "all_workers": memory.all_workers,
        "store_bytes": _disk(Path(params["scratch"]) / "stores"),
    }


def _rows(epochs: list[tuple[float, int, EpochReport]]) -> int:
    return sum(report.state_rows for _, _, report in epochs)


def _touches(report: EpochReport, params: Params) -> bool:
    return 0 < report.state_rows <= params["touched"] and not report.final


def _disk(directory: Path) -> int:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files)


def _size(count: float) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", _MIB), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"
