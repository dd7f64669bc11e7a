"""DataStream: each method adds a node to the program's graph, or says how records travel on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from penstock.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream._columns import (
    check_time,
    column_filter,
    column_key,
    column_map,
    has_columns,
    is_column,
)
from penstock.datastream._old_names import OldStreamMethods
from penstock.datastream._operator_settings import OperatorSettings
from penstock.datastream._stream_arguments import (
    declared_type,
    function_or_callable,
    instance_of,
    partition_function,
    selector_of,
    time_assigner,
)
from penstock.datastream._stream_ends import StreamEnds
from penstock.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    JoinFunction,
    KeySelector,
    MapFunction,
    OutputSelector,
    Partitioner,
    ProcessFunction,
)
from penstock.datastream.joined_streams import CoGroupedStreams, JoinedStreams
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.side_input import SideInput
from penstock.datastream.state import MapStateDescriptor
from penstock.datastream.window import WindowAssigner
from penstock.datastream.windowed_stream import AllWindowedStream, count_windowed
from penstock.deprecation import old_keywords
from penstock.errors import InvalidArgumentError
from penstock.graph.location import user_location
from penstock.graph.partitioning import (
    Broadcast,
    ByKey,
    Custom,
    Forward,
    Global,
    Partitioning,
    Rebalance,
    Rescale,
    Shuffle,
)
from penstock.graph.stream_graph import Chaining, Edge, Node
from penstock.refusals import JavaHandle, refusing
from penstock.runtime.fields import getter, tuple_getter
from penstock.runtime.operators.lookup import Lookup
from penstock.runtime.operators.process import Process
from penstock.runtime.operators.stateless import Filter, FlatMap, Map

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.common.execution_config import ExecutionConfig
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

TypeLike = TypeInformation | type | None
Selector = Callable[[Any], Any] | KeySelector | int | str | Iterable[Any]
"""For `key_by` also a Column, which counts as an iterable."""


@refusing(
    {
        "interval_join": "call key_by(...) on both streams first: it joins by key",
        "in_event_time_order": "call key_by(...) first: records are put in order for each key",
        "window": "call key_by(...) first, or window_all(...) for one window over all keys",
        "count_window": "call key_by(...) first, or count_window_all(...) for all keys together",
        "aggregate": "call key_by(...) and window(...) first",
        **dict.fromkeys(
            ("allowed_lateness", "evictor", "side_output_late_data", "trigger"),
            "it belongs between window(...) and what is computed over the windows",
        ),
    }
)
class DataStream(StreamEnds, OperatorSettings, OldStreamMethods):
    """A stream of records. Immutable: every method leaves it as it is and returns another."""

    _j_data_stream = JavaHandle("to_spark() gives a DataFrame of a bounded stream")

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        edges: tuple[Edge, ...],
        type_info: TypeInformation | None = None,
    ) -> None:
        self._env = env
        self._edges = edges
        """Where the records come from; several after a union."""
        self._type = type_info or self._produced_type()

    def _produced_type(self) -> TypeInformation | None:
        """The type that the operators before declare, if they agree on one."""
        found = {
            None if edge.tag is not None else self._env._graph.node(edge.source).output_type
            for edge in self._edges
        }
        return found.pop() if len(found) == 1 else None

    # What is known about it

    def get_name(self) -> str:
        return self._operator("get_name").name

    def get_type(self) -> TypeInformation:
        return self._type or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        return self._env.get_config()

    def _operator(self, method: str) -> Node:
        if len(self._edges) != 1 or self._edges[0] != Edge(self._edges[0].source):
            raise InvalidArgumentError(
                f"{method}() belongs to an operator, and this stream is the union, a side output "
                f"or another partitioning of others; call {method}() on those, or after the next "
                "operator"
            )
        return self._env._graph.node(self._edges[0].source)

    # Settings that sinks do not have

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        """The number of key groups, and the most subtasks there can ever be."""
        return self._set("set_max_parallelism", max_parallelism=max_parallelism)

    def force_non_parallel(self) -> DataStream:
        return self._set("force_non_parallel", parallelism=1, max_parallelism=1)

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        """Accepted and without effect: buffers leave when full, and at the end of an epoch."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise InvalidArgumentError.of(
                "a buffer timeout", "milliseconds from 0 on, or -1", timeout_millis
            )
        return self._set("set_buffer_timeout")

    def start_new_chain(self) -> DataStream:
        """Run in another task than the operator before."""
        return self._set("start_new_chain", chaining=Chaining.HEAD)

    # Operators

    def map(
        self,
        func: Callable[[Any], Any] | MapFunction | Column | list[Column],
        output_type: TypeLike = None,
    ) -> DataStream:
        """One record out for each one in.

        Right behind `from_spark` also by a Column, whose values are the records then, or by a list
        of Columns, for named tuples of them.
        """
        if has_columns(func):
            mapped = column_map(self._env._graph, self._edges, func)
            return self._then("Map", mapped, output_type)
        return self._then("Map", Map(function_or_callable("map", MapFunction, func)), output_type)

    def flat_map(
        self,
        func: Callable[[Any], Iterable[Any] | None] | FlatMapFunction,
        output_type: TypeLike = None,
    ) -> DataStream:
        """Any number of records out for each one in."""
        function = function_or_callable("flat_map", FlatMapFunction, func)
        return self._then("Flat Map", FlatMap(function), output_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """The same records with timestamps, and watermarks between them."""
        assigner = time_assigner(watermark_strategy)
        check_time(self._env._graph, self._edges, assigner)
        node = self._add("Timestamps/Watermarks", assigner, parallelism=self._parallelism_before())
        return DataStream(self._env, (Edge(node.id),), self._type)

    def _parallelism_before(self) -> int | None:
        """As many subtasks as before, for who must not mix their records: that disturbs order."""
        before = self._env._graph.node(self._edges[0].source)
        return before.fixed_parallelism or before.parallelism

    def filter(self, func: Callable[[Any], bool] | FilterFunction | Column) -> DataStream:
        """The records for which the function, or right behind `from_spark` a Column, is true."""
        if is_column(func):
            filtered = column_filter(self._env._graph, self._edges, func)
            return DataStream(self._env, (Edge(self._add("Filter", filtered).id),), self._type)
        function = function_or_callable("filter", FilterFunction, func)
        node = self._add("Filter", Filter(function))
        return DataStream(self._env, (Edge(node.id),), self._type)

    def process(self, func: ProcessFunction, output_type: TypeLike = None) -> DataStream:
        """Handle records one by one, with a context and side outputs."""
        function = instance_of("process", (ProcessFunction,), func)
        return self._then("PROCESS", Process(function), output_type)

    def lookup(
        self,
        side_input: SideInput,
        key_selector: Selector,
        func: Callable[[Any, Any], Any] | JoinFunction | None = None,
        how: str = "inner",
        output_type: TypeLike = None,
    ) -> DataStream:
        """Join each record with the rows of a side input that have its key.

        `func(record, row)` makes the result for every match, without it a pair. With
        ``how="left"`` a record without a match goes on too, with None for a row.
        """
        self._env._check_side_input("lookup", side_input)
        if side_input.key is None:
            raise InvalidArgumentError(
                f"lookup needs a side input with a key, and {side_input.name!r} "
                f"({side_input.location}) has none; give one: env.side_input(..., key=...)"
            )
        if how not in ("inner", "left"):
            raise InvalidArgumentError.of("how", "'inner' or 'left'", how)
        function = _pair if func is None else function_or_callable("lookup", JoinFunction, func)
        select = selector_of("lookup", key_selector)
        operator = Lookup(side_input.name, select, function, how == "left")
        return self._then("Lookup", operator, output_type, side_inputs=(side_input,))

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cut all records into windows, in one subtask; if they have keys, use `window`."""
        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of `size` records, one after the other, or a new one every `slide` records."""
        return count_windowed(AllWindowedStream, self, size, slide)

    def project(self, *field_indexes: int | str) -> DataStream:
        """A tuple of some of the fields."""
        if not field_indexes:
            raise InvalidArgumentError("project needs at least one field, got none")
        select = tuple_getter([getter(field) for field in field_indexes])
        return self._then("Projection", Map(select), self._projected_type(field_indexes))

    def _projected_type(self, fields: tuple[int | str, ...]) -> TypeInformation | None:
        if not isinstance(self._type, TupleTypeInfo):
            return None
        types = self._type.get_field_types()
        for field in fields:
            if not isinstance(field, int) or field >= len(types):
                raise InvalidArgumentError.of(
                    f"a field of {self._type!r}", f"a position from 0 to {len(types) - 1}", field
                )
        return Types.TUPLE([types[field] for field in fields if isinstance(field, int)])

    def _then(
        self, name: str, operator: Any, output_type: TypeLike = None, **settings: Any
    ) -> DataStream:
        node = self._add(name, operator, output_type=declared_type(output_type), **settings)
        return DataStream(self._env, (Edge(node.id),))

    def _with(
        self, second: DataStream, name: str, operator: Any, output_type: TypeLike = None
    ) -> DataStream:
        """What an operator makes of this stream, its first input, and a second one."""
        edges = (*self._edges, *(replace(edge, input_index=1) for edge in second._edges))
        ordered = any(getattr(stream, "_ordered", False) for stream in (self, second))
        both = DataStream(self._env, edges)
        return both._then(name, operator, output_type, event_time_order=ordered)

    def _add(self, name: str, operator: Any, **settings: Any) -> Node:
        return self._env._graph.add(
            name, operator, self._edges, location=user_location(), **settings
        )

    # Several streams

    def union(self, *streams: DataStream) -> DataStream:
        """The records of all, in no particular order between them."""
        edges, kind = self._edges, self._type
        for stream in streams:
            self._check_beside("union", stream)
            if kind and stream._type and kind != stream._type:
                raise InvalidArgumentError(
                    f"union needs streams of one type, got {kind!r} and {stream._type!r}; "
                    "map one of them first, with the other's type as output_type"
                )
            kind = kind or stream._type
            edges += stream._unkeyed()._edges
        return DataStream(self._env, edges)

    @overload
    def connect(self, ds: DataStream) -> connected_streams.ConnectedStreams: ...

    @overload
    def connect(
        self, ds: broadcast_stream.BroadcastStream
    ) -> broadcast_stream.BroadcastConnectedStream: ...

    def connect(
        self, ds: DataStream | broadcast_stream.BroadcastStream
    ) -> connected_streams.ConnectedStreams | broadcast_stream.BroadcastConnectedStream:
        """Both streams as the two inputs of the next operator."""
        if isinstance(ds, broadcast_stream.BroadcastStream):
            descriptors = ds.broadcast_state_descriptors
            return broadcast_stream.BroadcastConnectedStream(self, ds, descriptors)
        return connected_streams.ConnectedStreams(self, ds)

    def iterate(self, max_wait_time_millis: int = 0) -> iterative_stream.IterativeStream:
        """The beginning of a part of the program whose results come back to it by `close_with`.

        When all input has ended, the job goes on until nothing is in the loop, and then for
        `max_wait_time_millis` more, in case timers of processing time send something round.
        """
        return iterative_stream.IterativeStream(self._unkeyed(), max_wait_time_millis)

    def join(self, other: DataStream) -> JoinedStreams:
        """Pairs of records of both streams that have key and window in common.

        `stream.join(other).where(key).equal_to(key).window(assigner).apply(function)`
        """
        self._check_beside("join", other)
        return JoinedStreams(self._before_key_by(), other._before_key_by())

    def co_group(self, other: DataStream) -> CoGroupedStreams:
        """All records of both streams that have key and window in common, at once.

        `stream.co_group(other).where(key).equal_to(key).window(assigner).apply(function)`
        """
        self._check_beside("co_group", other)
        return CoGroupedStreams(self._before_key_by(), other._before_key_by())

    def _check_beside(self, method: str, other: Any, wanted: str = "a DataStream") -> None:
        """Refuse what cannot go into one operator with this stream."""
        if not isinstance(other, DataStream):
            raise InvalidArgumentError.of(f"what {method} takes", wanted, other)
        if other._env is not self._env:
            raise InvalidArgumentError(
                f"{method} needs streams of one environment, got two; make both from the "
                "environment that get_execution_environment() returned once"
            )

    def _unkeyed(self) -> DataStream:
        """The records where keys play no part any more."""
        return self

    def _before_key_by(self) -> DataStream:
        """The stream before it got keys, for who gives it others."""
        return self

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator sent to that side output."""
        if not isinstance(output_tag, OutputTag):
            raise InvalidArgumentError.of("a side output", "an OutputTag", output_tag)
        node = self._operator("get_side_output")
        return DataStream(self._env, (Edge(node.id, tag=output_tag.tag_id),), output_tag.type_info)

    def split(
        self, output_selector: Callable[[Any], Iterable[str]] | OutputSelector
    ) -> split_stream.SplitStream:
        """Name the outputs of each record: none, one or several; `.select(name)` gives one."""
        return split_stream.SplitStream(self._before_key_by(), output_selector)

    # How records travel to the next operator

    @old_keywords("DataStream")
    def key_by(self, key_selector: Selector, key_type: TypeLike = None) -> keyed_stream.KeyedStream:
        """Records of one key to one subtask, where the key has its state.

        The key is what a function gives, a field by position or name, or a tuple of several; on
        rows of a DataFrame also a Column that is a field.
        """
        if is_column(key_selector):
            key_selector = column_key(self._env._graph, self._edges, key_selector)
        select = selector_of("key_by", key_selector)
        edges = self._by(ByKey(select, declared_type(key_type)))
        return keyed_stream.KeyedStream(self, edges, select)

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Selector
    ) -> DataStream:
        """The partitioner chooses the subtask by the key and the number of subtasks."""
        partition = partition_function(partitioner)
        select = selector_of("partition_custom", key_selector)
        return self._travelling(Custom(partition, select))

    def shuffle(self) -> DataStream:
        """Each record to a random subtask."""
        return self._travelling(Shuffle())

    def rebalance(self) -> DataStream:
        """Round robin over all subtasks."""
        return self._travelling(Rebalance())

    def rescale(self) -> DataStream:
        """Round robin over a few subtasks near by."""
        return self._travelling(Rescale())

    def forward(self) -> DataStream:
        """To the subtask of the same index; both sides must have the same parallelism."""
        return self._travelling(Forward(explicit=True))

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> broadcast_stream.BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | broadcast_stream.BroadcastStream:
        """Every record to every subtask; with descriptors, to keep as state there."""
        everywhere = self._travelling(Broadcast())
        if broadcast_state_descriptor is None and not other_broadcast_state_descriptors:
            return everywhere
        descriptors = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        return broadcast_stream.BroadcastStream(everywhere, descriptors)  # type: ignore[arg-type]

    def global_(self) -> DataStream:
        """Everything to the first subtask."""
        return self._travelling(Global())

    def _travelling(self, partitioning: Partitioning) -> DataStream:
        return DataStream(self._env, self._by(partitioning), self._type)

    def _by(self, partitioning: Partitioning) -> tuple[Edge, ...]:
        here = user_location()
        return tuple(
            replace(edge, partitioning=partitioning, location=here) for edge in self._edges
        )

    def cache(self) -> CachedDataStream:
        """Accepted and without effect: each job computes it; to_spark().cache() would keep it."""
        return CachedDataStream(self._env, self._edges, self._type)


def _pair(record: Any, row: Any) -> tuple[Any, Any]:
    return record, row


class CachedDataStream(DataStream):
    """Made by `cache`: a stream whose cache is always empty, so that it is computed anew."""

    def invalidate(self) -> None:
        """Accepted and without effect: nothing is kept."""


# They build on DataStream, so they can only be imported once that exists.
from penstock.datastream import (  # noqa: E402
    broadcast_stream,
    connected_streams,
    iterative_stream,
    keyed_stream,
    split_stream,
)
