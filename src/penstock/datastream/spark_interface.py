"""Where the fluent API meets Spark. Spark is imported only when a job or a frame needs it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from typing import Any

from penstock import options
from penstock.common.configuration import Configuration
from penstock.driver.job import Executor, MakeExecutor
from penstock.driver.local_executor import LocalExecutor
from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.records import RecordMaker
from penstock.storage.filesystem import filesystem_for


def is_local(configuration: Configuration) -> bool:
    return configuration.get(options.EXECUTOR) == "local"


_chosen_local_slots: int | None = None


def local_slots() -> int:
    """The default parallelism on this machine."""
    return _chosen_local_slots or os.cpu_count() or 1


def set_local_slots(count: int | None) -> None:
    """Choose it for this process; None leaves it to the machine again."""
    global _chosen_local_slots
    _chosen_local_slots = count


def slots(configuration: Configuration) -> int:
    """The default parallelism: what the engine can run at once."""
    if is_local(configuration):
        return local_slots()
    spark = _session(configuration, "Penstock").sparkContext
    if _chosen_local_slots is not None and spark.master.startswith("local"):
        return _chosen_local_slots
    return int(spark.defaultParallelism)


def executor_for(configuration: Configuration, name: str) -> MakeExecutor:
    """How to run a plan, as configured. Starts Spark if that is what runs it."""
    if is_local(configuration):
        return LocalExecutor
    session = _session(configuration, name)
    spark_executor = _lazily("penstock.driver.spark_executor").SparkExecutor

    timeout = configuration.get(options.CHECKPOINT_TIMEOUT) / 1000

    def make(plan: PhysicalPlan, plan_path: str, interval: float) -> Executor:
        made: Executor = spark_executor(session, plan, plan_path, interval, timeout)
        return made

    return make


def source_of_frame(frame: Any, record_type: Any, bounded: bool | None) -> SparkSource:
    """The operator for a DataFrame."""
    if not hasattr(frame, "isStreaming") or not hasattr(frame, "_jdf"):
        raise InvalidArgumentError.of("frame", "a (classic) Spark DataFrame", frame)
    if not frame.isStreaming and bounded is False:
        raise InvalidArgumentError("a batch DataFrame ends; leave bounded out or pass True")
    return SparkSource(
        name="frame",
        record=RecordMaker(tuple(frame.columns), record_type),
        bounded=not frame.isStreaming if bounded is None else bounded,
        frame=frame,
    )


def spool_for(configuration: Configuration, schema: Any) -> tuple[str, Any]:
    """A directory for the rows of a result, gone when this process ends, and its Arrow schema."""
    parent = configuration.get(options.CHECKPOINT_DIR)
    if parent is not None:
        parent = filesystem_for(parent)[1]
        os.makedirs(parent, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="penstock-rows-", dir=parent)
    atexit.register(shutil.rmtree, directory, True)
    frames = _lazily("penstock.driver.spark_results")
    return directory, frames.arrow_schema(_session(configuration, "Penstock"), schema)


def frame_of_spool(configuration: Configuration, directory: str, schema: Any) -> Any:
    session = _session(configuration, "Penstock")
    return session.read.schema(schema).parquet(directory)


def frame_of_values(configuration: Configuration, values: list[Any]) -> Any:
    """A frame of collected values; Spark finds the types."""
    frames = _lazily("penstock.driver.spark_results")
    return frames.frame_of_values(_session(configuration, "Penstock"), values)


def _session(configuration: Configuration, name: str) -> Any:
    return _lazily("penstock.driver.spark_session").spark_session(
        configuration.get(options.SPARK_MASTER), name
    )


def _lazily(module: str) -> Any:
    __import__(module)
    return sys.modules[module]
