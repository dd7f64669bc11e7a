"""Penstock on local Spark, checkpointing every epoch."""

from __future__ import annotations

import time

from bench import data
from bench.functions import COUNTED, CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.jobs import environment, session
from bench.measure import Params, Result
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
    ends: list[tuple[float, EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), report)))
    started = time.perf_counter()
    env.execute("keyed process")
    seconds = time.perf_counter() - started
    # The last epoch has no input: it only ends the job.
    epochs = [(at, _outputs(report)) for at, report in ends if report.batch is not None]
    outputs = sum(count for _, count in epochs)
    cold = params["cold_epochs"]
    warm = sum(count for _, count in epochs[cold:])
    stamps = [started, *(at for at, _ in epochs)]
    return {
        "outputs": outputs,
        "seconds": seconds,
        "rate": outputs / seconds,
        "warm_rate": warm / (stamps[-1] - stamps[cold]),
        "epoch_rates": [
            count / (end - begin)
            for (_, count), begin, end in zip(epochs, stamps, stamps[1:], strict=False)
        ],
    }


def _outputs(report: EpochReport) -> int:
    found = (metrics.get(COUNTED, 0) for group in report.metrics.values() for metrics in group)
    return sum(found)
