"""Harnesses of functions with two inputs; with them, what broadcast state allows where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import (
    BroadcastProcessFunction,
    CoMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
    OutputTag,
    RuntimeContext,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    PenstockError,
    StateError,
    TypeMismatchError,
    UserFunctionError,
)
from penstock.testing import (
    BroadcastHarness,
    KeyedBroadcastHarness,
    KeyedTwoInputHarness,
    OperatorHarness,
    TwoInputHarness,
)

SEEN = OutputTag("seen")
COUNT = ValueStateDescriptor("count", Types.INT())
RECENT = ListStateDescriptor("recent")
BY_VALUE = MapStateDescriptor("by value")
TOTAL = ReducingStateDescriptor("total", lambda a, b: a + b)
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())


class Sides(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "first", value

    def map2(self, value: Any) -> Any:
        return None if value is None else ("second", value)


def test_two_inputs() -> None:
    with TwoInputHarness(Sides()) as harness:
        assert harness.process1(1) == [("first", 1)]
        assert harness.process2(1) == [("second", 1)]
        assert harness.process2(None) == []


class Sum(KeyedCoProcessFunction):
    """Adds (key, n) and subtracts (n, key); a timer tells the sum."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sum = runtime_context.get_state(COUNT)

    def process_element1(self, value: Any, ctx: Any) -> None:
        self._sum.update((self._sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        self._sum.update((self._sum.value() or 0) - value[0])
        yield SEEN, value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self._sum.value(), timestamp


def test_keyed_inputs_share_state_and_timers() -> None:
    with KeyedTwoInputHarness(Sum(), 0, 1) as harness:
        harness.process1(("a", 5), timestamp=100)
        harness.process2((2, "a"))
        assert harness.state(COUNT, "a") == 3
        assert harness.side_outputs(SEEN) == [(2, "a")]
        restored = KeyedTwoInputHarness.restore(harness.snapshot())
        assert restored.state(COUNT, "a") == 3
        assert restored.advance_watermark(110) == [("a", 3, 110)]


class Limits(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        yield value, limit, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(LIMITS).put(*value)
        yield value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()


def test_broadcast_and_its_clocks() -> None:
    with BroadcastHarness(Limits(), [LIMITS]) as harness:
        harness.advance_watermark(50)
        harness.advance_processing_time(7)
        assert harness.process_broadcast(("a", 10), timestamp=60) == [(("a", 10), 60, 50, 7)]
        assert harness.process(("a", 11), timestamp=61) == [(("a", 11), 10, 61, 50, 7)]
        assert harness.broadcast_state(LIMITS) == {"a": 10}
        restored = BroadcastHarness.restore(harness.snapshot())
        assert restored.broadcast_state(LIMITS) == {"a": 10}
        assert restored.process(("a", 11), timestamp=61)[0][1] == 10


def test_broadcast_values_are_checked() -> None:
    with BroadcastHarness(Limits(), [LIMITS]) as harness:
        with pytest.raises(TypeMismatchError, match="state 'limits'"):
            harness.process_broadcast(("a", "ten"))
        with pytest.raises(TypeMismatchError, match="state 'limits'"):
            harness.process_broadcast((7, 10))


def declared_as(type_info: Any) -> Any:
    """A snapshot of broadcast state, with a program that declares it with another type."""

    class Others(Limits):
        def process_element(self, value: Any, ctx: Any) -> Any: ...

    harness = BroadcastHarness(Limits(), [LIMITS])
    harness.process_broadcast(("a", 10))
    before = harness.snapshot()
    other = MapStateDescriptor("limits", Types.STRING(), type_info)
    program = BroadcastHarness(Others(), [other]).snapshot().program
    return type(before)(**{**vars(before), "program": program})


def test_a_snapshot_is_read_as_it_is_declared_now() -> None:
    wider = MapStateDescriptor("limits", Types.STRING(), Types.DOUBLE())
    restored = BroadcastHarness.restore(declared_as(Types.DOUBLE()))
    assert repr(restored.operator_state(wider)) == "{'a': 10.0}"
    again = BroadcastHarness.restore(restored.snapshot())
    assert repr(again.operator_state(wider)) == "{'a': 10.0}"


def test_a_snapshot_of_another_type_is_refused() -> None:
    changed = declared_as(Types.STRING())
    with pytest.raises(CheckpointMismatchError, match=r"state 'limits'.*was stored as broadcast"):
        BroadcastHarness.restore(changed)


def test_state_that_is_not_declared_any_more_is_kept() -> None:
    harness = BroadcastHarness(Limits(), [LIMITS])
    harness.process_broadcast(("a", 10))
    full = harness.snapshot()

    def with_states(snapshot: Any, *descriptors: Any) -> Any:
        program = BroadcastHarness(Limits(), list(descriptors)).snapshot().program
        return BroadcastHarness.restore(type(snapshot)(**{**vars(snapshot), "program": program}))

    names = MapStateDescriptor("names")
    without = with_states(full, names)
    assert without.broadcast_state(names) == {}
    again = with_states(without.snapshot(), LIMITS, names)
    assert again.broadcast_state(LIMITS) == {"a": 10}


# What the data side may not do


class Meddle(Limits):
    def __init__(self, meddle: Callable[[Any], Any]) -> None:
        self._meddle = meddle

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        for method in ("put", "put_all", "remove"):
            assert not hasattr(limits, method)
        self._meddle(limits)
        yield value


@pytest.mark.parametrize(
    "meddle",
    [
        lambda limits: limits.put("a", 1),
        lambda limits: limits.put_all({"a": 1}),
        lambda limits: limits.remove("a"),
        lambda limits: limits.clear(),
        lambda limits: limits.__setitem__("a", 1),
        lambda limits: limits.__delitem__("a"),
    ],
)
def test_the_data_side_cannot_change_it(meddle: Any) -> None:
    with BroadcastHarness(Meddle(meddle), [LIMITS]) as harness:
        harness.process_broadcast(("a", 10))
        with pytest.raises(StateError, match="'limits' can only be read here"):
            harness.process(1)
        assert harness.broadcast_state(LIMITS) == {"a": 10}


def test_an_unknown_attribute_is_none_of_ours() -> None:
    with (
        BroadcastHarness(Meddle(lambda limits: limits.update), [LIMITS]) as harness,
        pytest.raises(UserFunctionError, match="has no attribute 'update'"),
    ):
        harness.process(1)


def test_what_is_handed_out_is_no_part_of_it() -> None:
    def empty(limits: Any) -> None:
        for handed in (limits.items(), limits.keys(), limits.values()):
            handed.clear()

    with BroadcastHarness(Meddle(empty), [LIMITS]) as harness:
        harness.process_broadcast(("a", 10))
        harness.process(1)
        assert harness.broadcast_state(LIMITS) == {"a": 10}


# What the broadcast side may not do


class WithoutKey(KeyedBroadcastProcessFunction):
    """Does something on the broadcast side that needs a key."""

    def __init__(self, use: Callable[[Any, Any], Any]) -> None:
        self._use = use

    def open(self, runtime_context: RuntimeContext) -> None:
        self._states: dict[str, Any] = {
            "value": runtime_context.get_state(COUNT),
            "list": runtime_context.get_list_state(RECENT),
            "map": runtime_context.get_map_state(BY_VALUE),
            "total": runtime_context.get_reducing_state(TOTAL),
        }

    def process_element(self, value: Any, ctx: Any) -> None:
        self._states["timers"] = ctx.timer_service()
        self._states["value"].update(1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        assert not hasattr(ctx, "get_current_key")
        assert not hasattr(ctx, "timer_service")
        self._use(self._states, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> None: ...


def used(use: Any) -> None:
    with KeyedBroadcastHarness(WithoutKey(use), lambda value: value, [LIMITS]) as harness:
        harness.process("a")
        harness.process_broadcast(1)


@pytest.mark.parametrize(
    "use",
    [
        lambda states, ctx: states["value"].value(),
        lambda states, ctx: states["value"].update(1),
        lambda states, ctx: states["value"].clear(),
        lambda states, ctx: list(states["list"].get()),
        lambda states, ctx: states["list"].add(1),
        lambda states, ctx: states["map"].get(1),
        lambda states, ctx: states["map"].put(1, 1),
        lambda states, ctx: states["map"].clear(),
        lambda states, ctx: states["total"].add(1),
        lambda states, ctx: states["timers"].register_event_time_timer(1),
        lambda states, ctx: (
            ctx.apply_to_keyed_state(COUNT, lambda key, state: None),
            states["value"].value(),
        ),
    ],
)
def test_broadcast_records_have_no_key(use: Any) -> None:
    with pytest.raises(PenstockError, match="there is no current key here"):
        used(use)


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda s, ctx: ctx.apply_to_keyed_state("count", print), "must be a StateDescriptor"),
        (lambda s, ctx: ctx.apply_to_keyed_state(COUNT, 5), "a callable of key and state"),
        (lambda s, ctx: ctx.apply_to_keyed_state(COUNT, _yields), "without yield"),
    ],
)
def test_wrong_arguments(use: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        used(use)


def _yields(key: Any, state: Any) -> Iterator[Any]:
    yield key


def test_no_keyed_state_beside_an_unkeyed_stream() -> None:
    class Applies(Limits):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.apply_to_keyed_state(COUNT, print)

    with (
        BroadcastHarness(Applies(), [LIMITS]) as harness,
        pytest.raises(StateError, match="apply_to_keyed_state is only possible on a keyed stream"),
    ):
        harness.process_broadcast(1)


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: OperatorHarness(Sides()), "Sides works on two streams; use TwoInputHarness"),
        (lambda: TwoInputHarness(Sum()), "two keyed streams; use KeyedTwoInputHarness"),
        (lambda: TwoInputHarness(Double()), "works on one stream; use OperatorHarness"),
        (lambda: OperatorHarness(Limits()), "beside a broadcast stream; use BroadcastHarness"),
        (
            lambda: BroadcastHarness(WithoutKey(print), [LIMITS]),
            "beside a broadcast stream; use KeyedBroadcastHarness",
        ),
        (lambda: TwoInputHarness(5), "the function must be an instance of CoMapFunction, CoFlat"),
    ],
)
def test_the_wrong_harness(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        make()
