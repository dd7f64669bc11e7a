"""Window join and co-group: how they are wired, and what happens to the records of a window."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from penstock.common import Configuration, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.data_stream import DataStream
from penstock.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    MapFunction,
)
from penstock.datastream.joined_streams import FIRST, SECOND
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    NeverTrigger,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidArgumentError
from penstock.graph.stream_graph import Node
from penstock.runtime.codec import constant
from penstock.runtime.operators.marked import Mark
from penstock.runtime.operators.windows import Windowing

WINDOWS = TumblingEventTimeWindows.of(10)


def first(record: Any) -> Any:
    return FIRST, record


def second(record: Any) -> Any:
    return SECOND, record


def environment() -> StreamExecutionEnvironment:
    local = Configuration().set_string("penstock.executor", "local")
    return StreamExecutionEnvironment.get_execution_environment(local)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return environment()


@pytest.fixture
def orders(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([("o1", 5)], Types.TUPLE([Types.STRING(), Types.INT()]))


@pytest.fixture
def payments(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([{"order": "o1"}])


def node_of(result: DataStream) -> Node:
    return result._env._graph.node(result._edges[0].source)


def description(result: DataStream) -> Windowing:
    operator = node_of(result).operator
    assert isinstance(operator, Windowing)
    return operator


def outputs(result: DataStream, *marked: Any) -> list[Any]:
    """What the window function gives for a window with these records."""
    function = cloudpickle.loads(cloudpickle.dumps(description(result).function))
    context: Any = None  # nothing here asks it
    function.open(context)
    return list(function.apply("key", None, marked))


class Pairs(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first, second


class Equal(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        if first == second:
            yield first


class EqualOrNone(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return [first] if first == second else None


class Sizes(CoGroupFunction):
    def __init__(self) -> None:
        self.opened = self.closed = False

    def open(self, runtime_context: Any) -> None:
        self.opened = True

    def close(self) -> None:
        self.closed = True

    def co_group(self, first: Any, second: Any) -> Any:
        return [(len(first), len(second))]


class Silent(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> None: ...


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


def test_both_streams_meet_under_one_key(orders: DataStream, payments: DataStream) -> None:
    result = (
        orders.join(payments).where(0, Types.STRING()).equal_to("order").window(WINDOWS)
    ).apply(Pairs(), Types.STRING())
    node = node_of(result)
    assert node.name == "Window(TumblingEventTimeWindows(10), EventTimeTrigger, Pairs)"
    assert result.get_type() == Types.STRING()
    names = [result._env._graph.node(edge.source).name for edge in node.inputs]
    assert names == ["First Input", "Second Input"]
    for edge in node.inputs:
        partitioning: Any = pickle.loads(pickle.dumps(edge.partitioning))
        assert partitioning.select(first(("o1", 5))) == "o1"
        assert partitioning.select(second({"order": "o1"})) == "o1"
        assert partitioning.key_type == Types.STRING()


def test_records_are_marked_where_they_are(orders: DataStream, payments: DataStream) -> None:
    mapped = orders.map(str).set_parallelism(3)
    result = mapped.join(payments).where(0).equal_to(0).window(WINDOWS).apply(Pairs())
    orders_too, payments_too = [
        result._env._graph.node(edge.source) for edge in node_of(result).inputs
    ]
    assert (orders_too.parallelism, payments_too.parallelism) == (3, 1)
    assert (orders_too.operator, payments_too.operator) == (Mark(FIRST), Mark(SECOND))
    assert orders_too.helper
    assert payments_too.helper


def test_earlier_keys_play_no_part(orders: DataStream, payments: DataStream) -> None:
    keyed = orders.key_by(1).join(payments.key_by("order"))
    result = keyed.where(0).equal_to("order").window(WINDOWS).apply(Pairs())
    marking = [result._env._graph.node(edge.source) for edge in node_of(result).inputs]
    assert [node.inputs[0] for node in marking] == [orders._edges[0], payments._edges[0]]


def test_join_gives_all_pairs(orders: DataStream, payments: DataStream) -> None:
    windows = orders.join(payments).where(0).equal_to("order").window(WINDOWS)
    marked = (first(1), second("a"), second("b"), first(2))
    pairs = [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert outputs(windows.apply(Pairs()), *marked) == pairs
    assert outputs(windows.apply(lambda first, second: (first, second)), *marked) == pairs
    assert outputs(windows.apply(Pairs()), first(1), first(2)) == []
    assert outputs(windows.apply(Pairs()), second(1)) == []


@pytest.mark.parametrize("function", [Equal(), EqualOrNone()])
def test_flat_join_gives_what_it_likes(
    orders: DataStream, payments: DataStream, function: Any
) -> None:
    windows = orders.join(payments).where(0).equal_to("order").window(WINDOWS)
    marked = (first(1), second(1), second(2), first(2), first(3))
    assert outputs(windows.apply(function), *marked) == [1, 2]


def test_co_group_sees_all_at_once(orders: DataStream, payments: DataStream) -> None:
    windows = orders.co_group(payments).where(0).equal_to("order").window(WINDOWS)
    assert outputs(windows.apply(Sizes()), first(1), second(1), first(1)) == [(2, 1)]
    assert outputs(windows.apply(Sizes()), second(1)) == [(0, 1)]
    assert outputs(windows.apply(lambda a, b: [*a, *b]), second(1), first(2)) == [2, 1]
    assert outputs(windows.apply(Silent()), second(1)) == []


def test_functions_are_opened_and_closed(orders: DataStream, payments: DataStream) -> None:
    windows = orders.co_group(payments).where(0).equal_to("order").window(WINDOWS)
    sizes = Sizes()
    function = description(windows.apply(sizes)).function
    function.open(None)
    assert sizes.opened
    assert not sizes.closed
    function.close()
    assert sizes.closed
    plain = description(windows.apply(lambda a, b: [])).function
    plain.open(None)
    plain.close()


def test_settings_of_the_windows(orders: DataStream, payments: DataStream) -> None:
    trigger, evictor = CountTrigger.of(3), CountEvictor.of(2)
    windows = orders.join(payments).where(0).equal_to("order").window(WINDOWS)
    found = description(
        windows.trigger(trigger).evictor(evictor).allowed_lateness(5).apply(Pairs())
    )
    assert found.trigger is trigger
    assert found.evictor is evictor
    assert found.allowed_lateness == 5


def test_a_stream_may_be_joined_with_itself(orders: DataStream) -> None:
    result = orders.join(orders).where(0).equal_to(0).window(WINDOWS).apply(lambda a, b: a)
    assert result.get_name().endswith("EventTimeTrigger, Join)")
    assert len(node_of(result).inputs) == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.join([1]), "what join takes must be a DataStream"),
        (lambda s: s.co_group(None), "what co_group takes must be a DataStream"),
        (lambda s: s.join(environment().from_collection([1])), "join needs streams of one env"),
        (lambda s: s.join(s).where(None), "where needs a callable"),
        (lambda s: s.join(s).where(0).equal_to(Double()), "belongs in map"),
        (
            lambda s: s.join(s).where(0, Types.INT()).equal_to(0, Types.STRING()),
            "both keys of a join must be of one type",
        ),
        (lambda s: s.join(s).where(0).equal_to(0).window(10), "window needs a WindowAssigner"),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    orders: DataStream, call: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        call(orders)
    assert len(orders._env._graph.nodes) == 1


@pytest.mark.parametrize(
    ("kind", "function", "sentence"),
    [
        ("join", Sizes(), r"belongs in co_group"),
        ("join", Double(), "belongs in map"),
        ("join", Pairs, "pass an instance: Pairs"),
        ("join", 5, "apply after join needs a callable or a JoinFunction or a FlatJoinFunction"),
        ("co_group", Pairs(), r"belongs in join"),
        ("co_group", None, "apply after co_group needs a callable or a CoGroupFunction"),
    ],
)
def test_wrong_functions_are_refused(
    orders: DataStream, kind: str, function: Any, sentence: str
) -> None:
    pair = getattr(orders, kind)(orders).where(0).equal_to(0).window(WINDOWS)
    with pytest.raises(InvalidArgumentError, match=sentence):
        pair.apply(function)


def test_sessions_need_triggers_that_merge(orders: DataStream) -> None:
    sessions = EventTimeSessionWindows.with_gap(5)
    pair = orders.join(orders).where(0).equal_to(0).window(sessions)
    with pytest.raises(InvalidArgumentError, match="can_merge"):
        pair.trigger(NeverTrigger())


def test_a_mark_can_change_only_if_its_record_can() -> None:
    """Else every record of a join would be pickled by itself on its way."""
    assert constant([first((1, "a")), second(None)])
    assert not constant([first([1])])
