"""Sessions and environments for the contenders on Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench import data
from bench.measure import Params
from penstock.common.configuration import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.driver.spark_session import spark_session

MASTER = "local[2]"
PARALLELISM = 2


def session() -> SparkSession:
    """The session that Penstock makes by itself."""
    return spark_session(MASTER, "bench")


def environment(params: Params, settings: dict[str, Any] | None = None) -> Any:
    """Two subtasks, durable checkpoints in the contender's own directory."""
    configuration = Configuration()
    wanted = {
        "execution.checkpointing.dir": f"{params['scratch']}/checkpoints",
        "state.backend.local-dir": f"{params['scratch']}/stores",
        "penstock.job-id": "bench",
        "penstock.spark.master": MASTER,
        "parallelism.default": PARALLELISM,
        **(settings or {}),
    }
    for key, value in wanted.items():
        configuration.set_string(key, str(value))
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def files_stream(spark: SparkSession, params: Params) -> DataFrame:
    """The first so many files of the input, a few in each epoch."""
    return (
        spark.readStream.schema(data.SCHEMA)
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .option("pathGlobFilter", data.first_files(params["files"]))
        .parquet(params["input"])
    )
