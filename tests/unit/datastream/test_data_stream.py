"""The fluent API: what it adds to the graph, and what it says to wrong arguments."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from penstock.common import ExecutionConfig, Row, Types
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committable, InitContext
from penstock.datastream.connectors.collect_sink import CollectSink
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.print_sink import PrintSink
from penstock.datastream.data_stream import (
    CloseableIterator,
    DataStream,
    DataStreamSink,
    KeyedStream,
)
from penstock.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
)
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.errors import (
    InvalidArgumentError,
    InvalidProgramError,
    RefusedNameError,
    UnsupportedFeatureError,
)
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
from penstock.graph.stream_graph import Chaining, Edge, Node, StreamGraph
from penstock.runtime.operators.process import Process
from penstock.runtime.operators.reduce import Reduce
from penstock.runtime.operators.sinks import CallSink, WriteSink
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.operators.stateless import Filter, FlatMap, Map


class Env:
    """As much of an environment as streams need."""

    def __init__(self) -> None:
        self._graph = StreamGraph()
        self._config = ExecutionConfig()
        self.collected: list[tuple[int, str | None, int | None]] = []

    def get_config(self) -> ExecutionConfig:
        return self._config

    def _collect(self, node_id: int, job_name: str | None, limit: int | None) -> list[Any]:
        self.collected.append((node_id, job_name, limit))
        return []

    def _to_spark(self, stream: DataStream, schema: Any) -> Any:
        return stream, schema

    def source(self, output_type: Any = None, name: str = "Source: Numbers") -> DataStream:
        operator = PythonSource(CollectionSource([1, 2, 3]))
        node = self._graph.add(
            name, operator, (), location=user_location(), output_type=output_type
        )
        return DataStream(self, (Edge(node.id),))  # type: ignore[arg-type]

    @property
    def last(self) -> Node:
        return self._graph.nodes[-1]


@pytest.fixture
def env() -> Env:
    return Env()


@pytest.fixture
def stream(env: Env) -> DataStream:
    return env.source()


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


class Twice(FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return [value, value]


class Odd(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2)


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Handle(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class HandleKeyed(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Modulo(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value % 3


class OpenedModulo(Modulo):
    def open(self, runtime_context: Any) -> None:
        self.by = 3


class ToKey(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key % num_partitions)


class Ignore(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


class Pair(NamedTuple):
    name: str
    count: int


# Operators


@pytest.mark.parametrize(
    ("make", "name", "operator"),
    [
        (lambda s: s.map(str), "Map", Map),
        (lambda s: s.map(Double()), "Map", Map),
        (lambda s: s.flat_map(Twice()), "Flat Map", FlatMap),
        (lambda s: s.filter(Odd()), "Filter", Filter),
        (lambda s: s.process(Handle()), "PROCESS", Process),
        (lambda s: s.project(0), "Projection", Map),
        (lambda s: s.key_by(str).map(Double()), "Map", Map),
        (lambda s: s.key_by(str).process(HandleKeyed()), "KEYED PROCESS", Process),
        (lambda s: s.key_by(str).process(Handle()), "KEYED PROCESS", Process),
        (lambda s: s.key_by(str).reduce(Add()), "Reduce", Reduce),
        (lambda s: s.key_by(str).reduce(max), "Reduce", Reduce),
        (lambda s: s.key_by(str).sum(), "Sum", Reduce),
        (lambda s: s.key_by(str).min(1), "Min", Reduce),
        (lambda s: s.key_by(str).max("age"), "Max", Reduce),
        (lambda s: s.key_by(str).min_by(1), "Min By", Reduce),
        (lambda s: s.key_by(str).max_by(1), "Max By", Reduce),
        (lambda s: s.key_by(str).map_with_state(divmod), "Map", Map),
        (lambda s: s.key_by(str).flat_map_with_state(divmod), "Flat Map", FlatMap),
        (lambda s: s.key_by(str).filter_with_state(divmod), "Filter", Filter),
    ],
)
def test_an_operator_becomes_a_node(
    env: Env, stream: DataStream, make: Callable[[Any], DataStream], name: str, operator: type
) -> None:
    result = make(stream)
    assert type(result) is DataStream
    assert result.get_name() == name
    assert isinstance(env.last.operator, operator)
    assert [edge.source for edge in env.last.inputs] == [0]
    assert env.last.location.file == __file__
    assert not env.last.is_sink


def test_a_node_knows_the_line_that_made_it(env: Env, stream: DataStream) -> None:
    stream.map(str); line = sys._getframe().f_lineno  # noqa: E702 # fmt: skip
    assert (env.last.location.file, env.last.location.line) == (__file__, line)


def test_streams_are_not_changed_by_what_follows_them(env: Env, stream: DataStream) -> None:
    first, second = stream.map(str), stream.map(int)
    first.rebalance()
    assert [node.inputs for node in env._graph.nodes[1:]] == [(Edge(0),), (Edge(0),)]
    assert (first.get_name(), second.get_name()) == ("Map", "Map")


def test_types(stream: DataStream, env: Env) -> None:
    pickled = Types.PICKLED_BYTE_ARRAY()
    assert stream.get_type() == pickled
    typed = stream.map(str, output_type=Types.STRING())
    assert env.last.output_type == typed.get_type() == Types.STRING()
    assert typed.filter(bool).get_type() == Types.STRING()
    assert env.last.output_type is None  # a filter changes nothing, so nothing is to be converted
    assert typed.rebalance().get_type() == Types.STRING()
    assert typed.key_by(str).reduce(max).get_type() == Types.STRING()
    assert env.last.operator.value_type == Types.STRING()
    assert stream.map(str, str).get_type() == Types.STRING()
    assert stream.map(Pair._make, Pair).get_type() == Types.NAMED_TUPLE(Pair)
    assert typed.get_side_output(OutputTag("late", Types.LONG())).get_type() == Types.LONG()
    assert typed.union(typed).get_type() == Types.STRING()
    assert typed.union(stream).get_type() == pickled


def test_project_takes_the_types_along(env: Env, stream: DataStream) -> None:
    typed = env.source(Types.TUPLE([Types.STRING(), Types.LONG()]))
    projected = typed.project(1, 0)
    assert projected.get_type() == Types.TUPLE([Types.LONG(), Types.STRING()])
    assert env.last.operator.function(("a", 1)) == (1, "a")
    with pytest.raises(InvalidArgumentError, match="a position from 0 to 1, got int 2"):
        typed.project(2)
    stream.project("count", "name")
    assert env.last.operator.function(Pair("a", 1)) == (1, "a")


# Settings


def test_settings_change_the_node(env: Env, stream: DataStream) -> None:
    group = SlotSharingGroup.builder("g").build()
    result = (
        stream.map(str)
        .name("Texts")
        .uid("texts")
        .set_parallelism(3)
        .set_max_parallelism(7)
        .set_description("numbers as text")
        .set_buffer_timeout(100)
        .slot_sharing_group(group)
        .start_new_chain()
    )
    assert type(result) is DataStream
    assert (result.get_name(), env.last.uid, env.last.description) == (
        "Texts",
        "texts",
        "numbers as text",
    )
    assert (env.last.parallelism, env.last.max_parallelism) == (3, 7)
    assert env.last.chaining is Chaining.HEAD
    result.disable_chaining().force_non_parallel().set_uid_hash("cafe")
    assert env.last.chaining is Chaining.NEVER
    assert (env.last.parallelism, env.last.max_parallelism, env.last.uid) == (1, 1, "cafe")


def test_settings_of_a_sink(env: Env, stream: DataStream) -> None:
    sink = stream.print().name("Out").uid("out").set_parallelism(2).disable_chaining()
    assert type(sink.set_description("d").slot_sharing_group("g")) is DataStreamSink
    assert (env.last.name, env.last.uid, env.last.parallelism) == ("Out", "out", 2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s.name(""), "an operator's name must be a non-empty string"),
        (lambda s: s.uid(5), "a uid must be a non-empty string, got int 5"),
        (lambda s: s.set_parallelism(0), "parallelism of Map must be a positive int, got int 0"),
        (lambda s: s.set_parallelism("2"), "must be a positive int, got str"),
        (lambda s: s.set_max_parallelism(1 << 20), "at most 32768"),
        (lambda s: s.set_description(None), "a description must be a string"),
        (lambda s: s.set_buffer_timeout(-5), "a buffer timeout must be"),
        (lambda s: s.slot_sharing_group(5), "a slot sharing group must be"),
    ],
)
def test_wrong_settings(stream: DataStream, change: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        change(stream.map(str))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.union(s),
        lambda s: s.rebalance(),
        lambda s: s.forward(),
        lambda s: s.get_side_output(OutputTag("t")),
    ],
)
def test_settings_need_an_operator(stream: DataStream, change: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"name\(\) belongs to an operator"):
        change(stream.map(str)).name("x")


def test_environment_and_config(env: Env, stream: DataStream) -> None:
    assert stream.get_execution_environment() is env
    assert stream.get_execution_config() is env.get_config()


# How records travel


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda s: s, Forward()),
        (lambda s: s.forward(), Forward(explicit=True)),
        (lambda s: s.shuffle(), Shuffle()),
        (lambda s: s.rebalance(), Rebalance()),
        (lambda s: s.rescale(), Rescale()),
        (lambda s: s.broadcast(), Broadcast()),
        (lambda s: s.broadcast(broadcast_state_descriptor=None), Broadcast()),
        (lambda s: s.global_(), Global()),
        (lambda s: s.shuffle().rescale(), Rescale()),
    ],
)
def test_exchanges(
    env: Env, stream: DataStream, make: Callable[[Any], DataStream], expected: Partitioning
) -> None:
    make(stream).map(str)
    assert env.last.inputs == (Edge(0, expected),)


def test_an_exchange_of_a_union_is_that_of_all_its_streams(env: Env, stream: DataStream) -> None:
    stream.union(env.source()).rebalance().map(str)
    assert env.last.inputs == (Edge(0, Rebalance()), Edge(1, Rebalance()))


def test_union_keeps_how_each_stream_travels(env: Env, stream: DataStream) -> None:
    stream.shuffle().union(env.source(), env.source().rescale()).map(str)
    assert env.last.inputs == (Edge(0, Shuffle()), Edge(1), Edge(2, Rescale()))


def test_union_refuses(env: Env, stream: DataStream) -> None:
    with pytest.raises(InvalidArgumentError, match="one environment"):
        stream.union(Env().source())
    with pytest.raises(InvalidArgumentError, match="a DataStream, got list"):
        stream.union([stream])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"streams of one type, got .* map one of them"):
        env.source(Types.LONG()).union(env.source(Types.STRING()))


def test_a_side_output_is_an_edge_with_a_tag(env: Env, stream: DataStream) -> None:
    stream.process(Handle()).get_side_output(OutputTag("late")).map(str)
    assert env.last.inputs == (Edge(1, tag="late"),)
    with pytest.raises(InvalidArgumentError, match="an OutputTag, got str 'late'"):
        stream.get_side_output("late")  # type: ignore[arg-type]


@pytest.mark.parametrize("partitioner", [ToKey(), lambda key, n: key % n])
def test_partition_custom(env: Env, stream: DataStream, partitioner: Any) -> None:
    stream.partition_custom(partitioner, 1).map(str)
    (edge,) = env.last.inputs
    assert isinstance(edge.partitioning, Custom)
    assert edge.partitioning.partition(edge.partitioning.select(("a", 5)), 3) == 2


# Keys


@pytest.mark.parametrize(
    ("selector", "record", "key"),
    [
        (lambda value: value[1], ("a", 5), 5),
        (Modulo(), 5, 2),
        (0, ("a", 5), "a"),
        (0, 5, 5),
        ("name", Row(name="a", count=5), "a"),
        ("name", {"name": "a"}, "a"),
        ("count", Pair("a", 5), 5),
        ([1, 0], ("a", 5), (5, "a")),
        (("name", lambda value: value.count % 2), Pair("a", 5), ("a", 1)),
    ],
)
def test_key_by(env: Env, stream: DataStream, selector: Any, record: Any, key: Any) -> None:
    keyed = stream.key_by(selector, key_type=Types.STRING())
    assert type(keyed) is KeyedStream
    keyed.map(str)
    (edge,) = env.last.inputs
    assert isinstance(edge.partitioning, ByKey)
    assert edge.partitioning.key_type == Types.STRING()
    assert edge.partitioning.select(record) == key


def test_a_key_selector_is_pickled_as_its_method(env: Env, stream: DataStream) -> None:
    stream.key_by(["name", 0]).map(str)
    copy = pickle.loads(pickle.dumps(env.last.inputs[0].partitioning))
    assert copy.select(Pair("a", 5)) == ("a", "a")


def test_keying_again_replaces_the_key(env: Env, stream: DataStream) -> None:
    stream.key_by(0).key_by(1).map(str)
    (edge,) = env.last.inputs
    assert isinstance(edge.partitioning, ByKey)
    assert edge.partitioning.select(("a", 5)) == 5
    stream.key_by(0).partition_custom(ToKey(), 1).map(str)
    assert isinstance(env.last.inputs[0].partitioning, Custom)


@pytest.mark.parametrize(
    ("selector", "error", "sentence"),
    [
        (None, InvalidArgumentError, "key_by needs a callable, a KeySelector, a position"),
        (-1, InvalidArgumentError, "a field must be a position from 0 on or a name, got int -1"),
        ([], InvalidArgumentError, "at least one field"),
        ([0, None], InvalidArgumentError, "got NoneType None"),
        (Modulo, InvalidArgumentError, r"the class Modulo itself; pass an instance: Modulo\(...\)"),
        (Double(), InvalidArgumentError, r"Double, which is a MapFunction and belongs in map"),
        (OpenedModulo(), UnsupportedFeatureError, r"open\(\) in OpenedModulo"),
    ],
)
def test_wrong_keys(
    stream: DataStream, selector: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        stream.key_by(selector)


@pytest.mark.parametrize(
    "method",
    ["name", "get_name", "uid", "set_uid_hash", "set_parallelism", "set_max_parallelism",
     "force_non_parallel", "set_buffer_timeout", "start_new_chain", "disable_chaining",
     "slot_sharing_group", "set_description", "get_side_output"],
)  # fmt: skip
def test_a_keyed_stream_has_no_operator(stream: DataStream, method: str) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=f"KeyedStream.{method} is not .* no operator"
    ):
        getattr(stream.key_by(0), method)()


@pytest.mark.parametrize(
    "method", ["shuffle", "rebalance", "rescale", "forward", "broadcast", "global_"]
)
def test_a_keyed_stream_is_partitioned(stream: DataStream, method: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"KeyedStream.{method} .* by its key"):
        getattr(stream.key_by(0), method)()


def test_accumulate_types() -> None:
    names = [kind.name for kind in KeyedStream.AccumulateType]
    assert names == ["MIN", "MAX", "MIN_BY", "MAX_BY", "SUM"]
    assert all(hasattr(KeyedStream, name.lower()) for name in names)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_union_is_not_keyed(env: Env, stream: DataStream, swapped: bool) -> None:
    one, other = (env.source(), stream.key_by(0)) if swapped else (stream.key_by(0), env.source())
    one.union(other).map(str)
    (values,) = [node for node in env._graph.nodes if node.name == "Values"]
    assert isinstance(values.inputs[0].partitioning, ByKey)
    assert {edge.source for edge in env.last.inputs} == {values.id, 1}
    assert {edge.partitioning for edge in env.last.inputs} == {Forward()}


# Arguments


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.map(5), "map needs a callable or a MapFunction, got int 5"),
        (lambda s: s.map(Double), r"got the class Double itself; pass an instance: Double\(...\)"),
        (lambda s: s.map(Twice()), "Twice, which is a FlatMapFunction and belongs in flat_map"),
        (lambda s: s.flat_map(Double()), "belongs in map"),
        (lambda s: s.filter(None), "filter needs a callable or a FilterFunction"),
        (lambda s: s.process(str), "process needs a ProcessFunction, got type"),
        (lambda s: s.process(Handle), "the class Handle itself"),
        (lambda s: s.process(HandleKeyed()), r"belongs in key_by\(...\).process"),
        (lambda s: s.key_by(0).process(Double()), "a KeyedProcessFunction or a ProcessFunction"),
        (lambda s: s.key_by(0).reduce(Double()), "reduce needs a callable or a ReduceFunction"),
        (lambda s: s.key_by(0).sum(-1), "a field must be"),
        (lambda s: s.key_by(0).map_with_state(Double()), "map_with_state needs a callable"),
        (lambda s: s.partition_custom(Modulo(), 0), "belongs in key_by"),
        (lambda s: s.project(), "at least one field"),
        (lambda s: s.map(str, output_type="str"), "a type must be a TypeInformation"),
        (lambda s: s.add_sink(print), "add_sink needs a SinkFunction"),
        (lambda s: s.add_sink(PrintSink()), r"PrintSink, which is a Sink and belongs in sink_to"),
        (lambda s: s.sink_to(Ignore()), "belongs in add_sink"),
        (lambda s: s.print(5), "a sink identifier must be a string"),
        (lambda s: s.execute_and_collect(limit=0), "limit must be a positive int"),
        (lambda s: s.assign_timestamps_and_watermarks(None), "a WatermarkStrategy"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    env: Env, stream: DataStream, call: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        call(stream)
    assert len(env._graph.nodes) == 1


def test_a_cached_stream_is_the_stream(stream: DataStream) -> None:
    cached = stream.cache()
    cached.invalidate()
    assert cached._edges == stream._edges
    assert cached.get_type() == stream.get_type()


def test_a_stream_of_another_environment(stream: DataStream) -> None:
    stray = DataStream(stream._env, (replace(stream._edges[0]),))
    stray._edges = (Edge(99),)
    with pytest.raises(InvalidProgramError, match="another environment"):
        stray.map(str)


# Functions with state


class OneState:
    """A runtime context with a single value state."""

    def __init__(self) -> None:
        self.held: Any = None

    def get_state(self, descriptor: Any) -> OneState:
        return self

    def value(self) -> Any:
        return self.held

    def update(self, value: Any) -> None:
        self.held = value


def opened(env: Env) -> Any:
    function = env.last.operator.function
    function.open(OneState())
    return function


def test_map_with_state(env: Env, stream: DataStream) -> None:
    stream.key_by(0).map_with_state(lambda value, count: ((value, count), (count or 0) + 1))
    function = opened(env)
    assert [function.map(v) for v in "ab"] == [("a", None), ("b", 1)]


def test_flat_map_with_state(env: Env, stream: DataStream) -> None:
    stream.key_by(0).flat_map_with_state(lambda value, last: ([last] if last else None, value))
    function = opened(env)
    assert [function.flat_map(v) for v in "abc"] == [None, ["a"], ["b"]]


def test_filter_with_state(env: Env, stream: DataStream) -> None:
    stream.key_by(0).filter_with_state(lambda value, last: (value != last, value))
    function = opened(env)
    assert [v for v in "aabbba" if function.filter(v)] == ["a", "b", "a"]


def test_a_function_with_state_must_return_both(env: Env, stream: DataStream) -> None:
    stream.key_by(0).map_with_state(lambda value, state: value)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidArgumentError, match=r"map_with_state .*\(result, new state\), got"):
        opened(env).map("a")


# Sinks


@pytest.mark.parametrize(
    ("end", "name", "operator"),
    [
        (lambda s: s.print(), "Sink: Print", WriteSink),
        (lambda s: s.add_sink(Ignore()), "Sink: Unnamed", CallSink),
        (lambda s: s.sink_to(CollectSink()), "Sink: Writer", WriteSink),
        (lambda s: s.key_by(0).print("x"), "Sink: Print", WriteSink),
        (lambda s: s.key_by(0).add_sink(Ignore()), "Sink: Unnamed", CallSink),
    ],
)
def test_a_sink_becomes_a_node(
    env: Env, stream: DataStream, end: Callable[[Any], Any], name: str, operator: type
) -> None:
    assert type(end(stream)) is DataStreamSink
    assert (env.last.name, type(env.last.operator), env.last.is_sink) == (name, operator, True)


def test_execute_and_collect(env: Env, stream: DataStream) -> None:
    stream.execute_and_collect("job", limit=5)
    assert env.collected == [(1, "job", 5)]
    assert isinstance(env.last.operator.sink, CollectSink)
    assert not env.last.operator.durable


def test_a_keyed_stream_collects_keys_and_values(env: Env, stream: DataStream) -> None:
    stream.key_by(0).execute_and_collect()
    assert env.collected == [(2, None, None)]
    pair = env._graph.node(1).operator.function
    assert pickle.loads(pickle.dumps(pair))(("a", 5)) == Row(f0="a", f1=("a", 5))


def test_to_spark_is_left_to_the_environment(stream: DataStream) -> None:
    assert stream.to_spark("n int") == (stream, "n int")


def context(subtask: int, parallelism: int) -> InitContext:
    return InitContext("job", "sink", subtask, parallelism, 1, "token")


@pytest.mark.parametrize(
    ("identifier", "subtask", "parallelism", "line"),
    [
        (None, 0, 1, "(1, 'a')"),
        (None, 1, 2, "2> (1, 'a')"),
        ("in", 0, 1, "in> (1, 'a')"),
        ("in", 1, 2, "in:2> (1, 'a')"),
    ],
)
def test_printed_lines(identifier: str | None, subtask: int, parallelism: int, line: str) -> None:
    writer = PrintSink(identifier).create_writer(context(subtask, parallelism))
    writer.write((1, "a"), None)  # type: ignore[arg-type]
    assert writer.prepare_commit() == [[line]]
    assert writer.prepare_commit() == []


def test_lines_are_printed_by_epoch_and_subtask(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [(2, 0, ["d"]), (1, 1, ["c"]), (1, 0, ["a", "b"])]
    PrintSink().create_committer().commit(
        [Committable(epoch, subtask, "t", lines) for epoch, subtask, lines in parts]
    )
    assert capsys.readouterr().out == "a\nb\nc\nd\n"


def test_collected_values_are_those_of_the_moment() -> None:
    writer = CollectSink().create_writer(context(0, 1))
    growing: list[int] = []
    for number in range(3):
        growing.append(number)
        writer.write(growing, None)  # type: ignore[arg-type]
    assert writer.prepare_commit() == [[[0], [0, 1], [0, 1, 2]]]
    assert CollectSink().create_committer() is None


# The iterator over results


def test_the_iterator_closes_once_at_its_end() -> None:
    closed: list[str] = []
    results = CloseableIterator(iter([1, None, 3]), lambda: closed.append("x"))
    assert results.next() == 1
    assert list(results) == [None, 3]
    results.close()
    assert closed == ["x"]


def test_the_iterator_can_be_left_early() -> None:
    closed: list[str] = []
    with CloseableIterator(iter([1, 2]), lambda: closed.append("x")) as results:
        assert next(results) == 1
    assert closed == ["x"]
    assert list(results) == []


def test_a_failure_closes_the_iterator() -> None:
    closed: list[str] = []
    results = CloseableIterator((1 // n for n in (1, 0)), lambda: closed.append("x"))
    assert results.next() == 1
    with pytest.raises(ZeroDivisionError):
        results.next()
    assert closed == ["x"]


def test_there_is_no_java_behind_it() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(RefusedNameError, match=r"_j_stream_execution_environment .*env.configure"):
        env._j_stream_execution_environment.getConfig()
    stream = env.from_elements(1)
    with pytest.raises(RefusedNameError, match=r"DataStream._j_data_stream .*to_spark"):
        stream._j_data_stream.getType()
    assert not hasattr(stream, "_j_data_stream")
