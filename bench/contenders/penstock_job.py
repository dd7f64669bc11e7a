"""Penstock on local Spark, checkpointing every epoch."""

from __future__ import annotations

from typing import Any

from bench import data
from bench.functions import COUNTED, CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.job_times import metric, timed
from bench.jobs import PARALLELISM, environment, files_stream, session
from bench.measure import Params, Result
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.parquet import ParquetRecords


def run(params: Params) -> Result:
    """Spark reads the files."""
    spark = session()
    env = environment(params)
    readings = env.from_spark(files_stream(spark, params), record_type=tuple, bounded=True)
    return _timed(env, readings, params)


def run_file_source(params: Params) -> Result:
    """The tasks read the files themselves."""
    session()  # starting it is no part of what is measured
    rows = params["files_per_epoch"] * data.ROWS_PER_FILE
    env = environment(params, {"penstock.source.max-records-per-epoch": rows // PARALLELISM})
    paths = data.files_of(params["input"], params["files"])
    source = FileSource.for_bulk_file_format(ParquetRecords(record_type=tuple), *paths).build()
    readings = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    return _timed(env, readings, params)


def _timed(env: Any, readings: Any, params: Params) -> Result:
    (readings.map(ToFahrenheit()).key_by(sensor_of).process(CountAndSum()).add_sink(CountingSink()))
    result = timed(env, "keyed process", params, lambda report: metric(report, COUNTED))
    del result["reports"]
    return {**result, "outputs": result["records"]}
