"""The Spark session that a job runs in, and the settings that its queries need."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock.errors import UnsupportedFeatureError

_LOG_SETTINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")

# Every value on its way to Python would be checked for its bounds and for null, twice: a quarter of
# the JVM's time, for code of Spark's that knows both.
_JVM_OPTIONS = (
    f"-Dlog4j2.configurationFile=file:{_LOG_SETTINGS}",
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
    # The costly compiler is for what is really hot. By default it also takes all of Spark's own
    # machinery, a tenth of a second for each method: for minutes, on the cores that the job needs.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# For a session that we make ourselves: decided before the JVM starts.
_STATIC = {
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.speculation": "false",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": " ".join(_JVM_OPTIONS),
}

# For the queries of a job, whoever made the session.
_QUERY = {
    "spark.sql.adaptive.enabled": "false",
    # So many keys and slices are combined in the quick one of Spark's two maps: by default 2¹⁶, and
    # records of all others are looked for in both.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    # A sort within partitions makes replays equal; Spark refuses any sort in a stream by default.
    "spark.sql.streaming.unsupportedOperationCheck": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
}

# Spark's own two logs in a quarter of the time. Only sound where one driver at a time writes,
# which the lease sees to. The file system is not taken from the cache, so that other queries of
# the session keep theirs.
_LOCAL_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


# A session has one set of settings, and jobs in threads of their own may share it.
_SETTINGS_IN_USE = threading.RLock()


def spark_session(
    master: str | None,
    app_name: str,
    jars: Sequence[str] = (),
    class_paths: Sequence[str] = (),
) -> SparkSession:
    """The active session, or a new one on `master` (by default all cores of this machine)."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return checked(active)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if not _submitted():
        master = master or "local[*]"
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master)
    for key, value in {**_STATIC, **_java_settings(jars, class_paths)}.items():
        builder = builder.config(key, value)
    return checked(builder.getOrCreate())


def _java_settings(jars: Sequence[str], class_paths: Sequence[str]) -> dict[str, str]:
    wanted = {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": os.pathsep.join(class_paths),
        "spark.executor.extraClassPath": os.pathsep.join(class_paths),
    }
    return {key: value for key, value in wanted.items() if value}


def _submitted() -> bool:
    """Whether spark-submit started this process: then it decides about the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def checked(session: SparkSession) -> SparkSession:
    if not hasattr(session, "_jsparkSession"):
        raise UnsupportedFeatureError(
            "Spark Connect sessions cannot run Penstock jobs, since they have no local properties "
            "and no foreachBatch on the driver; use a classic session (spark-submit, or "
            "SparkSession.builder.master(...))"
        )
    _use_this_python(session)
    _silence_bridge()
    return session


def _silence_bridge() -> None:
    """The bridge to the JVM logs its every call as information, among a program's own."""
    bridge = logging.getLogger("py4j")
    if bridge.level == logging.NOTSET:
        bridge.setLevel(logging.WARNING)


def _use_this_python(session: SparkSession) -> None:
    """Workers on this machine take the first `python3` that they find, unless they are told; that
    need not be one that has Penstock, while the driver's does."""
    context = session.sparkContext
    told = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    if not told and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


@contextmanager
def python_command(session: SparkSession, python: str | None) -> Iterator[None]:
    """The command for workers of functions that are made meanwhile, if not the session's."""
    context = session.sparkContext
    with _SETTINGS_IN_USE:
        usual = context.pythonExec
        if python is not None:
            context.pythonExec = python
        try:
            yield
        finally:
            context.pythonExec = usual


@contextmanager
def query_settings(
    session: SparkSession, named_sources: bool, python: str | None = None
) -> Iterator[None]:
    """The session's settings as our queries need them; a query keeps a copy when it starts.

    `python` is the command for workers, if it is not to be the session's.
    """
    wanted = {
        **_QUERY,
        **_LOCAL_FILES,
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": str(named_sources).lower(),
    }
    with python_command(session, python):
        before = {key: session.conf.get(key, None) for key in wanted}
        for key, value in wanted.items():
            session.conf.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    session.conf.unset(key)
                else:
                    session.conf.set(key, old)
