"""The jobs of the scaling benchmark, each in a process of its own.

Input is Spark's own counter, so that neither files nor a Python source set the pace; keys are its
numbers scattered, so that any run of as many numbers as there are keys meets each of them once.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.functions import COUNTED, CountingSink
from bench.job_times import metric
from bench.jobs import environment
from bench.measure import ContenderFailed, Params, Result, median
from bench.processes import cpu_seconds
from bench.touches import touching_job
from penstock.common.time import Duration
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream.functions import AggregateFunction, KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.driver.epoch_report import EpochReport
from penstock.driver.spark_session import spark_session

WINDOW_MILLIS = 60_000
RECORDS_PER_MILLI = 20
_SCATTER = 2_654_435_761
"""A prime, so that it has no factor in common with any number of keys that is used."""
_LOOK_SECONDS = 0.02
_LATE = "numLateRecordsDropped"


class Counts(KeyedProcessFunction):
    """Updates the key's state for every record, and emits the count so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY())
        self._count = runtime_context.get_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield count


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[1] / accumulator[0]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class TimeOfNumber(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value // RECORDS_PER_MILLI


def number_in(row: tuple[int]) -> int:
    return row[0]


def same(value: int) -> int:
    return value


def key_among(keys: int) -> Callable[[int], int]:
    return lambda value: value * _SCATTER % keys


def counting(params: Params) -> Result:
    """Numbers through some maps into a count per key."""
    spark = _session(params["cores"])
    env = _environment(params)
    stream = _numbers(spark, env, params).map(number_in)
    for _ in range(params["operators"] - 1):
        stream = stream.map(same)
    stream.key_by(key_among(params["keys"])).process(Counts()).add_sink(CountingSink())
    found = _measured(env, params)
    per_operator = _bare_map_micros()
    return {**found, "bare_map_micros": per_operator}


def windows(params: Params) -> Result:
    """An average per key and window of a minute, of which so many overlap."""
    spark = _session(params["cores"])
    env = _environment(params, {"penstock.window.slices": str(params["slices"]).lower()})
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    size = Duration.of_millis(WINDOW_MILLIS)
    slide = Duration.of_millis(WINDOW_MILLIS // params["overlap"])
    assigner: Any = TumblingEventTimeWindows.of(size)
    if params["overlap"] > 1:
        assigner = SlidingEventTimeWindows.of(size, slide)
    (
        _numbers(spark, env, params)
        .map(number_in)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(key_among(params["keys"]))
        .window(assigner)
        .aggregate(Average())
        .add_sink(CountingSink())
    )
    found = _measured(env, params)
    if found["late"]:
        raise ContenderFailed(f"{found['late']} records were late")
    return found


def touching(params: Params) -> Result:
    """State that is loaded once; then every epoch changes a part of it."""
    _session(params["cores"])
    env = touching_job(params)
    epochs: list[tuple[float, EpochReport]] = []
    env.add_epoch_listener(lambda report: epochs.append((time.perf_counter(), report)))
    with _watched_images() as images:
        env.execute("snapshots")
    first = _loading([report for _, report in epochs], params["keys"])
    later = enumerate(epochs[first:], start=first)
    touched = [at for at, (_, report) in later if report.state_rows and not report.final]
    seconds = [epochs[at][0] - epochs[at - 1][0] for at in touched]
    outside = [
        took - epochs[at][1].seconds_by_step["run"]
        for at, took in zip(touched, seconds, strict=True)
    ]
    return {
        "state_bytes": sum(report.state_bytes for _, report in epochs[:first]),
        "epoch_bytes": median(epochs[at][1].state_bytes for at in touched),
        "epoch_seconds": median(seconds),
        "periods": seconds,
        "outside_tasks": outside,
        "images": [end - begin for begin, end in images.values()],
        "epochs_beside_an_image": sum(
            any(begin < epochs[at - 1][0] and epochs[at][0] < end for begin, end in images.values())
            for at in touched
        ),
    }


@contextmanager
def _watched_images() -> Iterator[dict[threading.Thread, tuple[float, float]]]:
    """When state files were being rewritten beside the job: first and last seen of each."""
    seen: dict[threading.Thread, tuple[float, float]] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            now = time.perf_counter()
            for thread in threading.enumerate():
                if thread.name == "penstock images":
                    seen[thread] = (seen.get(thread, (now, now))[0], now)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def _loading(reports: list[EpochReport], keys: int) -> int:
    """How many epochs it took until each key had been met."""
    met = 0
    for number, report in enumerate(reports, start=1):
        met += report.state_rows
        if met >= keys:
            return number
    raise ContenderFailed(f"only {met} of {keys} keys were loaded")


# Parts


def _session(cores: int) -> SparkSession:
    """So many cores for everything: driver, JVM and workers."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    return spark_session(f"local[{cores}]", "bench")


def _environment(params: Params, settings: dict[str, str] | None = None) -> Any:
    cores = params["cores"]
    wanted = {"penstock.spark.master": f"local[{cores}]", "parallelism.default": cores}
    return environment(params, {**wanted, **(settings or {})})


def _numbers(spark: SparkSession, env: Any, params: Params) -> Any:
    frame: DataFrame = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", params["rows"])
        .option("numPartitions", params["cores"])
        .option("advanceMillisPerBatch", 1)
        .load()
        .select("value")
    )
    return env.from_spark(frame, record_type=tuple, bounded=False)


def _measured(env: Any, params: Params) -> Result:
    """Rate and processor time over the epochs behind those to warm up with."""
    cold, wanted = params["cold_epochs"], params["cold_epochs"] + params["epochs"]
    ends: list[tuple[float, dict[str, float], EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), cpu_seconds(), report)))
    running = env.execute_async("scaling")
    while len(ends) < wanted and not running.get_job_execution_result().done():
        time.sleep(0.02)
    running.cancel()
    if len(ends) < wanted:
        running.get_job_execution_result().result()
    warm = ends[cold - 1 : wanted]
    periods = [after[0] - before[0] for before, after in pairwise(warm)]
    spent = sum(warm[-1][1].values()) - sum(warm[0][1].values())
    records = params["rows"] * len(periods)
    read = max(sum(report.records_in.values()) for _, _, report in warm)
    if read < params["rows"]:
        raise ContenderFailed(f"an epoch read {read} of {params['rows']} rows")
    reports = [report for _, _, report in ends]
    return {
        "rate": params["rows"] / median(periods),
        "cpu_micros": spent / records * 1e6,
        "periods": periods,
        "results": sum(metric(report, COUNTED) for _, _, report in warm[1:]),
        "late": max(metric(report, _LATE) for report in reports),
        "state_bytes": median(report.state_bytes for _, _, report in warm[1:]),
    }


def _bare_map_micros() -> float:
    """What one more function in a chain of generators takes, in plain Python."""

    def mapped(values: Any) -> Iterator[int]:
        for value in values:
            yield same(value)

    def seconds(length: int) -> float:
        values: Any = range(200_000)
        for _ in range(length):
            values = mapped(values)
        started = time.process_time()
        for _ in values:
            pass
        return time.process_time() - started

    best = [min(seconds(length) for _ in range(5)) for length in (1, 5)]
    return (best[1] - best[0]) / 4 / 200_000 * 1e6
