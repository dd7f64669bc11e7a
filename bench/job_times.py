"""Runs a Penstock job and takes its times: epoch by epoch, those to warm up with left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench.measure import Params, Result
from bench.processes import cpu_seconds
from penstock.driver.epoch_report import EpochReport


def timed(env: Any, name: str, params: Params, records_of: Callable[[EpochReport], int]) -> Result:
    """`records_of` an epoch are what rates are about. Of the result, ``reports`` is no JSON."""
    ends: list[tuple[float, dict[str, float], EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), cpu_seconds(), report)))
    started = time.perf_counter()
    env.execute(name)
    seconds = time.perf_counter() - started
    # The last epoch has no input: it only ends the job.
    reports = [report for _, _, report in ends if not report.final]
    counts = [records_of(report) for report in reports]
    cold = params["cold_epochs"]
    warm = sum(counts[cold:])
    stamps = [started, *(at for at, _, _ in ends[: len(counts)])]
    busy = [at for _, at, _ in ends[: len(counts)]]
    spent = {kind: (busy[-1][kind] - busy[cold - 1][kind]) / warm * 1e6 for kind in busy[-1]}
    return {
        "records": sum(counts),
        "seconds": seconds,
        "rate": sum(counts) / seconds,
        "warm_rate": warm / (stamps[-1] - stamps[cold]),
        "cpu_micros": sum(spent.values()),
        "cpu_micros_by_process": spent,
        "epoch_rates": [
            count / (end - begin)
            for count, (begin, end) in zip(counts, pairwise(stamps), strict=True)
        ],
        "epoch_steps": [dict(report.seconds_by_step) for report in reports],
        "reports": [report for _, _, report in ends],
    }


def metric(report: EpochReport, name: str) -> int:
    """A metric of an epoch, over all subtasks."""
    return sum(
        int(value)
        for group in report.metrics.values()
        for metrics in group
        for key, value in metrics.items()
        if key.endswith(name)
    )
