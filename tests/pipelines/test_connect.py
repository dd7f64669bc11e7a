"""Row A8: two connected streams, of unlike records, with state and timers of the key they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import UnsupportedFeatureError, UserFunctionError
from penstock.testing import ScriptedSource

REJECTED = OutputTag("rejected", Types.STRING())
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}
BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(0).with_timestamp_assigner(
    lambda record, _: record[1]
)


class NumbersAndWords(CoMapFunction):
    def map1(self, value: int) -> str:
        return f"number {value}"

    def map2(self, value: str) -> str | None:
        return f"word {value}" if value else None


def test_co_map(env: StreamExecutionEnvironment) -> None:
    """The order is that of connect, not that in which the streams were made; None is left out."""
    words = env.from_elements("one", "", "two")
    numbers = env.from_elements(1, 2)

    stream = numbers.connect(words).map(NumbersAndWords(), Types.STRING())

    assert stream.get_type() == Types.STRING()
    assert sorted(stream.execute_and_collect()) == ["number 1", "number 2", "word one", "word two"]


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value: int) -> Iterator[Any]:
        yield from [value] * value

    def flat_map2(self, value: str) -> list[str] | None:
        return value.split() if value else None


def test_co_flat_map(env: StreamExecutionEnvironment) -> None:
    numbers, words = env.from_elements(0, 1, 3), env.from_elements("to be", "")

    stream = numbers.connect(words).flat_map(Repeat()).map(str)

    assert sorted(stream.execute_and_collect()) == ["1", "3", "3", "3", "be", "to"]


def test_a_stream_with_itself_and_with_unions(env: StreamExecutionEnvironment) -> None:
    """Records of every part of a union reach the input that it is."""
    numbers = env.from_elements(1, 2)
    words = env.from_elements("a").union(env.from_elements("b"))

    both = numbers.connect(words).map(NumbersAndWords())
    itself = numbers.connect(numbers.map(str)).map(NumbersAndWords())

    assert sorted(both.union(itself).execute_and_collect()) == [
        *["number 1"] * 2,
        *["number 2"] * 2,
        "word 1",
        "word 2",
        "word a",
        "word b",
    ]


class SplitBySide(CoProcessFunction):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        if value < 0:
            yield REJECTED, f"number {value}"
        else:
            yield "number", value

    def process_element2(self, value: str, ctx: CoProcessFunction.Context) -> Iterator[Any]:
        ctx.output(REJECTED, f"word {value}")
        yield "word", value


def test_co_process_with_side_outputs(env: StreamExecutionEnvironment) -> None:
    numbers, words = env.from_elements(1, -1), env.from_elements("a")

    main = numbers.connect(words).process(SplitBySide())
    rejected = main.get_side_output(REJECTED).map(lambda text: ("rejected", text))

    assert sorted(main.union(rejected).execute_and_collect()) == [
        ("number", 1),
        ("rejected", "number -1"),
        ("rejected", "word a"),
        ("word", "a"),
    ]


class Orders(KeyedCoProcessFunction):
    """Matches orders (id, time, amount) with payments (id, time): whichever comes first waits for
    the other in state, and after a second in vain it is reported."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._order = runtime_context.get_state(ValueStateDescriptor("order"))
        self._paid = runtime_context.get_state(ValueStateDescriptor("paid"))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        paid = self._paid.value()
        if paid is None:
            self._order.update(value)
            ctx.timer_service().register_event_time_timer(value[1] + 1000)
        else:
            self._paid.clear()
            yield self._matched(value, paid, ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        order = self._order.value()
        if order is None:
            self._paid.update(value)
            ctx.timer_service().register_event_time_timer(value[1] + 1000)
        else:
            self._order.clear()
            yield self._matched(order, value, ctx)

    def _matched(self, order: Any, paid: Any, ctx: Any) -> Any:
        assert ctx.get_current_key() == order[0] == paid[0]
        return ("matched", order[0], order[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        for what, state in (("unpaid", self._order), ("unknown", self._paid)):
            if state.value() is not None:
                state.clear()
                yield (what, ctx.get_current_key(), timestamp)


# An epoch's records come before the watermarks that they bring about.
ORDERS = [
    [("a", 0, 10), ("b", 100, 20)],
    [("c", 500, 30)],
    [("x", 2500, 35)],
    [("d", 2700, 40), ("e", 3000, 50)],
]
PAYMENTS = [
    [("d", 50)],
    [("a", 600), ("z", 700)],
    [("y", 2600)],
    [("b", 2900), ("e", 3000)],
]
SETTLED = [
    ("matched", "a", 10),
    ("matched", "e", 50),
    ("unknown", "b", 3900),
    ("unknown", "d", 1050),
    ("unknown", "y", 3600),
    ("unknown", "z", 1700),
    ("unpaid", "b", 1100),
    ("unpaid", "c", 1500),
    ("unpaid", "d", 3700),
    ("unpaid", "x", 3500),
]


def settled(env: StreamExecutionEnvironment, orders: Any, payments: Any, how: str) -> Any:
    def scripted(script: Any, uid: str) -> Any:
        # In one subtask: another would have no records, and hold the watermark back.
        return env.from_source(ScriptedSource(script), BY_TIME, uid).set_parallelism(1).uid(uid)

    first, second = scripted(orders, "orders"), scripted(payments, "payments")
    if how == "keyed":
        both = first.key_by(0).connect(second.key_by(0))
    else:
        both = first.connect(second).key_by(0, lambda payment: payment[0], Types.STRING())
    return both.process(Orders()).uid("settle")


@pytest.mark.parametrize("how", ["keyed", "key_by"])
def test_keyed_co_process(env: StreamExecutionEnvironment, how: str) -> None:
    assert sorted(settled(env, ORDERS, PAYMENTS, how).execute_and_collect()) == SETTLED


def test_state_and_timers_outlive_a_failure(make_env: Any) -> None:
    """Behind a failure of either source, with records waiting on both sides."""
    fail = ScriptedSource.FAIL
    orders = [ORDERS[0], [fail, *ORDERS[1]], *ORDERS[2:]]
    payments = [*PAYMENTS[:2], [*PAYMENTS[2], fail], PAYMENTS[3]]

    stream = settled(make_env(RESTARTS), orders, payments, "keyed")

    assert sorted(stream.execute_and_collect()) == SETTLED


class CountBoth(CoMapFunction):
    """Any function of two keyed streams may have state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def _counted(self, value: Any) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return value[0], count

    map1 = _counted
    map2 = _counted


def test_state_in_co_map_with_another_parallelism(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def stream(parallelism: str, limit: int) -> Any:
        def pair(n: int) -> Any:
            if n >= limit:
                raise RuntimeError("half-way")
            return n % 5, n

        env = restartable_env({"parallelism.default": parallelism})
        left = env.from_sequence(0, 49).uid("left").map(pair).key_by(0)
        right = env.from_sequence(0, 49).uid("right").map(pair).key_by(0)
        return left.connect(right).map(CountBoth()).uid("count")

    first, _ = collect_until_error(stream("2", 40))
    second = list(stream("3", 100).execute_and_collect())

    assert first
    assert second
    assert sorted(first + second) == [(key, n) for key in range(5) for n in range(1, 21)]


def test_a_keyed_stream_beside_another(env: StreamExecutionEnvironment) -> None:
    """There is no keyed state, but records of a key stay together."""

    class Where(CoMapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._here = runtime_context.get_index_of_this_subtask()

        def map1(self, value: int) -> Any:
            return "keyed", value % 3, self._here

        def map2(self, value: int) -> Any:
            return "other", value, 0

    keyed = env.from_sequence(0, 29).key_by(lambda n: n % 3)
    stream = keyed.connect(env.from_elements(100)).map(Where())

    found = list(stream.execute_and_collect())
    assert len(found) == 31
    assert len({(key, where) for side, key, where in found if side == "keyed"}) == 3
    assert ("other", 100, 0) in found


class Fails(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        return [value]

    def process_element2(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(5)


def test_no_timers_without_a_key(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).connect(env.from_elements(2)).process(Fails()).name("fails")
    with pytest.raises(
        UnsupportedFeatureError, match=r"'fails'.*timers is only supported on a keyed stream"
    ):
        list(stream.map(str).filter(bool).execute_and_collect())


class FailsInSecond(NumbersAndWords):
    def map2(self, value: str) -> str | None:
        raise LookupError(value)


def test_an_error_names_the_operator(env: StreamExecutionEnvironment) -> None:
    words = env.from_elements("a")
    mapped = env.from_elements(1).connect(words).map(FailsInSecond()).name("both")
    with pytest.raises(UserFunctionError, match=r"'both \(.*test_connect.py:\d+.*LookupError: a"):
        list(mapped.map(str).filter(bool).execute_and_collect())
