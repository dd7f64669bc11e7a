"""What an epoch costs that has hardly any records, with one exchange, and where the time goes."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession

from bench.functions import CountAndSum, CountingSink, Reading, sensor_of
from bench.jobs import PARALLELISM, environment, session
from bench.measure import Goal, Options, Params, Report, Result, median, run
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.driver.epoch_report import EpochReport

_RECORDS = 100
_SENSORS = 50
_KINDS = {"spark": "Spark source", "python": "Python source"}


def measure(options: Options) -> Report:
    params = {"cold_epochs": 100 if options.quick else 200, "epochs": 25 if options.quick else 60}
    found: dict[str, Result] = {}
    for kind, title in _KINDS.items():
        options.say(title)
        found[kind] = run("bench.epoch_cost:contender", {**params, "kind": kind})
    report = Report(
        "epoch_cost",
        f"an epoch of {_RECORDS} records with one exchange, median ms",
        ("where the time goes", *(f"{title}, ms" for title in _KINDS.values())),
        raw=found,
    )
    for part in dict.fromkeys(part for result in found.values() for part in result["parts"]):
        cells = [result["parts"].get(part) for result in found.values()]
        report.rows.append((part, *("–" if c is None else f"{c:.1f}" for c in cells)))
    for kind, title in _KINDS.items():
        whole = median(found[kind]["periods"]) * 1000
        what = f"an epoch with few records, {title}"
        report.goals.append(Goal(what, whole, 150, at_least=False, unit=" ms"))
    report.notes.append(
        f"Median of {params['epochs']} epochs, after {params['cold_epochs']} to warm up. Each line "
        "is a median of its own, so that parts need not add up exactly."
    )
    return report


def contender(params: Params) -> Result:
    spark = session()
    wanted = params["cold_epochs"] + params["epochs"] + 1
    env = small_epochs(spark, params)
    ends: list[tuple[float, EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), report)))
    running = env.execute_async("epoch cost")
    while len(ends) < wanted and not running.get_job_execution_result().done():
        time.sleep(0.05)
    queries = [q for q in spark.streams.active if (q.name or "").startswith("penstock")]
    running.cancel()
    if len(ends) < wanted:
        running.get_job_execution_result().result()
    progress = [batch for query in queries for batch in query.recentProgress]
    measured = ends[params["cold_epochs"] : wanted]
    batches = {report.batch for _, report in measured[1:]}
    periods = [after - before for (before, _), (after, _) in pairwise(measured)]
    return {
        "periods": periods,
        "parts": _parts(
            periods,
            [report for _, report in measured[1:]],
            [batch["durationMs"] for batch in progress if batch["batchId"] in batches],
            _jobs(spark)[-len(periods) :],
        ),
    }


def small_epochs(spark: SparkSession, params: Params) -> Any:
    """An environment with the job, which goes on for ever."""
    env = environment(params, {"penstock.source.max-records-per-epoch": _RECORDS // PARALLELISM})
    source = _SOURCES[params["kind"]](spark, env)
    source.key_by(sensor_of).process(CountAndSum()).add_sink(CountingSink())
    return env


def _spark_source(spark: SparkSession, env: Any) -> Any:
    frame = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", _RECORDS)
        .option("numPartitions", PARALLELISM)
        .option("advanceMillisPerBatch", 1)
        .load()
    )
    rows = env.from_spark(frame, record_type=tuple, bounded=False)
    return rows.map(lambda row: _reading(row[1]))


def _python_source(spark: SparkSession, env: Any) -> Any:
    return env.from_source(NumberSequenceSource(0, 1 << 40)).map(_reading)


_SOURCES = {"spark": _spark_source, "python": _python_source}


def _reading(number: int) -> Reading:
    return f"sensor_{number % _SENSORS}", number, 20.0


# Where the time goes

_SPARK_PARTS = {
    "latestOffset": "Spark: ask the sources (latestOffset)",
    "walCommit": "Spark: write offsets (walCommit)",
    "getBatch": "Spark: getBatch",
    "queryPlanning": "Spark: plan (queryPlanning)",
    "addBatch": "Spark: addBatch (holds all that follows but the commit)",
    "commitOffsets": "Spark: write commit (commitOffsets)",
}


def _parts(
    periods: list[float], reports: list[EpochReport], durations: list[Any], jobs: list[Any]
) -> dict[str, float]:
    parts = {"**epoch, end to end**": median(periods) * 1000, "longest": max(periods) * 1000}
    if durations:  # Python sources alone need no query of Spark's
        parts["Spark: a whole trigger"] = _median_of(durations, "triggerExecution")
        for key, title in _SPARK_PARTS.items():
            parts[title] = _median_of(durations, key)
        inside = median(report.seconds for report in reports) * 1000
        parts["addBatch: around Penstock (py4j, foreachBatch)"] = (
            _median_of(durations, "addBatch") - inside
        )
    for step in ("order", "run", "commit"):
        millis = median(report.seconds_by_step.get(step, 0.0) for report in reports) * 1000
        parts[f"Penstock: {step}"] = millis
    if jobs:
        parts["run: the Spark job"] = median(job["millis"] for job in jobs)
        for number in range(len(jobs[-1]["stages"])):
            stages = [job["stages"][number] for job in jobs if len(job["stages"]) > number]
            parts[f"run: stage {number + 1}"] = median(s["millis"] for s in stages)
            parts[f"run: stage {number + 1}, a task"] = median(s["task"] for s in stages)
    return parts


def _median_of(durations: Iterable[Any], key: str) -> float:
    return median([float(duration.get(key, 0)) for duration in durations] or [0.0])


def _jobs(spark: SparkSession) -> list[Any]:
    """Spark's jobs, oldest first, as its status API has them."""
    context = spark.sparkContext
    if context.uiWebUrl is None:
        return []
    base = f"http://127.0.0.1:{context.uiWebUrl.rpartition(':')[2]}/api/v1/applications"
    stages = {s["stageId"]: s for s in _get(f"{base}/{context.applicationId}/stages")}
    found = []
    for job in sorted(_get(f"{base}/{context.applicationId}/jobs"), key=lambda job: job["jobId"]):
        if job["status"] != "SUCCEEDED":
            continue
        known = [stages[stage] for stage in sorted(job["stageIds"]) if stage in stages]
        found.append(
            {
                "millis": _millis(job),
                "stages": [
                    {"millis": _millis(s), "task": s["executorRunTime"] / max(1, s["numTasks"])}
                    for s in known
                    if s["status"] == "COMPLETE"
                ],
            }
        )
    return found


def _get(url: str) -> list[Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=60) as answer:
        found: list[Any] = json.load(answer)
    return found


def _millis(timed: Any) -> float:
    begin, end = (_time(timed[key]) for key in ("submissionTime", "completionTime"))
    return (end - begin).total_seconds() * 1000


def _time(text: str) -> datetime:
    return datetime.strptime(text.removesuffix("GMT"), "%Y-%m-%dT%H:%M:%S.%f")
