"""The environment: makes sources, holds the settings, hands the program over for execution."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from penstock import launch, options
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.time import to_millis
from penstock.common.typeinfo import TypeInformation, Types, type_info_of
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream._columns import check_time_of
from penstock.datastream._data_stream import DataStream
from penstock.datastream._environment_settings import REFUSED, EnvironmentSettings
from penstock.datastream._side_arguments import side_input_of
from penstock.datastream._stream_arguments import time_assigner
from penstock.datastream._stream_ends import StreamEnds
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.closeable_iterator import CloseableIterator
from penstock.datastream.connectors._file_source import FileSource, StreamFormat
from penstock.datastream.connectors.base import Committable, Source
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.spool_sink import SpoolSink
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.side_input import SideInput
from penstock.datastream.spark_interface import (
    executor_for,
    frame_of_spool,
    frame_of_values,
    slots,
    source_of_frame,
    spool_for,
)
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.datastream.utils import ResultTypeQueryable
from penstock.driver.epoch_report import EpochReport
from penstock.driver.job import Job
from penstock.driver.running_job import RunningJob
from penstock.errors import InvalidArgumentError, InvalidProgramError
from penstock.graph.location import user_location
from penstock.graph.stream_graph import MAX_PARALLELISM, Edge, Node, StreamGraph
from penstock.plan.explain import explain_json, explain_mermaid, explain_text
from penstock.plan.svg import explain_svg
from penstock.plan.translate import PlanDefaults
from penstock.refusals import JavaHandle, refusing
from penstock.runtime.operators.sinks import WriteSink
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import PhysicalPlan

_COLLECTED_EPOCHS = 64


@refusing(REFUSED)
class StreamExecutionEnvironment(EnvironmentSettings):
    """Where a program begins and ends."""

    _j_stream_execution_environment = JavaHandle(
        "options are set by env.configure(...), and read by env.get_config() and its like"
    )

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration(configuration)
        options.reject_unknown_keys(self._configuration.key_set())
        if executor := os.environ.get("PENSTOCK_EXECUTOR"):
            self._configuration.set_string(options.EXECUTOR.key, executor)
        self._config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._graph = StreamGraph()
        self._submitted: set[int] = set()
        self._side_inputs: dict[str, SideInput] = {}
        self._listeners: list[Callable[[EpochReport], None]] = []

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """An environment that runs on the active Spark session, or starts one on this machine.

        It begins with the settings of `penstock run` and of the file that PENSTOCK_CONF names; the
        program's own stand above them.
        """
        base = launch.base_configuration()
        return StreamExecutionEnvironment(launch.override(base, configuration or Configuration()))

    # Settings

    def get_config(self) -> ExecutionConfig:
        return self._config

    def configure(self, configuration: Configuration) -> StreamExecutionEnvironment:
        """Take over settings; unknown ``penstock.*`` keys are refused."""
        options.reject_unknown_keys(configuration.key_set())
        launch.override(self._configuration, configuration)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        _check_count("parallelism", parallelism)
        self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        return self._count_of(options.PARALLELISM) or slots(self._configuration)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        _check_count("max parallelism", max_parallelism, MAX_PARALLELISM)
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The set one, -1 if it is derived from each operator's parallelism."""
        return self._max_parallelism() or -1

    def _max_parallelism(self) -> int | None:
        if self._configuration.contains(options.MAX_PARALLELISM):
            return self._count_of(options.MAX_PARALLELISM, MAX_PARALLELISM)
        return None

    def _count_of(self, option: ConfigOption[Any], most: int | None = None) -> int | None:
        """A number that may be left open, in Flink's way by -1."""
        value = self._configuration.get(option)
        if value is None or value == ExecutionConfig.PARALLELISM_DEFAULT:
            return None
        _check_count(option.key, value, most)
        return int(value)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise InvalidArgumentError.of(
                "execution_mode", "a RuntimeExecutionMode", execution_mode
            )
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        return bool(self._configuration.get(options.OPERATOR_CHAINING))

    def get_checkpoint_config(self) -> CheckpointConfig:
        return self._checkpoint_config

    def enable_checkpointing(
        self, interval: Any, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Every epoch is a checkpoint; the interval bounds how long an epoch may grow."""
        self._checkpoint_config.set_checkpoint_interval(to_millis(interval, "the interval"))
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        return self.get_checkpointing_mode()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        self._configuration.set(options.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        return self._configuration.get(options.SAVEPOINT_DIR)

    def add_epoch_listener(self, listener: Callable[[EpochReport], None]) -> None:
        """Call `listener` after every committed epoch of jobs started from now on."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Nothing is held; Spark sessions belong to whoever made them."""

    # Sources

    def from_collection(self, collection: Sequence[Any], type_info: Any = None) -> DataStream:
        """A stream of the values of a list, in order."""
        if isinstance(collection, str | bytes) or not hasattr(collection, "__iter__"):
            raise InvalidArgumentError.of("collection", "a list or another iterable", collection)
        values = list(collection)
        declared = None if type_info is None else type_info_of(type_info)
        source = CollectionSource(values)
        return self._add_source("Collection Source", PythonSource(source), declared, fixed=1)

    def from_elements(self, *elements: Any, type_info: Any = None) -> DataStream:
        """A stream of the arguments."""
        return self.from_collection(list(elements), type_info)

    def from_data(self, *elements: Any, type_info: Any = None) -> DataStream:
        """Another name of `from_elements`; takes one list, too."""
        if len(elements) == 1 and isinstance(elements[0], list | tuple):
            return self.from_collection(list(elements[0]), type_info)
        return self.from_collection(list(elements), type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers from `start` to `end`, both included, read in parallel."""
        source = NumberSequenceSource(start, end)
        return self._add_source("Sequence Source", PythonSource(source), None)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """A stream of the lines of a file, or of all files below a directory."""
        lines = StreamFormat.text_line_format(charset_name)
        source = FileSource.for_record_stream_format(lines, file_path).build()
        return self._add_source("Text File Source", PythonSource(source), Types.STRING())

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Source",
        type_info: Any = None,
    ) -> DataStream:
        """A stream of a source, written in Python or built in."""
        if not isinstance(source, Source):
            raise InvalidArgumentError.of("source", "a Source instance", source)
        if type_info is None and isinstance(source, ResultTypeQueryable):
            type_info = source.get_produced_type()
        declared = None if type_info is None else type_info_of(type_info)
        time = None
        if watermark_strategy not in (None, WatermarkStrategy.no_watermarks()):
            time = time_assigner(watermark_strategy, aligned=True)
            if time.column is not None:
                raise InvalidProgramError.not_columnar(
                    "with_timestamp_assigner", "the source is no DataFrame"
                )
            if time.needs_timestamps and not source.gives_timestamps:
                time = None
        return self._add_source(source_name, PythonSource(source, time), declared)

    def from_spark(
        self,
        frame: Any,
        record_type: Any = None,
        bounded: bool | None = None,
        source_name: str = "Spark Source",
        watermark_strategy: WatermarkStrategy | None = None,
    ) -> DataStream:
        """A stream of the rows of a Spark DataFrame, batch or streaming.

        Rows become named tuples, or what `record_type` says: tuple, dict, Row, a dataclass or a
        NamedTuple. With ``bounded=True`` a streaming frame is read up to what is there when the
        job starts.
        """
        operator = source_of_frame(frame, record_type, bounded)
        if watermark_strategy is not None:
            operator = replace(operator, time=time_assigner(watermark_strategy))
            assert operator.time is not None
            check_time_of(frame, operator.time)
        return self._add_source(source_name, operator, None)

    def side_input(
        self,
        table: Any,
        key: Any = None,
        refresh: Any = None,
        name: str | None = None,
        record_type: Any = None,
    ) -> SideInput:
        """A table beside the streams: for `DataStream.lookup`, and for functions to look at.

        `table` is a batch DataFrame of Spark's, a pandas one, an Arrow table, a list of rows, or a
        function without arguments that gives one of these; it is read on the driver. `key` is what
        rows are found by: a column, several, or a function of the row. `refresh` says when it is
        read again: at the first epoch after so much time, in every epoch ("epoch"), or not at all
        (None). Rows of DataFrames and Arrow tables become named tuples, or what `record_type` says.
        """
        if name is None:
            name = f"side input {len(self._side_inputs) + 1}"
        made = side_input_of(table, key, refresh, name, record_type)
        if made.name in self._side_inputs:
            raise InvalidArgumentError(
                f"there is a side input {made.name!r} already "
                f"({self._side_inputs[made.name].location}); give this one another name"
            )
        self._side_inputs[made.name] = made
        return made

    def _check_side_input(self, method: str, side_input: Any) -> None:
        if not isinstance(side_input, SideInput):
            raise InvalidArgumentError.of(
                f"what {method} takes", "a SideInput (call env.side_input)", side_input
            )
        if self._side_inputs.get(side_input.name) is not side_input:
            raise InvalidArgumentError(
                f"{method} needs a side input of the stream's own environment, and "
                f"{side_input.name!r} ({side_input.location}) is another's"
            )

    def _add_source(
        self,
        name: str,
        operator: Any,
        output_type: TypeInformation | None,
        fixed: int | None = None,
    ) -> DataStream:
        if operator.time is None and self._time_characteristic is TimeCharacteristic.IngestionTime:
            time = time_assigner(WatermarkStrategy.for_ingestion_time())
            operator = replace(operator, time=time)
        if operator.time is not None and output_type is not None:
            # Timestamps are taken from records that are of this type already.
            operator, output_type = replace(operator, record_type=output_type), None
        node = self._graph.add(
            f"Source: {name}",
            operator,
            (),
            location=user_location(),
            output_type=output_type,
            fixed_parallelism=fixed,
        )
        return DataStream(self, (Edge(node.id),))

    # Execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program to its end, or for ever."""
        return self._submit(job_name).wait()

    def execute_async(self, job_name: str | None = None) -> RunningJob:
        """Start the program and return a handle."""
        running = self._submit(job_name)
        running.log_failure()
        return running

    def get_execution_plan(self) -> str:
        """The plan as JSON, in Flink's shape."""
        return explain_json(self._plan())

    def explain(self, format: str = "text") -> str:
        """The plan as text, JSON, a Mermaid diagram or a drawing (svg)."""
        formats = {
            "text": explain_text,
            "json": explain_json,
            "mermaid": explain_mermaid,
            "svg": explain_svg,
        }
        if format not in formats:
            raise InvalidArgumentError.of("format", f"one of {sorted(formats)}", format)
        return formats[format](self._plan())

    def _plan(self) -> PhysicalPlan:
        return self._job(None, {}).plan

    def _submit(
        self,
        job_name: str | None,
        collectors: dict[int, Callable[[list[Committable]], None]] | None = None,
    ) -> RunningJob:
        job = self._job(job_name, collectors or {})
        if instead := launch.current().instead_of_running:
            instead(job)
        self._submitted.update(node.id for node in self._pending())
        return RunningJob(job)

    def _pending(self) -> list[Node]:
        return [node for node in self._graph.sinks if node.id not in self._submitted]

    def _job(
        self,
        job_name: str | None,
        collectors: dict[int, Callable[[list[Committable]], None]],
    ) -> Job:
        sinks = self._pending()
        if not sinks:
            raise InvalidProgramError.nothing_to_run()
        name = job_name or self._configuration.get(options.PIPELINE_NAME)
        make_executor = executor_for(self._configuration, name)
        return Job(
            self._graph.upstream_of([node.id for node in sinks]),
            job_name,
            Configuration(self._configuration),
            PlanDefaults(
                self.get_parallelism(),
                self._max_parallelism(),
                self.is_chaining_enabled(),
                self._config.has_auto_generated_uids_enabled(),
                self._configuration.get(options.EVENT_TIME_ORDER),
            ),
            make_executor,
            collectors,
            list(self._listeners),
            self._config.get_global_job_parameters(),
        )

    def _collect(
        self, node_id: int, job_name: str | None, limit: int | None
    ) -> CloseableIterator | list[Any]:
        """Run the program; the values that reach a collecting sink come back as an iterator."""
        arrived: queue.Queue[list[Any]] = queue.Queue(maxsize=_COLLECTED_EPOCHS)
        closed = False
        handled = sys.exc_info()[1]  # we may be called while an error is dealt with

        def collect(committables: list[Committable]) -> None:
            values = [value for item in committables for value in item.data]
            while not closed:
                try:
                    arrived.put(values, timeout=0.2)
                    return
                except queue.Full:
                    continue

        try:
            running = self._submit(job_name, {node_id: collect})
        except BaseException:
            self._submitted.add(node_id)  # nobody waits for it any more
            raise

        def close() -> None:
            nonlocal closed
            closed = True
            if sys.exc_info()[1] is handled:
                running.job.cancel()
            else:  # an error or Ctrl-C in the program: it may be started again, and go on
                running.job.interrupt()

        def values() -> Iterator[Any]:
            while True:
                try:
                    yield from arrived.get(timeout=0.05)
                except queue.Empty:
                    if running.get_job_execution_result().done() and arrived.empty():
                        break
            if not closed:
                running.wait()

        iterator = CloseableIterator(values(), close)
        if limit is None:
            return iterator
        with iterator:
            return list(islice(iterator, limit))

    def _to_spark(self, stream: StreamEnds, schema: Any) -> Any:
        """Run the program; what reaches the stream's end as a DataFrame."""
        if schema is None:
            values = list(stream.execute_and_collect())
            return frame_of_values(self._configuration, values)
        directory, arrow_schema = spool_for(self._configuration, schema)
        operator = WriteSink(SpoolSink(directory, arrow_schema))
        stream._end("Spark DataFrame", operator, helper=True)
        self.execute()
        return frame_of_spool(self._configuration, directory, schema)


def _check_count(what: str, value: Any, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError.of(what, "a positive int", value)
    if most is not None and value > most:
        raise InvalidArgumentError.of(what, f"at most {most}", value)
