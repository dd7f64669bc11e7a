"""Where the fluent API meets Spark. Spark is imported only when a job or a frame needs it."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from functools import partial
from typing import Any

from penstock import options
from penstock.common.configuration import Configuration
from penstock.datastream._records import RecordMaker
from penstock.driver.dependencies import Dependencies, class_paths, jars
from penstock.driver.executor import Executor, MakeExecutor
from penstock.driver.import_bundle import make_importable, make_packages_importable
from penstock.driver.local_executor import LocalExecutor
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.physical import PhysicalPlan
from penstock.storage.filesystem import filesystem_for

_log = logging.getLogger("penstock")


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
    dependencies = Dependencies.of(configuration)
    make_importable(dependencies.files)
    if is_local(configuration):
        return partial(_local_executor, dependencies)
    session = _session(configuration, name)
    timeout = configuration.get(options.CHECKPOINT_TIMEOUT) / 1000
    return partial(_spark_executor, session, dependencies, timeout)


def _local_executor(
    dependencies: Dependencies, plan: PhysicalPlan, plan_path: str, interval: float
) -> Executor:
    if dependencies.archives:
        raise UnsupportedFeatureError.of(
            "an archive on the local executor",
            "functions look for it in the working directory, which is your program's own there; "
            "set penstock.executor to spark",
        )
    if dependencies.executable is not None:
        _log.warning("the local executor runs functions in this process, by no other Python")
    if dependencies.requirements is not None:
        make_packages_importable(dependencies.requirements)
    return LocalExecutor(plan, plan_path, interval)


def _spark_executor(
    session: Any,
    dependencies: Dependencies,
    timeout: float,
    plan: PhysicalPlan,
    plan_path: str,
    interval: float,
) -> Executor:
    shipping = _lazily("penstock.driver.spark_shipping")
    surroundings = shipping.ship(session, dependencies)
    if dependencies.requirements is not None:
        make_packages_importable(dependencies.requirements)
    shipped = _lazily("penstock.driver.spark_stages").ShippedPlan(plan_path, surroundings)
    make = _lazily("penstock.driver.spark_executor").SparkExecutor
    python = shipping.python_for(session, dependencies)
    made: Executor = make(session, plan, shipped, interval, timeout, python)
    return made


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
        parts_end=_lazily("penstock.driver.spark_frames").reads_files(frame),
    )


def tried(method: str, make: Any, *columns: Any) -> Any:
    """What Spark makes of columns, or an error that says what they were given to."""
    columns_of = _lazily("penstock.driver.spark_columns")
    return columns_of.tried(method, make, *columns)


def position_of_field(method: str, frame: Any, column: Any) -> int | None:
    """Which of the frame's own columns a Column is, None if it is computed."""
    found: int | None = _lazily("penstock.driver.spark_columns").position_of_field(
        method, frame, column
    )
    return found


def check_time_column(frame: Any, column: Any) -> None:
    """Refuse a Column that cannot give timestamps."""
    columns_of = _lazily("penstock.driver.spark_columns")
    kind = columns_of.tried("with_timestamp_assigner", frame.select, column).dtypes[0][1]
    if columns_of.millis(frame, column) is None:
        raise InvalidArgumentError(
            "with_timestamp_assigner takes a Column of milliseconds (long) or of timestamps, got "
            f"one of type {kind}; convert it, as in F.to_timestamp(...)"
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
    wanted, paths = jars(configuration), class_paths(configuration)
    session = _lazily("penstock.driver.spark_session").spark_session(
        configuration.get(options.SPARK_MASTER), name, wanted, paths
    )
    if wanted or paths:
        _lazily("penstock.driver.spark_shipping").check_java(session, wanted, paths)
    return session


def _lazily(module: str) -> Any:
    __import__(module)
    return sys.modules[module]
