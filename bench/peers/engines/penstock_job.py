"""Penstock on local Spark, two subtasks, checkpointing every epoch durably.

The mark is the commit of the last cold epoch, the end that of the epoch which closes the input:
whatever was read up to there has been answered, stored and committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench import jobs
from bench.measure import Params, Result
from bench.peers.engines.orders import answers_of, called
from bench.peers.engines.spark_files import frame_of
from penstock import compat
from penstock.datastream.functions import RuntimeContext, SinkFunction
from penstock.driver.epoch_report import EpochReport

compat.install()

_OUTPUTS, _CHECKSUM = "outputs", "checksum"


class Answers(SinkFunction):
    """Gauges tell what came since they were last asked, which is once per epoch."""

    def __init__(self, weight_of: Callable[[Any], float]) -> None:
        self._weight_of = weight_of
        self._outputs = 0
        self._checksum: float = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        group.gauge(_OUTPUTS, self._take_outputs)
        group.gauge(_CHECKSUM, self._take_checksum)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self._outputs += 1
        self._checksum += self._weight_of(value)

    def _take_outputs(self) -> int:
        taken, self._outputs = self._outputs, 0
        return taken

    def _take_checksum(self) -> float:
        taken, self._checksum = self._checksum, 0
        return taken


def run(params: Params) -> Result:
    spark = jobs.session()
    env = jobs.environment(params)
    rows = {
        stream: env.from_spark(frame_of(spark, params, stream), record_type=tuple, bounded=True)
        for stream in params["inputs"]
    }
    return answered(env, called(params["flink"])(rows), params)


def answered(env: Any, answers: Any, params: Params) -> Result:
    """Run the job whose last stream is `answers`, with a batch of Spark's for each epoch."""
    ends = executed(env, answers, params)
    reports = [report for _, report in ends]
    epochs = sum(report.batch is not None for report in reports)
    wanted = -(-params["files"] // params["files_per_epoch"])
    assert epochs == wanted, f"{epochs} epochs with input instead of {wanted}"
    cold = params["cold_files"] // params["files_per_epoch"]
    return {**told(reports), "seconds": ends[-1][0] - ends[cold - 1][0]}


def executed(env: Any, answers: Any, params: Params) -> list[tuple[float, EpochReport]]:
    """The end and the report of each epoch."""
    ends: list[tuple[float, EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), report)))
    _, _, weight_of = answers_of(params)
    answers.add_sink(Answers(weight_of))
    if params.get("columnar"):
        assert "partial results merged" in env.explain(), "the columnar lane is not taken"
    env.execute(params["program"])
    return ends


def told(reports: list[EpochReport]) -> Result:
    """What was answered in all epochs."""
    return {
        _OUTPUTS: sum(_told(report, _OUTPUTS) for report in reports),
        _CHECKSUM: sum(_told(report, _CHECKSUM) for report in reports),
    }


def _told(report: EpochReport, name: str) -> Any:
    """What a gauge told in an epoch, over all subtasks."""
    return sum(
        value
        for group in report.metrics.values()
        for metrics in group
        for key, value in metrics.items()
        if key.endswith(name)
    )
