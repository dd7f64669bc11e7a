"""A job goes on from state that an earlier version of it has declared otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from functools import reduce
from typing import Any, NamedTuple

import pytest

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.errors import CheckpointMismatchError, PenstockError
from penstock.state import keyed_state

KEYS = 20
# Epochs take long on Spark.
FEW = {"penstock.source.max-records-per-epoch": "20"}

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


@dataclass
class CustomerLater(Customer):
    since: int = field(kw_only=True)


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
    until: int = 60,
    **settings: Any,
) -> Any:
    """Numbers, each under one of the keys in turn; a failure at the limit."""

    def checked(n: int) -> int:
        if limit is not None and n >= limit:
            raise RuntimeError("half-way")
        return n

    numbers = env.from_collection(list(range(until))).uid("numbers").map(checked)
    return (
        numbers.key_by(lambda n: n % KEYS).process(keep(descriptor, content, **settings)).uid("k")
    )


def of_both_versions(
    restartable_env: Any, before: StateDescriptor, content: Any, after: StateDescriptor, **more: Any
) -> list[Any]:
    """What the second version reads, one result for each record that is left."""
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(FEW), before, content, limit=40, **more).execute_and_collect())
    found = list(job(restartable_env(FEW), after, **more).execute_and_collect())
    assert {key for key, _ in found} == set(range(KEYS))
    return [read for _, read in found]


def avro(*fields: Any) -> GenericRecordAvroTypeInfo:
    keys = ("name", "type", "default")
    described = [dict(zip(keys, given, strict=False)) for given in fields]
    schema = {"type": "record", "name": "R", "fields": described}
    return GenericRecordAvroTypeInfo(AvroSchema(schema))


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
        pytest.param(
            ListStateDescriptor("kept", avro(("a", "int"), ("b", "string"))),
            {"a": 1, "b": "x"},
            ListStateDescriptor("kept", avro(("c", "int", 7), ("a", "double"))),
            [{"c": 7, "a": 1.0}],
            id="avro",
        ),
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


def test_a_state_that_a_subtask_has_not_met_yet(restartable_env: Any) -> None:
    """It is declared with the first record, and not every subtask has one in the first epoch; all
    of them must store it alike."""

    class Later(Keeps):
        def process_element(self, value: int, ctx: Any) -> Any:
            if value < KEYS or value == 40 or value > 41:
                yield from super().process_element(value, ctx)
            else:
                yield ctx.get_current_key(), None

    before, after = value(Types.INT()), value(Types.DOUBLE())
    more = {"keep": Later, "lazily": True, "until": 44}
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(FEW), before, 3, limit=40, **more).execute_and_collect())
    env = restartable_env({"penstock.source.max-records-per-epoch": "1"})
    found = list(job(env, after, **more).execute_and_collect())
    assert {key for key, read in found if read is not None} == {0, 2, 3}
    assert {type(read) for _, read in found} == {float, type(None)}


@local
@pytest.mark.parametrize("parallelism", ["3", "1"])
def test_another_parallelism_at_the_same_time(restartable_env: Any, parallelism: str) -> None:
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(), value(Types.INT()), 3, limit=40).execute_and_collect())
    env = restartable_env({"parallelism.default": parallelism})
    found = list(job(env, value(Types.DOUBLE())).execute_and_collect())
    assert sorted(key for key, _ in found) == list(range(KEYS))
    assert [read for _, read in found] == [3.0] * KEYS


@local
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_what_is_written_early_is_as_it_was_written(
    restartable_env: Any, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """An epoch whose changes outgrow memory puts some of them beside the stored ones, and rewrites
    those in several parts."""
    monkeypatch.setattr(keyed_state, "_LEAST_AT_ONCE", 3)

    class Adds(Keeps):
        def process_element(self, value: int, ctx: Any) -> Any:
            if value < KEYS:
                self._state.put("a", 1)
                self._state.put("b", 2)
            elif self._content is None:
                self._state.remove("a")
                self._state.put("b", self._state.get("b") + 0.5)
                self._state.put("c", 0.25)
            yield ctx.get_current_key(), dict(self._state.items())

    def of(type_info: Any) -> MapStateDescriptor:
        return MapStateDescriptor("kept", Types.STRING(), type_info)

    small = {"penstock.state.cache-entries": "1", "state.backend.type": backend}

    def run(type_info: Any, content: Any, limit: int | None) -> list[Any]:
        env = restartable_env(small)
        return list(job(env, of(type_info), content, limit, Adds, 80).execute_and_collect())

    with pytest.raises(PenstockError, match="half-way"):
        run(Types.INT(), "only read", 40)
    with pytest.raises(PenstockError, match="half-way"):
        run(Types.DOUBLE(), None, 55)
    changed, only_converted = {"b": 2.5, "c": 0.25}, {"a": 1.0, "b": 2.0}
    expected = [(key, changed if key < 10 else only_converted) for key in range(KEYS)]
    found = run(Types.DOUBLE(), "only read", None)
    assert sorted(found, key=str) == sorted([*expected, *expected[10:]], key=str)


# Windows


def windowed(
    env: StreamExecutionEnvironment, number: Any, assigner: Any, use: Any, limit: int
) -> Any:
    """The numbers 0 to 39, a second apart, under two keys."""

    def checked(n: int) -> tuple[int, int]:
        if n >= limit:
            raise RuntimeError("half-way")
        return n % 2, n

    by_number = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(BySecond())
    stream = (
        env.from_collection(list(range(40)))
        .uid("numbers")
        .map(checked, output_type=Types.TUPLE([Types.INT(), number]))
        .assign_timestamps_and_watermarks(by_number)
        .key_by(lambda pair: pair[0])
        .window(assigner)
    )
    return use(stream, number).uid("w")


class BySecond(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1]) * 1000


def total(a: Any, b: Any) -> Any:
    """Of numbers of one type: those that were stored must be of the same as those that come."""
    if a is None or b is None:
        return a if b is None else b
    if type(a) is not type(b):
        raise TypeError(f"{a!r} and {b!r}")
    return a + b


class Sum(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, None)

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], total(accumulator[1], value[1])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return max(a[0], b[0]), total(a[1], b[1])


class Whole(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, reduce(total, [n for _, n in elements])


def added(a: Any, b: Any) -> Any:
    return a[0], total(a[1], b[1])


def aggregated(stream: Any, number: Any) -> Any:
    return stream.aggregate(Sum(), accumulator_type=Types.TUPLE([Types.INT(), number]))


TUMBLING = TumblingEventTimeWindows.of(Time.seconds(100))


@local
@pytest.mark.parametrize(
    ("assigner", "use"),
    [
        pytest.param(TUMBLING, lambda s, _: s.reduce(added), id="values"),
        pytest.param(TUMBLING, lambda s, _: s.process(Whole()), id="elements"),
        pytest.param(
            SlidingEventTimeWindows.of(Time.seconds(100), Time.seconds(50)), aggregated, id="slices"
        ),
        pytest.param(EventTimeSessionWindows.with_gap(Time.seconds(50)), aggregated, id="sessions"),
        pytest.param(
            TUMBLING, lambda s, _: s.trigger(AtTheEnd()).reduce(added), id="custom, values"
        ),
        pytest.param(
            TUMBLING, lambda s, _: s.trigger(AtTheEnd()).process(Whole()), id="custom, elements"
        ),
    ],
)
def test_contents_of_windows(
    restartable_env: Any, collect_until_error: Any, assigner: Any, use: Any
) -> None:
    none, _ = collect_until_error(windowed(restartable_env(), Types.INT(), assigner, use, 30))
    assert none == []
    found = list(
        windowed(restartable_env(), Types.DOUBLE(), assigner, use, 40).execute_and_collect()
    )
    assert dict(found) == {0: 380.0, 1: 400.0}


class AtTheEnd(EventTimeTrigger):
    """A trigger of the user's own, for which there is no shorter way."""


@local
def test_elements_of_windows_with_an_evictor_keep_their_type(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def use(stream: Any, number: Any) -> Any:
        return stream.evictor(CountEvictor.of(5)).process(Whole())

    collect_until_error(windowed(restartable_env(), Types.INT(), TUMBLING, use, 30))
    again = windowed(restartable_env(), Types.DOUBLE(), TUMBLING, use, 40)
    with pytest.raises(
        CheckpointMismatchError, match=r"'_windows'.*Tuple\(Integer, Integer\).*pickles"
    ):
        list(again.execute_and_collect())


# Operator state


class Notes(MapFunction, CheckpointedFunction):
    """Keeps one content in the first version, gives all of it in the second."""

    def __init__(self, method: str, descriptor: Any, content: Any, limit: int) -> None:
        self._method = method
        self._descriptor = descriptor
        self._content = content
        self._limit = limit

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._state = getattr(store, self._method)(self._descriptor)
        if self._content is not None:
            write(self._state, self._content)

    def map(self, value: int) -> Any:
        if value >= self._limit:
            raise RuntimeError("half-way")
        return read(self._state)

    def snapshot_state(self, context: Any) -> None:
        pass


def noting(env: Any, method: str, descriptor: Any, content: Any, limit: int) -> Any:
    numbers = env.from_collection(list(range(60))).uid("numbers").rebalance()
    return numbers.map(Notes(method, descriptor, content, limit)).uid("notes")


@pytest.mark.parametrize(
    ("method", "before", "after", "expected"),
    [
        ("get_list_state", Types.INT(), Types.DOUBLE(), [3.0]),
        ("get_union_list_state", Types.INT(), Types.DOUBLE(), [3.0, 3.0]),
        ("get_broadcast_state", Types.INT(), Types.DOUBLE(), {"a": 3.0}),
    ],
)
def test_operator_state(
    restartable_env: Any, method: str, before: Any, after: Any, expected: Any
) -> None:
    def of(type_info: Any) -> Any:
        if method == "get_broadcast_state":
            return MapStateDescriptor("noted", Types.STRING(), type_info)
        return ListStateDescriptor("noted", type_info)

    with pytest.raises(PenstockError, match="half-way"):
        list(noting(restartable_env(FEW), method, of(before), 3, 30).execute_and_collect())
    # Twice: what the first of them has stored must be of the new type, too.
    with pytest.raises(PenstockError, match="half-way"):
        list(noting(restartable_env(FEW), method, of(after), None, 50).execute_and_collect())
    found = list(noting(restartable_env(FEW), method, of(after), None, 60).execute_and_collect())
    assert found
    assert all(read == expected for read in found)
    assert all(
        type(n) is float for n in (found[0].values() if isinstance(expected, dict) else found[0])
    )


# What is refused


@local
@pytest.mark.parametrize(
    ("before", "content", "after", "difference"),
    [
        (value(Types.LONG()), 3, value(Types.INT()), "it was Long and is Integer"),
        (value(Types.INT()), 3, value(Types.STRING()), "it was Integer and is String"),
        (value(Types.INT()), 3, ListStateDescriptor("kept", Types.INT()), "kept as value and is"),
        (value(Customer), CUSTOMER, value(CustomerLater), r"\.since is new and has no default"),
        (
            ListStateDescriptor("kept", Customer),
            CUSTOMER,
            ListStateDescriptor("kept", make_dataclass("Customer", [("name", int)])),
            r"\.name was String and is Long",
        ),
        (
            MapStateDescriptor("kept", Types.STRING(), Types.INT()),
            3,
            MapStateDescriptor("kept", Types.LONG(), Types.INT()),
            "its key was String and is Long",
        ),
        (
            value(avro(("a", "int"))),
            {"a": 1},
            value(avro(("a", "string"))),
            r"it cannot be resolved: \.a was int and is string",
        ),
        (value(None), 3, value(Types.INT()), "it was PickledByteArray and is Integer"),
    ],
)
def test_a_change_that_is_refused(
    restartable_env: Any,
    collect_until_error: Any,
    before: Any,
    content: Any,
    after: Any,
    difference: str,
) -> None:
    first, _ = collect_until_error(job(restartable_env(), before, content, limit=40))
    epochs: list[Any] = []
    env = restartable_env()
    env.add_epoch_listener(epochs.append)
    with pytest.raises(CheckpointMismatchError, match=difference) as caught:
        list(job(env, after).execute_and_collect())
    said = str(caught.value)
    assert "state 'kept' of operator 'k' was stored as" in said
    assert "test_evolution.py" in said
    assert epochs == []
    # Nothing has been changed by it.
    again = list(job(restartable_env(), before).execute_and_collect())
    assert sorted(again, key=str) == sorted(first, key=str)[::2]


@local
def test_a_state_that_was_removed_and_comes_back(restartable_env: Any) -> None:
    """A version between did not have it; its entries have waited."""
    other = ValueStateDescriptor("other", Types.INT())
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(), value(Types.INT()), 3, limit=40).execute_and_collect())
    with pytest.raises(PenstockError, match="half-way"):
        list(job(restartable_env(), other, limit=55).execute_and_collect())
    found = list(job(restartable_env(), value(Types.DOUBLE())).execute_and_collect())
    assert found
    assert all(type(read) is float for _, read in found)
