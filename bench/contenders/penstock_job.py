"""Penstock on local Spark, checkpointing every epoch."""

from __future__ import annotations

import time
from itertools import pairwise

from bench import data
from bench.functions import COUNTED, CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.jobs import environment, session
from bench.measure import Params, Result
from bench.processes import cpu_seconds
from penstock.driver.epoch_loop import EpochReport


def run(params: Params) -> Result:
    spark = session()
    env = environment(params)
    frame = (
        spark.readStream.schema(data.SCHEMA)
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .option("pathGlobFilter", data.first_files(params["files"]))
        .parquet(params["input"])
    )
    (
        env.from_spark(frame, record_type=tuple, bounded=True)
        .map(ToFahrenheit())
        .key_by(sensor_of)
        .process(CountAndSum())
        .add_sink(CountingSink())
    )
    ends: list[tuple[float, dict[str, float], EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), cpu_seconds(), report)))
    started = time.perf_counter()
    env.execute("keyed process")
    seconds = time.perf_counter() - started
    # The last epoch has no input: it only ends the job.
    reports = [report for _, _, report in ends if report.batch is not None]
    counts = [_outputs(report) for report in reports]
    outputs = sum(counts)
    cold = params["cold_epochs"]
    warm = sum(counts[cold:])
    stamps = [started, *(at for at, _, _ in ends[: len(counts)])]
    busy = [at for _, at, _ in ends[: len(counts)]]
    spent = {kind: (busy[-1][kind] - busy[cold - 1][kind]) / warm * 1e6 for kind in busy[-1]}
    return {
        "outputs": outputs,
        "seconds": seconds,
        "rate": outputs / seconds,
        "warm_rate": warm / (stamps[-1] - stamps[cold]),
        "cpu_micros": sum(spent.values()),
        "cpu_micros_by_process": spent,
        "epoch_rates": [
            count / (end - begin)
            for count, (begin, end) in zip(counts, pairwise(stamps), strict=True)
        ],
        "epoch_steps": [dict(report.seconds_by_step) for report in reports],
    }


def _outputs(report: EpochReport) -> int:
    return sum(
        int(value)
        for group in report.metrics.values()
        for metrics in group
        for name, value in metrics.items()
        if name.endswith(COUNTED)
    )
