"""Windows in the fluent API: the description that each call makes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from penstock.common import Configuration, Types
from penstock.common.time import Duration, Time
from penstock.datastream import (
    AllWindowedStream,
    OutputTag,
    StreamExecutionEnvironment,
    WindowedStream,
    data_stream,
)
from penstock.datastream.data_stream import DataStream
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.graph.partitioning import ByKey
from penstock.graph.stream_graph import Node
from penstock.runtime.operators.windows import Windowing

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
MINUTE = TumblingEventTimeWindows.of(Time.minutes(1))
SESSIONS = EventTimeSessionWindows.with_gap(5)


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in {"penstock.executor": "local", **settings}.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def stream() -> DataStream:
    return environment().from_collection([("a", 1), ("b", 2)], PAIR)


@pytest.fixture
def windowed(stream: DataStream) -> WindowedStream:
    return stream.key_by(0).window(MINUTE)


@pytest.fixture
def all_windowed(stream: DataStream) -> AllWindowedStream:
    return stream.window_all(MINUTE)


def node_of(result: DataStream) -> Node:
    return result._env._graph.node(result._edges[0].source)


def description(result: DataStream) -> Windowing:
    operator = node_of(result).operator
    assert isinstance(operator, Windowing)
    return operator


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Sorted(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield sorted(inputs)


class Processed(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key


class SortedAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield sorted(inputs)


class ProcessedAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        yield 1


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


# What each call describes


def test_names_are_where_pyflink_has_them(stream: DataStream) -> None:
    assert data_stream.WindowedStream is WindowedStream
    assert data_stream.AllWindowedStream is AllWindowedStream
    windowed = stream.key_by(0).window(MINUTE)
    assert type(windowed) is WindowedStream
    assert windowed.get_execution_environment() is stream.get_execution_environment()
    assert windowed.get_input_type() == PAIR
    assert type(stream.window_all(MINUTE)) is AllWindowedStream


def test_what_is_not_set(windowed: WindowedStream) -> None:
    found = description(windowed.process(Processed()))
    assert (found.assigner, found.evictor, found.allowed_lateness, found.late_tag) == (
        MINUTE, None, 0, None,
    )  # fmt: skip
    assert type(found.trigger) is EventTimeTrigger
    assert not found.all_windows


def test_what_is_set(windowed: WindowedStream) -> None:
    trigger, evictor, tag = CountTrigger.of(3), CountEvictor.of(2), OutputTag("late")
    result = (
        windowed.trigger(trigger)
        .evictor(evictor)
        .allowed_lateness(Time.seconds(2))
        .side_output_late_data(tag)
        .apply(Sorted())
    )
    found = description(result)
    assert found.trigger is trigger
    assert found.evictor is evictor
    assert (found.allowed_lateness, found.late_tag) == (2_000, tag)
    assert result.get_side_output(tag)._edges[0].tag == "late"


def test_settings_need_no_chain_of_calls(windowed: WindowedStream) -> None:
    windowed.allowed_lateness(7)
    assert description(windowed.sum(1)).allowed_lateness == 7


@pytest.mark.parametrize("lateness", [1_500, Time(1_500), Duration.of_millis(1_500)])
def test_lateness_is_any_span(windowed: WindowedStream, lateness: Any) -> None:
    assert description(windowed.allowed_lateness(lateness).sum(1)).allowed_lateness == 1_500


def test_reduce_keeps_one_value(windowed: WindowedStream) -> None:
    add = Add()
    result = windowed.reduce(add)
    found = description(result)
    assert (found.combine, found.function, found.element_type) == (add, None, PAIR)
    assert result.get_type() == PAIR
    assert node_of(windowed.reduce(add, output_type=Types.STRING())).output_type == Types.STRING()


def test_reduce_by_a_callable_with_a_window_function(windowed: WindowedStream) -> None:
    result = windowed.reduce(min, Sorted(), Types.INT())
    found = description(result)
    assert found.combine is min
    assert isinstance(found.function, Sorted)
    assert (found.element_type, result.get_type()) == (PAIR, Types.INT())
    assert node_of(windowed.reduce(min, Processed())).output_type is None


def test_aggregate_keeps_an_accumulator(windowed: WindowedStream) -> None:
    count = Count()
    result = windowed.aggregate(count, accumulator_type=Types.INT(), output_type=Types.LONG())
    found = description(result)
    assert (found.combine, found.function, found.element_type) == (count, None, Types.INT())
    assert result.get_type() == Types.LONG()
    plain = windowed.aggregate(count, Processed())
    assert description(plain).element_type is None
    assert node_of(plain).output_type is None


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        (lambda w: w.apply(Sorted()), PAIR),
        (lambda w: w.process(Processed()), PAIR),
        (lambda w: w.evictor(CountEvictor.of(1)).reduce(Add()), PAIR),
        (lambda w: w.evictor(CountEvictor.of(1)).aggregate(Count(), None, Types.INT()), PAIR),
    ],
)
def test_elements_are_kept_where_all_are_needed(
    windowed: WindowedStream, call: Callable[[Any], DataStream], kept: Any
) -> None:
    assert description(call(windowed)).element_type == kept


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", ("a", 1, 9)),
        ("min", ("a", 1, 4)),
        ("max", ("a", 1, 5)),
        ("min_by", ("b", 2, 4)),
        ("max_by", ("a", 1, 5)),
    ],
)
def test_aggregates_of_a_field(windowed: WindowedStream, method: str, expected: Any) -> None:
    result = getattr(windowed, method)(2)
    combine = cloudpickle.loads(cloudpickle.dumps(description(result))).combine
    assert combine(("a", 1, 5), ("b", 2, 4)) == expected
    assert result.get_type() == PAIR


def test_a_callable_as_window_function(
    windowed: WindowedStream, all_windowed: AllWindowedStream
) -> None:
    window = TimeWindow(0, 5)
    keyed = windowed.apply(lambda key, window, elements: [key, window.end, *elements])
    function = cloudpickle.loads(cloudpickle.dumps(description(keyed).function))
    assert isinstance(function, WindowFunction)
    assert list(function.apply("k", window, [1, 2])) == ["k", 5, 1, 2]
    everything = all_windowed.reduce(max, lambda window, elements: [window.start, *elements])
    function = description(everything).function
    assert isinstance(function, AllWindowFunction)
    assert list(function.apply(window, [7])) == [0, 7]


@pytest.mark.parametrize(
    "call",
    [
        lambda w: w.apply(SortedAll()),
        lambda w: w.process(ProcessedAll()),
        lambda w: w.reduce(Add(), SortedAll()),
        lambda w: w.aggregate(Count(), ProcessedAll()),
        lambda w: w.sum(1),
    ],
)
def test_windows_over_everything_run_in_one_subtask(
    stream: DataStream, all_windowed: AllWindowedStream, call: Callable[[Any], DataStream]
) -> None:
    result = call(all_windowed)
    node = node_of(result)
    assert description(result).all_windows
    assert node.fixed_parallelism == 1
    (edge,) = node.inputs
    assert isinstance(edge.partitioning, ByKey)
    assert edge.source == stream._edges[0].source
    assert len({edge.partitioning.select(value) for value in (1, "a", None)}) == 1
    result.set_parallelism(1)
    with pytest.raises(InvalidArgumentError, match=r"test_windowed_stream.py:\d+\) runs with par"):
        result.set_parallelism(2)


def test_keys_play_no_part_in_windows_over_everything(stream: DataStream) -> None:
    (edge,) = node_of(stream.key_by(0).window_all(MINUTE).sum(1)).inputs
    assert edge.partitioning.select(("a", 1)) == edge.partitioning.select(("b", 1))  # type: ignore[attr-defined]


# Count windows


def test_count_windows_are_pyflinks(stream: DataStream) -> None:
    for result, cls in [
        (stream.key_by(0).count_window(3).sum(1), WindowedStream),
        (stream.count_window_all(3).sum(1), AllWindowedStream),
    ]:
        found = description(result)
        assert isinstance(found.assigner, CountTumblingWindowAssigner)
        assert found.assigner.size == 3
        assert found.all_windows is (cls is AllWindowedStream)
    found = description(stream.count_window_all(3, 2).sum(1))
    assert isinstance(found.assigner, CountSlidingWindowAssigner)
    assert (found.assigner.size, found.assigner.slide) == (3, 2)


def test_count_windows_may_be_javas() -> None:
    env = environment(**{"penstock.count-window.semantics": "java"})
    stream = env.from_collection([("a", 1)], PAIR)
    tumbling = description(stream.key_by(0).count_window(3).sum(1))
    assert isinstance(tumbling.assigner, GlobalWindows)
    assert repr(tumbling.trigger) == "PurgingTrigger(CountTrigger(3))"
    assert tumbling.evictor is None
    sliding = description(stream.count_window_all(3, 2).sum(1))
    assert repr(sliding.trigger) == "CountTrigger(2)"
    assert repr(sliding.evictor) == "CountEvictor(3)"


@pytest.mark.parametrize("semantics", ["pyflink", "java"])
@pytest.mark.parametrize("shape", [(0,), (-1,), (3, -1), (2.5,), (3, "2"), (True,)])
def test_count_windows_need_counts(semantics: str, shape: tuple[Any, ...]) -> None:
    env = environment(**{"penstock.count-window.semantics": semantics})
    stream = env.from_collection([1])
    with pytest.raises(InvalidArgumentError, match="whole number of elements, at least 1"):
        stream.count_window_all(*shape)
    with pytest.raises(InvalidArgumentError, match="whole number of elements, at least 1"):
        stream.key_by(0).count_window(*shape)


# Names in plans


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda s: s.key_by(0).window(MINUTE).sum(1),
         "Window(TumblingEventTimeWindows(60000), EventTimeTrigger, Sum)"),
        (lambda s: s.key_by(0).window(MINUTE).reduce(Add(), Processed()),
         "Window(TumblingEventTimeWindows(60000), EventTimeTrigger, Add, Processed)"),
        (lambda s: s.key_by(0).window(MINUTE).reduce(lambda a, b: a, lambda k, w, e: e),
         "Window(TumblingEventTimeWindows(60000), EventTimeTrigger, Reduce, Apply)"),
        (lambda s: s.window_all(SlidingProcessingTimeWindows.of(9, 3)).aggregate(Count()),
         "Window(SlidingProcessingTimeWindows(9, 3), ProcessingTimeTrigger, Count)"),
        (lambda s: s.count_window_all(3).apply(SortedAll()),
         "Window(CountTumblingWindowAssigner(3), PurgingTrigger(CountTrigger(3)), SortedAll)"),
        (lambda s: s.window_all(GlobalWindows.create()).evictor(CountEvictor.of(2)).min_by(1),
         "Window(GlobalWindows, NeverTrigger, CountEvictor(2), Min By)"),
    ],
)  # fmt: skip
def test_names(stream: DataStream, call: Callable[[Any], DataStream], name: str) -> None:
    result = call(stream)
    assert result.get_name() == name
    result.print()
    assert name in stream.get_execution_environment().explain()


# What is refused


class Forgetful(EventTimeTrigger[Any]):
    """Says it can merge, and is no help in it."""

    on_merge = Trigger.on_merge


class Careless(Trigger[Any, Any]):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def clear(self, window: Any, ctx: Any) -> None: ...


class CarelessSessions(EventTimeSessionWindows[Any]):
    def get_default_trigger(self, env: Any) -> Any:
        return Careless()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.key_by(0).window(None), "window needs a WindowAssigner, got NoneType"),
        (lambda s: s.window_all(TumblingEventTimeWindows), "the class .* itself; pass an instance"),
        (lambda s: s.window_all(EventTimeTrigger()), r"belongs in window\(\.\.\.\)\.trigger"),
        (lambda s: s.window_all(MINUTE).trigger(CountTrigger), "pass an instance: CountTrigger"),
        (lambda s: s.window_all(MINUTE).trigger(CountEvictor.of(3)), "belongs in .*evictor"),
        (lambda s: s.window_all(MINUTE).evictor(3), "evictor needs an Evictor"),
        (lambda s: s.window_all(MINUTE).allowed_lateness(-1), "allowed lateness.*got int -1"),
        (lambda s: s.window_all(MINUTE).allowed_lateness("1 s"), "allowed lateness"),
        (lambda s: s.window_all(MINUTE).side_output_late_data("late"), "an OutputTag"),
        (lambda s: s.window_all(SESSIONS).trigger(NeverTrigger()), r"NeverTrigger\(\) cannot"),
        (lambda s: s.window_all(SESSIONS).trigger(DeltaTrigger.of(1, max)), "can_merge"),
        (lambda s: s.window_all(SESSIONS).trigger(PurgingTrigger.of(Careless())), "can_merge"),
        (lambda s: s.window_all(SESSIONS).trigger(Forgetful()), "has no on_merge"),
        (lambda s: s.window_all(CarelessSessions(5)).sum(1), r"Careless\(\) cannot follow"),
        (lambda s: s.window_all(MINUTE).apply(Sorted()),
         r"belongs in key_by\(\.\.\.\)\.window\(\.\.\.\)\.apply"),
        (lambda s: s.key_by(0).window(MINUTE).apply(SortedAll()), r"belongs in window_all"),
        (lambda s: s.key_by(0).window(MINUTE).apply(Processed()), r"belongs in .*process\("),
        (lambda s: s.key_by(0).window(MINUTE).process(Sorted()), r"belongs in .*apply\("),
        (lambda s: s.key_by(0).window(MINUTE).process(lambda k, c, e: e), "ProcessWindowFunction"),
        (lambda s: s.key_by(0).window(MINUTE).reduce(Count()), r"belongs in .*aggregate\("),
        (lambda s: s.key_by(0).window(MINUTE).reduce(Add), "pass an instance: Add"),
        (lambda s: s.key_by(0).window(MINUTE).reduce(Add(), Add()),
         "the window function of reduce needs a callable or a WindowFunction or a Process"),
        (lambda s: s.key_by(0).window(MINUTE).aggregate(Add()), "belongs in .*reduce"),
        (lambda s: s.key_by(0).window(MINUTE).aggregate(lambda a, b: a), "an AggregateFunction"),
        (lambda s: s.key_by(0).window(MINUTE).aggregate(Count(), Double()), "belongs in map"),
        (lambda s: s.key_by(0).window(MINUTE).aggregate(Count(), 5), "window function of aggreg"),
        (lambda s: s.key_by(0).window(MINUTE).sum(-1), "a position from 0 on or a name"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_at_once(
    stream: DataStream, call: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        call(stream)
    assert len(stream.get_execution_environment()._graph.nodes) == 1


def test_triggers_that_can_merge_may_fire_sessions(stream: DataStream) -> None:
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    assert description(stream.window_all(SESSIONS).trigger(trigger).sum(1)).trigger is trigger
    careless = Careless()
    assert description(stream.window_all(MINUTE).trigger(careless).sum(1)).trigger is careless


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.window(None), r"DataStream.window .* key_by\(...\) first, or window_all"),
        (lambda s: s.in_event_time_order(), "key_by"),
        (lambda s: s.key_by(0).aggregate(None), r"window\(...\) first"),
        (
            lambda s: s.key_by(0).window(MINUTE).print(),
            "WindowedStream.print .* reduce",
        ),
        (
            lambda s: s.key_by(0).window(MINUTE).sum(1).trigger(None),
            "between window",
        ),
        (lambda s: s.join(s).where(0).window(MINUTE), "equal_to"),
        (lambda s: s.join(s).where(0).equal_to(0).apply(None), r"window\(...\) first"),
    ],
)
def test_a_call_out_of_turn_says_what_comes_first(call: Any, sentence: str) -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([("a", 1)])
    with pytest.raises(UnsupportedFeatureError, match=sentence):
        call(stream)
