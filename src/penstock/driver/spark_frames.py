"""The frames that an epoch's plan starts from: Spark's sources, and calls to Python's."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.driver.spark_checkpoint import CALLS
from penstock.driver.spark_columns import (
    combined,
    in_each_task,
    prepared,
    with_columns,
    with_files,
)
from penstock.driver.spark_stages import ROW_SCHEMA, PythonSourceTask, ShippedPlan, SparkSourceTask
from penstock.errors import InvalidProgramError
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan, Vertex
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import SparkSourceName

_FILES_PER_SUBTASK = 4
_CALLS = 1024
_UNNAMED = "<Unassigned>"
_STREAM, _FILES = "StreamingRelation", "FileSource["


class SourceFrames:
    """Makes the source stage of a plan."""

    def __init__(
        self,
        session: SparkSession,
        plan: PhysicalPlan,
        shipped: ShippedPlan,
        layout: CheckpointLayout,
    ) -> None:
        self._batch = plan.settings.batch
        self._shipped = shipped
        self._layout = layout
        heads = plan.at_level(0)
        self._spark = [v for v in heads if isinstance(v.operators[0].operator, SparkSource)]
        python = [v for v in heads if isinstance(v.operators[0].operator, PythonSource)]
        self._subtasks = max((v.parallelism for v in python), default=1)
        self._python_unbounded = any(not v.operators[0].operator.bounded for v in python)
        self.has_spark_sources = bool(self._spark)
        self.combines = any(v.operators[0].operator.combined for v in self._spark)
        """Whether there is one source, whose records are combined batch by batch: in a stream Spark
        would keep what it combines as state."""
        self._has_python_sources = bool(python)
        given = [v.operators[0].operator.frame for v in self._spark]
        self.session = self._session = given[0].sparkSession if given else session
        """The session of the frames, if there are any: a plan has but one."""
        self.named = all(_is_named(frame) for frame in given if frame.isStreaming)
        """Whether sources can be told apart by name: then they may change between runs."""
        self.in_batches = not self._batch or any(frame.isStreaming for frame in given)
        """Whether Spark cuts the input into batches; else one plan reads all of it."""
        self.ends_by_itself = (
            not self._batch
            and self.has_spark_sources
            and not self._python_unbounded
            and all(v.operators[0].operator.bounded for v in self._spark)
        )
        """Spark's sources are read up to what is there now; no call keeps the query going."""
        calls = self._has_python_sources or (plan.needs_clock and not self._batch)
        self.ticking = calls and not self.ends_by_itself
        """Every batch calls Python's sources, if there are any; and there is always a batch."""

    def streaming(self) -> DataFrame:
        """The source stage of the streaming plan; if a source `combines`, what comes before it."""
        if self.combines:
            (vertex,) = self._spark
            return self._prepared(vertex, self._input(vertex))
        frames = [self._records(v, self._input(v)) for v in self._spark]
        if self.ticking:
            frames.append(self._as_calls(self._ticks()))
        return reduce(DataFrame.union, frames)

    def of_batch(self, frame: DataFrame) -> DataFrame:
        """The source stage of one batch of a source that `combines`."""
        (vertex,) = self._spark
        return self.source_stage(in_each_task(self.combined(frame), vertex.parallelism))

    def combined(self, frame: DataFrame) -> DataFrame:
        """The rows of such a batch combined, over all tasks."""
        (vertex,) = self._spark
        source: SparkSource = vertex.operators[0].operator
        assert source.combined is not None
        return combined(frame, source.combined)

    def source_stage(self, rows: DataFrame) -> DataFrame:
        """The task of such a source, over combined rows."""
        (vertex,) = self._spark
        return rows.mapInArrow(SparkSourceTask(self._shipped, vertex.index), ROW_SCHEMA)

    def _prepared(self, vertex: Vertex, frame: DataFrame) -> DataFrame:
        source: SparkSource = vertex.operators[0].operator
        assert source.combined is not None
        return prepared(self._with_columns(vertex, frame), source.combined, vertex.parallelism)

    def _with_columns(self, vertex: Vertex, frame: DataFrame) -> DataFrame:
        return with_columns(frame, vertex.operators[0])

    def names(self) -> tuple[SparkSourceName, ...]:
        """The streaming sources in `streaming`, as Spark calls them."""
        found: list[SparkSourceName] = []
        number = 0
        for vertex in self._spark:
            frame = vertex.operators[0].operator.frame
            names = _names_in(frame) if frame.isStreaming else (_rows_name(vertex),)
            if not self.named:
                names = tuple(str(number + i) for i in range(len(names)))
            number += len(names)
            found.append(SparkSourceName(vertex.operators[0].uid, names))
        if self.ticking:
            found.append(SparkSourceName(CALLS, (CALLS if self.named else str(number),)))
        return tuple(found)

    def whole(self) -> DataFrame:
        """The source stage of a plan that reads batch frames and Python sources to their end."""
        if self.combines:
            (vertex,) = self._spark
            frame = self._prepared(vertex, vertex.operators[0].operator.frame)
            return self.of_batch(frame).union(self.calls())
        frames = [self._records(v, v.operators[0].operator.frame) for v in self._spark]
        return reduce(DataFrame.union, frames, self.calls())

    def rows_to_read(self) -> dict[str, int]:
        """How many rows the batch frames have, by uid, if their end must be known from that."""
        if self.ends_by_itself or self._batch:
            return {}
        found: dict[str, int] = {}
        for vertex in self._spark:
            frame = vertex.operators[0].operator.frame
            if not frame.isStreaming:
                rows = self._session.read.schema(frame.schema).parquet(
                    self._layout.rows(vertex.uid)
                )
                found[vertex.operators[0].uid] = self._with_columns(vertex, rows).count()
        return found

    def calls(self, to_all: bool = False, session: SparkSession | None = None) -> DataFrame:
        """The source stage of an epoch without a batch: calls only, to Python's sources or to
        Spark's as well."""
        session = session or self._session
        spark = [v.parallelism for v in self._spark] if to_all else []
        subtasks = max([self._subtasks, *spark])
        return self._as_calls(session.range(0, subtasks, 1, subtasks).toDF("value"))

    def _as_calls(self, frame: DataFrame) -> DataFrame:
        return frame.mapInArrow(PythonSourceTask(self._shipped), ROW_SCHEMA)

    def _ticks(self) -> DataFrame:
        """One row per subtask in every batch; a batch whenever the trigger asks.

        Spark may have noted a batch under another parallelism, which is then run under this one:
        so a batch always has the same number of rows, of which the first few count.
        """
        if self._subtasks > _CALLS:
            raise InvalidProgramError(
                f"a Python source has parallelism {self._subtasks}; at most {_CALLS} is possible"
            )
        return (
            self._reader(CALLS)
            .format("rate-micro-batch")
            .option("rowsPerBatch", _CALLS)
            .option("numPartitions", self._subtasks)
            .option("advanceMillisPerBatch", 1)
            .load()
            .select((F.col("value") % _CALLS).alias("value"))
            .where(F.col("value") < self._subtasks)
        )

    def _records(self, vertex: Vertex, frame: DataFrame) -> DataFrame:
        task = SparkSourceTask(self._shipped, vertex.index)
        rows = self._with_columns(vertex, frame)
        if _is_timed_by_file(vertex):
            rows = with_files(rows)
        return rows.coalesce(vertex.parallelism).mapInArrow(task, ROW_SCHEMA)

    def _input(self, vertex: Vertex) -> DataFrame:
        frame: DataFrame = vertex.operators[0].operator.frame
        if not frame.isStreaming:
            return self._spooled(vertex, frame)
        _check_streamable(frame, vertex.operators[0])
        return frame

    def _spooled(self, vertex: Vertex, frame: DataFrame) -> DataFrame:
        """A batch frame as a stream: written once beside the checkpoint, then read file by file,
        so that a restart goes on where it was."""
        path = self._layout.rows(vertex.uid)
        if not _exists(self._layout.rows_written(vertex.uid)):
            frame.write.mode("overwrite").parquet(path)
        reader = self._reader(_rows_name(vertex)).schema(frame.schema)
        most = _FILES_PER_SUBTASK * vertex.parallelism
        return reader.option("maxFilesPerTrigger", most).parquet(path)

    def _reader(self, name: str) -> DataStreamReader:
        reader = self._session.readStream
        return reader.name(name) if self.named else reader


def _is_timed_by_file(vertex: Vertex) -> bool:
    """Whether tasks read files, and tell receivers what is to come of each. Between files there is
    no order, since Spark deals them out; within a run of records of one it stays, for which records
    must leave the task one after the other."""
    operators = [described.operator for described in vertex.operators]
    timed = any(getattr(operator, "timestamps", False) for operator in operators)
    waits = any(getattr(operator, "waits", False) for operator in operators)
    return bool(operators[0].parts_end) and timed and not waits


def _check_streamable(frame: Any, operator: PhysicalOperator) -> None:
    """Spark's own check of a stream, for the user's part of it.

    For the whole plan it is switched off, since our stages sort what Spark would not let them.
    """
    jvm = frame.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), append)
    except AnalysisException as error:
        raise InvalidProgramError(
            f"the DataFrame of {operator.name!r} ({operator.location}) cannot be streamed: {error}"
        ) from None


def _exists(path: str) -> bool:
    fs, local = filesystem_for(path)
    return fs.exists(local)


def _rows_name(vertex: Vertex) -> str:
    return f"rows_{_identifier(vertex.uid)}"


def _identifier(uid: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in uid)


def reads_files(frame: Any) -> bool:
    """Whether all that comes in a frame's batches is files of one stream."""
    streams = _streams_in(frame)
    if len(streams) != 1 or streams[0].getClass().getSimpleName() != _STREAM:
        return False  # of several streams each has a time of its own
    name: str = streams[0].sourceName()
    return name.startswith(_FILES)


def _names_in(frame: Any) -> tuple[str, ...]:
    """One for each streaming source of a frame, in the order in which Spark meets them."""
    return tuple(_name_of(leaf) for leaf in _streams_in(frame))


def _streams_in(frame: Any) -> list[Any]:
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found: list[Any] = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        # A common table expression is no stream. One that a frame has twice is read once.
        is_stream = leaf.getClass().getSimpleName().startswith(_STREAM)
        if is_stream and not any(leaf.equals(other) for other in found):
            found.append(leaf)
    return found


def _name_of(leaf: Any) -> str:
    text: str = leaf.sourceIdentifyingName().toString()
    return text.removeprefix("name=").strip('"')


def _is_named(frame: Any) -> bool:
    """Whether all streaming sources of a frame were given names by the user."""
    return _UNNAMED not in _names_in(frame)
