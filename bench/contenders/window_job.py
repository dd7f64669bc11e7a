"""Windows by Penstock on local Spark, checkpointing every epoch."""

from __future__ import annotations

from typing import Any

from bench.functions import sensor_of
from bench.job_times import metric, timed
from bench.jobs import environment, files_stream, session
from bench.measure import Params, Result
from bench.timed_data import OUT_OF_ORDER_MILLIS
from bench.window_functions import (
    GAP_MILLIS,
    SESSIONS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    SLIDING,
    TAKEN,
    TUMBLING,
    Calibrate,
    CheckingSink,
    CountAndAverage,
    TimeOfReading,
)
from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.driver.epoch_report import EpochReport

_LATE = "numLateRecordsDropped"
_SIZE = Duration.of_millis(SIZE_MILLIS)
ASSIGNERS: dict[str, Any] = {
    TUMBLING: TumblingEventTimeWindows.of(_SIZE),
    SLIDING: SlidingEventTimeWindows.of(_SIZE, Duration.of_millis(SLIDE_MILLIS)),
    SESSIONS: EventTimeSessionWindows.with_gap(Duration.of_millis(GAP_MILLIS)),
}


def build(readings: Any, kind: str) -> None:
    """From a stream of readings to the sink."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MILLIS)
    ).with_timestamp_assigner(TimeOfReading())
    (
        readings.map(Calibrate())
        .assign_timestamps_and_watermarks(strategy)
        .key_by(sensor_of)
        .window(ASSIGNERS[kind])
        .aggregate(CountAndAverage())
        .add_sink(CheckingSink())
    )


def run(params: Params) -> Result:
    spark = session()
    env = environment(params)
    build(
        env.from_spark(files_stream(spark, params), record_type=tuple, bounded=True),
        params["kind"],
    )
    return results_of(env, params)


def results_of(env: Any, params: Params) -> Result:
    """Runs the job, whose sink tells what it took."""
    result = timed(env, f"{params['kind']} windows", params, _records)
    reports: list[EpochReport] = result.pop("reports")
    return {
        **result,
        "late": max(metric(report, _LATE) for report in reports),
        "taken": {name: sum(metric(report, name) for report in reports) for name in TAKEN},
        "epochs_that_fired": sum(metric(report, TAKEN[0]) > 0 for report in reports),
    }


def _records(report: EpochReport) -> int:
    """What the source read: windows get as many, the sink is chained to them."""
    return max(report.records_in.values())
