"""Connected, broadcast and joined streams: what they add to the graph, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.common import Duration, Time, Types
from penstock.datastream import (
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    BroadcastStream,
    CoFlatMapFunction,
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    ProcessJoinFunction,
)
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.data_stream import DataStream
from penstock.datastream.interval_join import IntervalJoin
from penstock.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.graph.location import user_location
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.plan.explain import explain_json, explain_mermaid, explain_text
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import JobSettings, PhysicalPlan

SETTINGS = JobSettings("id", "demo", "run", "/root", "/local", "hashmap", 1000, 1000, 10.0, False)
RULES = MapStateDescriptor("rules")


class Env:
    """As much of an environment as streams need."""

    def __init__(self) -> None:
        self._graph = StreamGraph()

    def stream(self, name: str = "Source") -> DataStream:
        node = self._graph.add(
            name, PythonSource(CollectionSource([1])), (), location=user_location()
        )
        return DataStream(self, (Edge(node.id),))  # type: ignore[arg-type]

    def plan(self) -> PhysicalPlan:
        return translate(self._graph.nodes, PlanDefaults(2), SETTINGS)


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any: ...

    def map2(self, value: Any) -> Any: ...


class Several(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any: ...

    def flat_map2(self, value: Any) -> Any: ...


class Unkeyed(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any: ...

    def process_element2(self, value: Any, ctx: Any) -> Any: ...


class Keyed(KeyedCoProcessFunction):
    process_element1 = Unkeyed.process_element1
    process_element2 = Unkeyed.process_element2


class Rules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any: ...

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any: ...


class KeyedRules(KeyedBroadcastProcessFunction):
    process_element = Rules.process_element
    process_broadcast_element = Rules.process_broadcast_element


class Double(MapFunction):
    def map(self, value: Any) -> Any: ...


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any: ...


def joined(stream: DataStream) -> IntervalJoin:
    return stream.key_by(0).interval_join(stream.key_by(1))


@pytest.fixture
def env() -> Env:
    return Env()


def test_classes(env: Env) -> None:
    stream = env.stream()
    assert isinstance(stream.connect(stream), ConnectedStreams)
    rules = stream.broadcast(RULES, MapStateDescriptor("more"))
    assert isinstance(rules, BroadcastStream)
    assert isinstance(stream.connect(rules), BroadcastConnectedStream)
    assert isinstance(stream.key_by(0).connect(rules), BroadcastConnectedStream)
    assert isinstance(stream.broadcast(), DataStream)


def test_settings_of_the_operator(env: Env) -> None:
    stream = env.stream().connect(env.stream()).map(Both(), Types.STRING())

    stream.name("both").uid("co").set_parallelism(3).set_max_parallelism(7)

    node = env._graph.nodes[-1]
    assert (node.name, node.uid, node.parallelism, node.max_parallelism) == ("both", "co", 3, 7)
    assert node.output_type == stream.get_type() == Types.STRING()
    assert [edge.input_index for edge in node.inputs] == [0, 1]
    assert str(node.location).startswith(__file__)


def test_they_head_a_chain(env: Env) -> None:
    """With inputs of equal parallelism too, and with operators chained behind them."""
    first, second = env.stream(), env.stream()
    first.connect(second).map(Both()).map(str).print()

    chains = [[o.name for o in vertex.operators] for vertex in env.plan().vertices]

    assert chains == [["Source"], ["Source"], ["Co-Map", "Map", "Sink: Print"]]


def test_uids_tell_the_inputs_apart(env: Env) -> None:
    """A union as the first input, or as the second."""
    a, b, c = env.stream("a"), env.stream("b"), env.stream("c")
    a.union(b).connect(c).map(Both())
    one = env.plan().vertices[-1].uid
    other = Env()
    a, b, c = other.stream("a"), other.stream("b"), other.stream("c")
    a.connect(b.union(c)).map(Both())
    assert other.plan().vertices[-1].uid != one


@pytest.fixture
def explained() -> PhysicalPlan:
    """Data and its unions on one side, rules on the other."""
    env = Env()
    rules = env.stream("Rules")
    data = env.stream("Data").union(env.stream("More"))
    data.key_by(0).connect(rules.broadcast(RULES)).process(KeyedRules()).uid("rules").print()
    return env.plan()


def test_text_shows_both_inputs(explained: PhysicalPlan) -> None:
    lines = [line.strip() for line in explain_text(explained).splitlines() if "<-" in line]
    assert lines == [
        "<- input 1: HASH from [1] Data",
        "<- input 1: HASH from [2] More",
        "<- input 2: BROADCAST from [0] Rules",
    ]


def test_json_and_mermaid_show_both_inputs(explained: PhysicalPlan) -> None:
    nodes = json.loads(explain_json(explained))["nodes"]
    before = nodes[3]["predecessors"]
    assert sorted((p["id"], p["ship_strategy"], p["side"]) for p in before) == [
        (0, "BROADCAST", "second"),
        (1, "HASH", "first"),
        (2, "HASH", "first"),
    ]
    assert nodes[3]["keyed"]
    assert 'n0 -->|"input 2: BROADCAST"| n3' in explain_mermaid(explained)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.connect(5), "what connect takes must be a DataStream or a BroadcastStream"),
        (lambda s: s.connect(Env().stream()), "connect needs streams of one environment"),
        (
            lambda s: s.connect(Env().stream().broadcast(RULES)),
            "connect needs streams of one environment",
        ),
        (
            lambda s: s.key_by(0, Types.INT()).connect(s.key_by(1, Types.STRING())),
            "connect needs keys of one type, got Integer and String",
        ),
        (
            lambda s: s.connect(s).map(lambda v: v),
            r"connect\(...\).map needs a CoMapFunction, got function",
        ),
        (lambda s: s.connect(s).map(Both), "the class Both itself; pass an instance"),
        (lambda s: s.connect(s).map(Double()), r"MapFunction and belongs in map\("),
        (lambda s: s.connect(s).map(Several()), r"belongs in connect\(...\).flat_map\("),
        (lambda s: s.connect(s).flat_map(Both()), r"belongs in connect\(...\).map\("),
        (lambda s: s.connect(s).process(Both()), r"belongs in connect\(...\).map\("),
        (lambda s: s.map(Both()), r"belongs in connect\(...\).map\("),
        (lambda s: s.process(Unkeyed()), r"belongs in connect\(...\).process\("),
        (lambda s: s.key_by(0).process(Keyed()), r"belongs in connect\(...\).key_by\(...\).proc"),
        (lambda s: s.connect(s).process(Keyed()), "Keyed is a KeyedCoProcessFunction and needs"),
        (lambda s: s.key_by(0).connect(s).process(Keyed()), "needs two keyed streams; call key_by"),
        (lambda s: s.connect(s.key_by(0)).process(Keyed()), "needs two keyed streams; call key_by"),
        (lambda s: s.connect(s).process(Rules()), r"belongs in connect\(other.broadcast"),
        (
            lambda s: s.connect(s.broadcast(RULES)).process(KeyedRules()),
            r"an unkeyed .* belongs in key_by\(...\).connect\(other.broadcast\(...\)\).process",
        ),
        (
            lambda s: s.key_by(0).connect(s.broadcast(RULES)).process(Rules()),
            r"a keyed .* needs a KeyedBroadcast.*belongs in connect\(other.broadcast\(...\)\).proc",
        ),
        (lambda s: s.connect(s.broadcast(RULES)).process(Unkeyed()), r"belongs in connect\(...\)"),
        (lambda s: s.broadcast("rules"), "descriptor must be a MapStateDescriptor, got str"),
        (lambda s: s.broadcast(ValueStateDescriptor("v")), "must be a MapStateDescriptor"),
        (lambda s: s.broadcast(None, RULES), "must be a MapStateDescriptor, got NoneType"),
        (lambda s: s.broadcast(RULES, RULES), "two states of the name 'rules'"),
        (lambda s: s.key_by(0).interval_join(s), r"a KeyedStream \(call key_by on it\), got Data"),
        (
            lambda s: s.key_by(0).interval_join(Env().stream().key_by(0)),
            "interval_join needs streams of one environment",
        ),
        (
            lambda s: s.key_by(0, Types.INT()).interval_join(s.key_by(1, Types.STRING())),
            "interval_join needs keys of one type, got Integer and String",
        ),
        (lambda s: joined(s).between(2, 1), "must not be above the upper one, got 2 ms and 1 ms"),
        (lambda s: joined(s).between("-1 s", 1), "the lower bound of an interval join must be"),
        (lambda s: joined(s).between(0, None), "the upper bound of an interval join must be"),
        (
            lambda s: joined(s).between(3, 3).upper_bound_exclusive().process(Pairs()),
            "no pair is between 3 ms and 3 ms without",
        ),
        (
            lambda s: joined(s).between(3, 4).side_output_left_late_data("late"),
            "the side output for late records must be an OutputTag",
        ),
        (
            lambda s: joined(s).between(0, 1).process(Unkeyed()),
            r"needs a ProcessJoinFunction, got Unkeyed, which is a CoProcessFunction and belongs",
        ),
        (lambda s: s.process(Pairs()), r"belongs in key_by\(...\).interval_join\(other\).between"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    env: Env, call: Callable[[Any], Any], sentence: str
) -> None:
    stream = env.stream()
    with pytest.raises(InvalidArgumentError, match=sentence):
        call(stream)
    assert len(env._graph.nodes) == 1


def test_broadcast_state_has_no_time_to_live(env: Env) -> None:
    descriptor = MapStateDescriptor("rules")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(UnsupportedFeatureError, match="time to live of broadcast state 'rules'"):
        env.stream().broadcast(descriptor)


def test_an_unkeyed_stream_is_not_joined(env: Env) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"interval_join .* call key_by\(\.\.\.\) on"):
        env.stream().interval_join(env.stream().key_by(0))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (Time.seconds(-2), Time.milliseconds(1500)),
        (Duration.of_seconds(-2), Duration.of_millis(1500)),
        (timedelta(seconds=-2), timedelta(seconds=1.5)),
        (-2000, 1500),
    ],
)
def test_bounds_of_a_join(env: Env, lower: Any, upper: Any) -> None:
    """Any span will do; each method leaves what it was called on as it was."""
    bounded = joined(env.stream()).between(lower, upper)
    narrower = bounded.lower_bound_exclusive().upper_bound_exclusive()

    bounded.process(Pairs())
    narrower.process(Pairs(), Types.STRING())

    operators = [node.operator for node in env._graph.nodes[1:]]
    assert [(o.lower, o.upper) for o in operators] == [(-2000, 1500), (-1999, 1499)]
    assert env._graph.nodes[-1].output_type == Types.STRING()


def test_a_keyed_stream_is_not_broadcast(env: Env) -> None:
    with pytest.raises(UnsupportedFeatureError, match="already partitioned, by its key"):
        env.stream().key_by(0).broadcast(RULES)
