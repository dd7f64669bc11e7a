"""Penstock on local Spark, checkpointing every epoch."""

from __future__ import annotations

from bench.functions import COUNTED, CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.job_times import metric, timed
from bench.jobs import environment, files_stream, session
from bench.measure import Params, Result


def run(params: Params) -> Result:
    spark = session()
    env = environment(params)
    (
        env.from_spark(files_stream(spark, params), record_type=tuple, bounded=True)
        .map(ToFahrenheit())
        .key_by(sensor_of)
        .process(CountAndSum())
        .add_sink(CountingSink())
    )
    result = timed(env, "keyed process", params, lambda report: metric(report, COUNTED))
    del result["reports"]
    return {**result, "outputs": result["records"]}
