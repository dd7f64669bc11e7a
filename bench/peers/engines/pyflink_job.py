"""PyFlink in a local cluster, parallelism 2, in process or in thread mode, and set to be quick.

Bundles are large, the cache in the Python worker holds the state of all keys, objects are reused,
and there are no checkpoints. The JVM reads the rows, from CSV since the package has no Parquet.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

from bench.peers.engines.orders import answers_of, called, paths_in
from bench.peers.flink.answers import Answers
from bench.peers.probe import seen_in

_PARALLELISM = 2
_SETTINGS = {
    "parallelism.default": str(_PARALLELISM),
    "pipeline.object-reuse": "true",
    "python.fn-execution.bundle.size": "10000",
    "python.fn-execution.bundle.time": "1000",
    "python.state.cache-size": "50000",
    "python.map-state.read-cache-size": "50000",
    "python.map-state.write-cache-size": "50000",
    "python.executable": sys.executable,
    "python.client.executable": sys.executable,
}
_CHUNK_ROWS = 2_000
_SQL_TYPES = {"string": "STRING", "long": "BIGINT", "double": "DOUBLE", "int": "INT"}


def run(params: dict[str, Any]) -> dict[str, Any]:
    # The interpreter inside the JVM does not know that it is one of a virtual environment.
    paths = [os.environ.get("PYTHONPATH", ""), sysconfig.get_path("purelib")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    configuration = Configuration()  # from here on there is a JVM
    for key, value in _SETTINGS.items():
        configuration.set_string(key, value)
    configuration.set_string("python.execution-mode", params["mode"])
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(env)
    rows = {stream: _source(tables, params, stream) for stream in params["inputs"]}
    answers = called(params.get("pyflink") or params["flink"])(rows)
    discarding = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink
    answers.flat_map(Answers(params["scratch"], *answers_of(params))).sink_to(Sink(discarding()))
    env.execute(params["program"])
    return seen_in(params["scratch"])


def _source(tables: StreamTableEnvironment, params: dict[str, Any], stream: str) -> DataStream:
    directory = Path(params["scratch"]) / stream
    directory.mkdir()
    _share_out(paths_in(params, stream, ".csv"), directory)
    fields = [field.split() for field in params["schemas"][stream].split(",")]
    columns = ", ".join(f"`{name}` {_SQL_TYPES[kind]}" for name, kind in fields)
    tables.execute_sql(
        f"CREATE TABLE `{stream}` ({columns}) WITH ("
        f"'connector' = 'filesystem', 'path' = 'file://{directory}', 'format' = 'csv')"
    )
    return tables.to_data_stream(tables.from_path(stream))


def _share_out(paths: list[Path], directory: Path) -> None:
    """One file for each subtask of the source, which reads it from its beginning to its end.

    Of several files Flink would take any one next, whatever the time of its records. Both get
    their share of every moment, so that neither is ahead of the other.
    """
    turns = cycle(range(_PARALLELISM))
    with ExitStack() as closed:
        parts = [
            closed.enter_context(open(directory / f"{number}.csv", "w"))
            for number in range(_PARALLELISM)
        ]
        for path in paths:
            with open(path) as lines:
                while chunk := list(islice(lines, _CHUNK_ROWS)):
                    parts[next(turns)].writelines(chunk)
