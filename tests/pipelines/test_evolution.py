"""A job goes on from state that an earlier version of it has declared otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.common import Row, Time, Types
from penstock.datastream import (
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import CheckpointMismatchError, PenstockError

KEYS = 20

local = pytest.mark.parametrize("executor", ["local"], indirect=True)


# Two versions of what is kept


@dataclass
class Address:
    zip: int


@dataclass
class Customer:
    name: str
    visits: int
    address: Address
    old: str = "gone"


@dataclass
class AddressWithCity:
    city: str = "Ulm"
    zip: int = 0


@dataclass
class CustomerNow:
    """A field is removed, one added, one widened, the order changed, a part evolved."""

    address: AddressWithCity
    visits: float
    name: str
    tags: list[str] = field(default_factory=list)


class Point(NamedTuple):
    x: int
    y: int


class PointNow(NamedTuple):
    y: int
    x: int
    z: int = 7


CUSTOMER = Customer("ann", 3, Address(89073))
CUSTOMER_NOW = CustomerNow(AddressWithCity("Ulm", 89073), 3.0, "ann", [])


class Last(AggregateFunction):
    """Keeps the last value as its accumulator."""

    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a


def expiring(descriptor: StateDescriptor) -> StateDescriptor:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


def value(type_info: Any) -> ValueStateDescriptor:
    return ValueStateDescriptor("kept", type_info)


class Keeps(KeyedProcessFunction):
    """Writes on a key's first record, reads on every other."""

    def __init__(self, descriptor: StateDescriptor, content: Any, lazily: bool = False) -> None:
        self._descriptor = descriptor
        self._content = content
        self._lazily = lazily

    def open(self, runtime_context: Any) -> None:
        self._context = runtime_context
        if not self._lazily:
            self._state = self._declared()

    def _declared(self) -> Any:
        kind = type(self._descriptor).__name__.removesuffix("StateDescriptor").lower()
        method = "get_state" if kind == "value" else f"get_{kind}_state"
        return getattr(self._context, method)(self._descriptor)

    def process_element(self, value: int, ctx: Any) -> Any:
        state = self._declared() if self._lazily else self._state
        if value < KEYS:
            write(state, self._content)
        yield ctx.get_current_key(), read(state)


def write(state: Any, content: Any) -> None:
    if hasattr(state, "put"):
        state.put("a", content)
    elif hasattr(state, "add"):
        state.add(content)
    else:
        state.update(content)


def read(state: Any) -> Any:
    if hasattr(state, "put"):
        return dict(state.items())
    if hasattr(state, "get"):
        found = state.get()
        return list(found) if isinstance(found, list) else found
    return state.value()


def job(
    env: StreamExecutionEnvironment,
    descriptor: StateDescriptor,
    content: Any = None,
    limit: int | None = None,
    keep: Callable[..., Any] = Keeps,
    **settings: Any,
) -> Any:
    """Numbers up to 60, each with its last digit as the key."""

    def checked(n: int) -> int:
        if limit is not None and n >= limit:
            raise RuntimeError("half-way")
        return n

    numbers = env.from_collection(list(range(60))).uid("numbers").map(checked)
    return numbers.key_by(lambda n: n % KEYS).process(keep(descriptor, content, **settings)).uid("k")


def of_both_versions(
    restartable_env: Any, before: StateDescriptor, content: Any, after: StateDescriptor, **more: Any
) -> list[Any]:
    """What the second version reads, one result for each record that is left."""
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(), before, content, limit=40, **more).execute_and_collect())
    found = list(job(restartable_env(), after, **more).execute_and_collect())
    assert {key for key, _ in found} == set(range(KEYS))
    return [read for _, read in found]


ROW = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
ROW_NOW = Types.ROW_NAMED(["c", "b", "a"], [Types.STRING(), Types.STRING(), Types.DOUBLE()])
MAPPED = Types.MAP(Types.TUPLE([Types.INT(), Types.STRING()]), Types.LIST(Types.INT()))
MAPPED_NOW = Types.MAP(Types.TUPLE([Types.INT(), Types.STRING()]), Types.LIST(Types.DOUBLE()))


@pytest.mark.parametrize(
    ("before", "content", "after", "expected"),
    [
        pytest.param(value(Types.INT()), 3, value(Types.LONG()), 3, id="int to long"),
        pytest.param(value(Types.INT()), 3, value(Types.DOUBLE()), 3.0, id="int to double"),
        pytest.param(value(Types.FLOAT()), 0.1, value(Types.DOUBLE()), 0.1, id="float to double"),
        pytest.param(value(Types.LONG()), 2**60, value(Types.BIG_INT()), 2**60, id="to big int"),
        pytest.param(value(ROW), Row(1, "x"), value(ROW_NOW), Row(c=None, b="x", a=1.0), id="row"),
        pytest.param(value(Point), Point(1, 2), value(PointNow), PointNow(2, 1, 7), id="tuple"),
        pytest.param(value(MAPPED), {(1, "x"): [2]}, value(MAPPED_NOW), {(1, "x"): [2.0]}, id="in"),
        pytest.param(
            ReducingStateDescriptor("kept", max, Types.INT()),
            3,
            ReducingStateDescriptor("kept", max, Types.DOUBLE()),
            3.0,
            id="reducing",
        ),
        pytest.param(
            AggregatingStateDescriptor("kept", Last(), Customer),
            CUSTOMER,
            AggregatingStateDescriptor("kept", Last(), CustomerNow),
            CUSTOMER_NOW,
            id="aggregating",
        ),
        pytest.param(
            MapStateDescriptor("kept", Types.STRING(), Types.INT()),
            3,
            MapStateDescriptor("kept", Types.STRING(), Types.DOUBLE()),
            {"a": 3.0},
            id="map",
        ),
        pytest.param(
            expiring(MapStateDescriptor("kept", Types.STRING(), Types.INT())),
            3,
            MapStateDescriptor("kept", Types.STRING(), Types.DOUBLE()),
            {"a": 3.0},
            id="map that expires no more",
        ),
        pytest.param(
            ListStateDescriptor("kept", Types.INT()),
            3,
            expiring(ListStateDescriptor("kept", Types.DOUBLE())),
            [3.0],
            id="list that now expires",
        ),
        pytest.param(
            expiring(value(Types.INT())), 3, expiring(value(Types.DOUBLE())), 3.0, id="expiring"
        ),
        pytest.param(
            ListStateDescriptor("kept", Customer),
            CUSTOMER,
            ListStateDescriptor("kept", CustomerNow),
            [CUSTOMER_NOW],
            id="list of dataclasses",
        ),
    ],
)
def test_what_was_stored_is_read_as_declared_now(
    restartable_env: Any, before: Any, content: Any, after: Any, expected: Any
) -> None:
    found = of_both_versions(restartable_env, before, content, after)
    assert found == [expected] * len(found)
    assert type(found[0]) is type(expected)
