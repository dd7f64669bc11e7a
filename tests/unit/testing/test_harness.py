"""The harness: what goes in, what comes out, what a snapshot keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from penstock.common.time import Time
from penstock.common.typeinfo import Types
from penstock.datastream import OutputTag, TimeDomain
from penstock.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    InvalidKeyError,
    StateError,
    TypeMismatchError,
    UnpicklableError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from penstock.testing import KeyedOperatorHarness, ManualClock, OperatorHarness

LATE = OutputTag("late", Types.STRING())
COUNT = ValueStateDescriptor("count", Types.LONG())


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


class Words(FlatMapFunction):
    def flat_map(self, value: str) -> list[str]:
        return value.split()


class Long(FilterFunction):
    def filter(self, value: str) -> bool:
        return len(value) > 2


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return (value1[0], value1[1] + value2[1])


class Inspect(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value < 0:
            yield LATE, str(value)
            ctx.output(LATE, "again")
        else:
            timers = ctx.timer_service()
            yield ctx.timestamp(), timers.current_processing_time(), timers.current_watermark()


class CountPerKey(KeyedProcessFunction):
    def __init__(self) -> None:
        self.seen = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen += 1
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count, self.seen


def test_a_map() -> None:
    with OperatorHarness(Double()) as harness:
        assert harness.process(2) == [4]
        assert harness.process("ab") == ["abab"]
        assert harness.outputs() == [4, "abab"]
        harness.clear_outputs()
        assert harness.outputs() == []


def test_a_flat_map_and_a_filter() -> None:
    assert OperatorHarness(Words()).process("to be") == ["to", "be"]
    assert OperatorHarness(Long()).process_all(["to", "not", "be", "that"]) == ["not", "that"]


def test_a_reduce_has_a_value_for_each_key() -> None:
    harness = KeyedOperatorHarness(Add(), key_selector=0)
    assert harness.process(("a", 1)) == [("a", 1)]
    assert harness.process(("b", 5)) == [("b", 5)]
    assert harness.process(("a", 2)) == [("a", 3)]


def test_side_outputs_clocks_and_timestamps() -> None:
    harness = OperatorHarness(Inspect(), clock=ManualClock(1000))
    assert harness.process(-1) == []
    assert harness.side_outputs(LATE) == ["-1", "again"]
    assert harness.side_outputs(OutputTag("other")) == []
    assert harness.process(1, timestamp=7) == [(7, 1000, -(1 << 63))]
    harness.advance_processing_time(by=timedelta(seconds=2))
    harness.advance_watermark(500)
    assert harness.process(1) == [(-(1 << 63), 3000, 500)]
    assert harness.advance_processing_time(5000) == []


def test_time_never_goes_back() -> None:
    harness = OperatorHarness(Double(), clock=ManualClock(10))
    harness.advance_watermark(10)
    with pytest.raises(InvalidArgumentError, match="at least 10"):
        harness.advance_processing_time(to=9)
    with pytest.raises(InvalidArgumentError, match="at least 10"):
        harness.advance_watermark(9)
    with pytest.raises(InvalidArgumentError, match="either"):
        harness.advance_processing_time()


def test_state_can_be_looked_at_by_key() -> None:
    harness = KeyedOperatorHarness(CountPerKey(), key_selector=lambda word: word)
    harness.process_all(["to", "be", "to"])
    assert harness.state(COUNT, "to") == 2
    assert harness.state(COUNT, "be") == 1
    assert harness.state(COUNT, "or") is None
    with pytest.raises(StateError, match=r"no state 'sum'; it has \['count'\]"):
        harness.state(ValueStateDescriptor("sum"), "to")


class Average(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])


class AllKinds(KeyedProcessFunction):
    LIST = ListStateDescriptor("list", Types.INT())
    MAP = MapStateDescriptor("map", Types.INT(), Types.INT())
    SUM = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
    MEAN = AggregatingStateDescriptor("mean", Average())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.list = runtime_context.get_list_state(self.LIST)
        self.map = runtime_context.get_map_state(self.MAP)
        self.sum = runtime_context.get_reducing_state(self.SUM)
        self.mean = runtime_context.get_aggregating_state(self.MEAN)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.list.add(value)
        self.map.put(value, value * value)
        self.sum.add(value)
        self.mean.add(value)


def test_every_kind_of_state_survives() -> None:
    harness = KeyedOperatorHarness(AllKinds(), key_selector=lambda value: "all")
    harness.process_all([1, 2])
    restored = KeyedOperatorHarness.restore(harness.snapshot())
    restored.process(6)
    assert restored.state(AllKinds.LIST, "all") == [1, 2, 6]
    assert restored.state(AllKinds.MAP, "all") == {1: 1, 2: 4, 6: 36}
    assert restored.state(AllKinds.SUM, "all") == 9
    assert restored.state(AllKinds.MEAN, "all") == 3.0
    assert restored.state(AllKinds.LIST, "none") == []
    assert restored.state(AllKinds.MAP, "none") == {}


def test_a_snapshot_keeps_state_and_forgets_self() -> None:
    harness = KeyedOperatorHarness(CountPerKey(), key_selector=lambda word: word)
    harness.process_all(["to", "be", "to"])
    harness.advance_processing_time(99)
    snapshot = harness.snapshot()
    assert harness.process("to") == [("to", 3, 4)]  # the harness goes on, and
    restored = KeyedOperatorHarness.restore(snapshot)  # what came later is not in it
    assert restored.process("to") == [("to", 3, 1)]
    assert restored.process("be") == [("be", 2, 2)]
    assert restored.clock.now() == 99
    assert restored.outputs() == [("to", 3, 1), ("be", 2, 2)]


class CountOf(CountPerKey):
    """The same with a state of another type."""

    def __init__(self, type_info: Any) -> None:
        self._type_info = type_info

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", self._type_info))


def test_a_newer_function_goes_on_with_the_state() -> None:
    harness = KeyedOperatorHarness(CountPerKey(), key_selector=lambda word: word)
    harness.process("to")
    snapshot = harness.snapshot()
    newer = KeyedOperatorHarness.restore(snapshot, CountPerKey())
    assert newer.process("to") == [("to", 2, 1)]


def test_a_newer_function_may_declare_a_wider_type() -> None:
    harness = KeyedOperatorHarness(CountPerKey(), key_selector=lambda word: word)
    harness.process_all(["to", "be"])
    newer = KeyedOperatorHarness.restore(harness.snapshot(), CountOf(Types.DOUBLE()))
    assert repr(newer.state(ValueStateDescriptor("count", Types.DOUBLE()), "to")) == "1.0"
    again = KeyedOperatorHarness.restore(newer.snapshot(), CountOf(Types.DOUBLE()))
    found = again.state(ValueStateDescriptor("count", Types.DOUBLE()), "be")
    assert repr(found) == "1.0"


def test_a_newer_function_is_refused_if_its_types_do_not_fit() -> None:
    harness = KeyedOperatorHarness(CountPerKey(), key_selector=lambda word: word)
    harness.process("to")
    snapshot = harness.snapshot()
    with pytest.raises(CheckpointMismatchError, match=r"'count'.*it was Long and is String"):
        KeyedOperatorHarness.restore(snapshot, CountOf(Types.STRING()))


class Fading(CountPerKey):
    STATE = ValueStateDescriptor("fading", Types.LONG())
    STATE.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(self.STATE)


def test_time_to_live_follows_the_manual_clock() -> None:
    harness = KeyedOperatorHarness(Fading(), key_selector=lambda word: word)
    harness.process_all(["a", "a"])
    harness.advance_processing_time(by=999)
    assert harness.state(Fading.STATE, "a") == 2
    harness.advance_processing_time(by=1)
    assert harness.state(Fading.STATE, "a") is None
    assert harness.process("a") == [("a", 1, 3)]


class LifeCycle(MapFunction):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append(f"open {runtime_context.get_index_of_this_subtask()}")

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        self.calls.append("close")


def test_a_function_is_opened_and_closed_once() -> None:
    function = LifeCycle()
    with OperatorHarness(function) as harness:
        harness.process(1)
        harness.close()
    assert function.calls == ["open 0", "close"]


class Failing(MapFunction):
    def map(self, value: Any) -> Any:
        raise KeyError(value)


def test_what_a_function_raises_names_its_line() -> None:
    with pytest.raises(UserFunctionError, match=r"test_harness.py:\d+: KeyError") as caught:
        OperatorHarness(Failing()).process("gone")
    assert isinstance(caught.value.__cause__, KeyError)


class Timed(ProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(1)


class Reminds(KeyedProcessFunction):
    """Reminds of a record ten milliseconds later, by both clocks."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() + 10)
        timers.register_processing_time_timer(timers.current_processing_time() + 10)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key(), ctx.time_domain(), timestamp


def test_timers_fire_when_their_clock_has_come_so_far() -> None:
    clock = ManualClock(1000)
    harness = KeyedOperatorHarness(Reminds(), key_selector=lambda value: value, clock=clock)
    harness.process("a", timestamp=100)
    harness.process("b", timestamp=50)
    assert harness.advance_watermark(59) == []
    assert harness.advance_watermark(110) == [
        ("b", TimeDomain.EVENT_TIME, 60),
        ("a", TimeDomain.EVENT_TIME, 110),
    ]
    harness.clear_outputs()
    harness.advance_processing_time(by=9)
    assert harness.outputs() == []
    harness.advance_processing_time(to=1010)
    assert sorted(key for key, _, _ in harness.outputs()) == ["a", "b"]


def test_timers_are_part_of_a_snapshot() -> None:
    harness = KeyedOperatorHarness(Reminds(), key_selector=lambda value: value)
    harness.process("a", timestamp=100)
    restored = KeyedOperatorHarness.restore(harness.snapshot())
    assert restored.advance_watermark(200) == [("a", TimeDomain.EVENT_TIME, 110)]
    assert restored.advance_watermark(300) == []


def test_timers_need_a_key() -> None:
    with pytest.raises(UnsupportedFeatureError, match="keyed stream"):
        OperatorHarness(Timed()).process(1)


class Reusing(MapFunction):
    """Emits one and the same list."""

    def __init__(self) -> None:
        self.list: list[Any] = []

    def map(self, value: Any) -> Any:
        self.list.append(value)
        return self.list


def test_outputs_stay_as_they_were_emitted() -> None:
    harness = OperatorHarness(Reusing())
    harness.process_all([1, 2])
    assert harness.outputs() == [[1], [1, 2]]


def test_outputs_have_the_declared_type() -> None:
    assert OperatorHarness(Double(), output_type=Types.INT()).process(2**31) == [0]
    with pytest.raises(TypeMismatchError):
        OperatorHarness(Double(), output_type=Types.INT()).process("text")


class Unpicklable(Double):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: OperatorHarness(len), InvalidArgumentError, "instance of MapFunction"),
        (lambda: OperatorHarness(Double), InvalidArgumentError, "instance of MapFunction"),
        (lambda: OperatorHarness(Add()), InvalidArgumentError, "use KeyedOperatorHarness"),
        (lambda: OperatorHarness(Unpicklable()), UnpicklableError, "Unpicklable"),
        (
            lambda: KeyedOperatorHarness(Add(), key_selector=lambda v: [v]).process(1),
            InvalidKeyError,
            "key",
        ),
    ],
)
def test_misuse(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
