"""Where a stream ends: in a sink, or in the program that made it, which collects its records."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, overload

from penstock.common.typeinfo import TypeInformation
from penstock.datastream._stream_arguments import instance_of
from penstock.datastream.closeable_iterator import CloseableIterator
from penstock.datastream.connectors._file_sink import StreamingFileSink
from penstock.datastream.connectors.base import Sink, SupportsPreprocessing
from penstock.datastream.connectors.collect_sink import CollectSink
from penstock.datastream.connectors.print_sink import PrintSink
from penstock.datastream.data_stream_sink import DataStreamSink
from penstock.datastream.functions import SinkFunction
from penstock.errors import InvalidArgumentError
from penstock.graph.stream_graph import Node
from penstock.runtime.operators.sinks import CallSink, WriteSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class StreamEnds:
    """Base of `DataStream`."""

    _env: StreamExecutionEnvironment
    _type: TypeInformation | None

    @abstractmethod
    def _add(self, name: str, operator: Any, **settings: Any) -> Node:
        """Put an operator behind the stream."""

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Call a function with every record; again with some after a failure."""
        if isinstance(sink_func, StreamingFileSink):
            return self.sink_to(sink_func.sink)
        function = instance_of("add_sink", (SinkFunction,), sink_func)
        return self._end("Sink: Unnamed", CallSink(function))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write with a sink that takes part in checkpoints."""
        checked = instance_of("sink_to", (Sink,), sink)
        transformer = sink.get_transformer() if isinstance(sink, SupportsPreprocessing) else None
        prepared: StreamEnds = self if transformer is None else transformer.apply(self)
        return prepared._end("Sink: Writer", WriteSink(checked.for_type(prepared._type)))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print every record on the driver's standard output.

        As in PyFlink: a record of a declared type in Java's way, any other as Python has it.
        """
        if not isinstance(sink_identifier, str | None):
            raise InvalidArgumentError.of("a sink identifier", "a string", sink_identifier)
        # What was not printed when the driver died has lost its terminal too.
        sink = PrintSink(sink_identifier, self._type)
        return self._end("Sink: Print", WriteSink(sink, durable=False))

    def _end(self, name: str, operator: Any, **settings: Any) -> DataStreamSink:
        node = self._add(name, operator, is_sink=True, **settings)
        return DataStreamSink(self._env, node.id)

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[Any]: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None, limit: int | None
    ) -> CloseableIterator | list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job; its records as they come, or a list of at most `limit` of them."""
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise InvalidArgumentError.of("limit", "a positive int or None", limit)
        collected = self._collectable()
        operator = WriteSink(CollectSink(), durable=False)
        sink = collected._end("Sink: Collect", operator, helper=True)
        return self._env._collect(sink._node_id, job_name=job_execution_name, limit=limit)

    def _collectable(self) -> StreamEnds:
        """What `execute_and_collect` gives of this stream."""
        return self

    def to_spark(self, schema: Any = None) -> DataFrame:
        """Run the job, whose sources must be bounded; its records as a Spark DataFrame."""
        frame: DataFrame = self._env._to_spark(self, schema)
        return frame
