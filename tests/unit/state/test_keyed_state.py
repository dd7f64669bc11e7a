"""Keyed state over a byte store: the same as a dict, wherever epochs end and instances die."""

from __future__ import annotations

import enum
import threading
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import TypeInformation, Types
from penstock.common.types import Row
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
from penstock.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    StateError,
    TypeMismatchError,
)
from penstock.state import keyed_state as keyed_state_module
from penstock.state import list_state as list_state_module
from penstock.state import map_state as map_state_module
from penstock.state.backend import KeyScope, StateBase
from penstock.state.key_groups import key_group_of
from penstock.state.keyed_state import KeyedState
from penstock.state.keys import decode_key, encode_key
from penstock.storage.entries import Entry, unpack_key
from penstock.storage.memory_store import MemoryStore

MOST = 128
DAY = 86_400_000


class Subtask:
    """A subtask, that owns all key groups if nothing else is said: its store, clock and epochs."""

    def __init__(
        self, keep: int = 1000, key_groups: tuple[int, int] = (0, MOST - 1), memory: int = 0
    ) -> None:
        self.store = MemoryStore()
        self.keep = keep
        self.memory = memory
        self.key_groups = key_groups
        self.epoch = 1
        self.now = DAY
        self.recorded: dict[str, Any] = {}
        self.remake()

    def remake(self) -> None:
        """What a crash leaves: the store as of the last cut."""
        self.scope = KeyScope()
        self.spilled: list[Entry] = []
        self.spills = 0
        base = StateBase("op", MOST, lambda: self.store, MemoryStore)
        self.state = KeyedState(
            self.scope,
            base,
            self.key_groups,
            now=lambda: self.now,
            chunk_number=lambda: self.epoch << 16 | self.spills,
            keep=self.keep,
            recorded=lambda: self.recorded,
            memory=self.memory,
        )
        self.state.end_epoch()

    def at(self, key: Any, descriptor: StateDescriptor) -> Any:
        self.scope.key = key
        return self.state.get(descriptor)

    def relieve(self) -> None:
        """What a task does between payloads."""
        if self.state.overflowing():
            entries = [entry for part in self.state.spill() for entry in part]
            self.spilled += entries
            self.spills += bool(entries)

    def fill(self, entries: list[Entry]) -> None:
        """Put acknowledged entries into the store."""
        self.store.apply([(e.packed(), e.value) for e in entries], f"v{self.epoch}")

    @property
    def in_memory(self) -> int:
        """Live objects of all states."""
        return sum(table.pending + table.held for table in self.state._tables)

    def cut(self) -> list[Entry]:
        """End the epoch: the changes are acknowledged and reach the store."""
        entries = [*self.spilled, *self.state.rewritten(), *self.state.snapshot()]
        self.recorded.update(self.state.types())
        self.spilled, self.spills = [], 0
        self.fill(entries)
        self.epoch += 1
        self.state.end_epoch()
        return entries


class Mean(AggregateFunction):
    """The accumulator is a list that is changed in place."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return [a[0] + b[0], a[1] + b[1]]


VALUE = ValueStateDescriptor("value", Types.INT())
ANYTHING = ValueStateDescriptor("anything")
LIST = ListStateDescriptor("list", Types.INT())
MAP = MapStateDescriptor("map", Types.STRING(), Types.INT())
SUM = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
MEAN = AggregatingStateDescriptor("mean", Mean())

# The dict model


class Model:
    """What the states hold, as plain values under (state, key)."""

    def __init__(self) -> None:
        self.data: dict[tuple[str, Any], Any] = {}

    def copy(self) -> Model:
        made = Model()
        made.data = {
            at: list(v) if isinstance(v, list) else dict(v) if isinstance(v, dict) else v
            for at, v in self.data.items()
        }
        return made

    def apply(self, key: Any, op: tuple[Any, ...]) -> None:
        name, *arguments = op
        kind, _, verb = name.partition(".")
        at = (kind, key)
        if verb == "clear":
            self.data.pop(at, None)
        elif kind in ("value", "anything"):
            self.data[at] = arguments[0]
        elif name == "list.update":
            self.data[at] = list(arguments[0])
        elif name == "list.add_all":
            self.data.setdefault(at, []).extend(arguments[0])
        elif name == "list.add":
            self.data.setdefault(at, []).append(arguments[0])
        elif name == "map.put":
            self.data.setdefault(at, {})[arguments[0]] = arguments[1]
        elif name == "map.remove":
            self.data.get(at, {}).pop(arguments[0], None)
        else:  # sum, mean
            self.data.setdefault(at, []).append(arguments[0])

    def check(self, subtask: Subtask, key: Any, kind: str) -> None:
        expected = self.data.get((kind, key))
        if kind in ("value", "anything"):
            found = subtask.at(key, {"value": VALUE, "anything": ANYTHING}[kind]).value()
        elif kind == "list":
            found, expected = list(subtask.at(key, LIST).get()), expected or []
        elif kind == "map":
            found, expected = dict(subtask.at(key, MAP).items()), expected or {}
            assert subtask.at(key, MAP).is_empty() == (not expected)
        elif kind == "sum":
            found, expected = subtask.at(key, SUM).get(), sum(expected) if expected else None
        else:
            found = subtask.at(key, MEAN).get()
            expected = sum(expected) / len(expected) if expected else None
        assert found == expected, (kind, key)


DESCRIPTORS = {
    "value": VALUE,
    "anything": ANYTHING,
    "list": LIST,
    "map": MAP,
    "sum": SUM,
    "mean": MEAN,
}

small = st.integers(-5, 5)
map_keys = st.sampled_from(["", "a", "b", "é"])
record_keys = st.sampled_from([0, "a", ("a", 1), None])
changes = st.one_of(
    st.tuples(st.just("value.update"), small),
    st.tuples(st.just("anything.update"), st.sampled_from([None, {"a": [1]}, "x", 0, ""])),
    st.tuples(st.just("list.add"), small),
    st.tuples(st.just("list.add_all"), st.lists(small, max_size=3)),
    st.tuples(st.just("list.update"), st.lists(small, max_size=3)),
    st.tuples(st.just("map.put"), map_keys, small),
    st.tuples(st.just("map.remove"), map_keys),
    st.tuples(st.just("sum.add"), small),
    st.tuples(st.just("mean.add"), small),
    st.tuples(st.sampled_from([f"{kind}.clear" for kind in DESCRIPTORS])),
)
steps = st.one_of(
    st.tuples(st.just("change"), record_keys, changes),
    st.tuples(st.just("change"), record_keys, changes),
    st.tuples(st.just("read"), record_keys, st.sampled_from(list(DESCRIPTORS))),
    st.tuples(st.just("map get"), record_keys, map_keys),
    st.just(("cut",)),
    st.just(("relieve",)),
    st.just(("relieve",)),
    st.just(("remake",)),
    st.just(("crash",)),
)


@settings(max_examples=400)
@given(steps=st.lists(steps, max_size=40), keep=st.sampled_from([0, 1, 3, 1000]))
def test_states_are_what_a_dict_is(steps, keep):
    run_against_model(steps, keep)


@settings(max_examples=100)
@given(steps=st.lists(steps, max_size=40))
def test_long_lists_are_written_as_one(steps):
    before = list_state_module._MANY_CHUNKS
    list_state_module._MANY_CHUNKS = 1
    try:
        run_against_model(steps, 1000)
    finally:
        list_state_module._MANY_CHUNKS = before


@settings(max_examples=200)
@given(steps=st.lists(steps, max_size=40), keep=st.sampled_from([0, 3, 1000]))
def test_maps_that_are_not_small_are_what_a_dict_is(steps, keep):
    before = map_state_module._SMALL
    map_state_module._SMALL = map_state_module._ENTRY + 20  # one entry is, two are not
    try:
        run_against_model(steps, keep)
    finally:
        map_state_module._SMALL = before


def run_against_model(steps: list[tuple[Any, ...]], keep: int) -> None:
    subtask, model = Subtask(keep), Model()
    acknowledged = model.copy()
    for step in steps:
        if step[0] == "change":
            _, key, (name, *arguments) = step
            kind, _, verb = name.partition(".")
            getattr(subtask.at(key, DESCRIPTORS[kind]), verb)(*arguments)
            model.apply(key, step[2])
        elif step[0] == "read":
            model.check(subtask, *step[1:])
        elif step[0] == "map get":
            _, key, map_key = step
            expected = model.data.get(("map", key), {})
            assert subtask.at(key, MAP).get(map_key) == expected.get(map_key)
            assert subtask.at(key, MAP).contains(map_key) == (map_key in expected)
        elif step[0] == "relieve":
            subtask.relieve()
        elif step[0] == "cut":
            subtask.cut()
            acknowledged = model.copy()
        elif step[0] == "remake":  # the instance is dropped between epochs
            subtask.cut()
            subtask.remake()
            acknowledged = model.copy()
        else:  # what was not acknowledged is gone
            subtask.remake()
            model = acknowledged.copy()
    for key in (0, "a", ("a", 1), None):
        for kind in DESCRIPTORS:
            model.check(subtask, key, kind)
    subtask.cut()
    subtask.remake()
    for key in (0, "a", ("a", 1), None):
        for kind in DESCRIPTORS:
            model.check(subtask, key, kind)


# What is written


def test_an_epoch_writes_what_changed():
    subtask = Subtask()
    for key in range(100):
        subtask.at(key, VALUE).update(key)
    assert len(subtask.cut()) == 100
    subtask.at(7, VALUE).update(8)
    subtask.at(9, VALUE).value()
    (entry,) = subtask.cut()
    assert (entry.operator, entry.state, entry.key) == ("op", "value", encode_key(7))
    assert entry.key_group == key_group_of(encode_key(7), MOST)
    assert subtask.cut() == []


def test_appending_to_a_long_list_writes_what_was_added():
    subtask = Subtask()
    subtask.at("k", LIST).add_all(list(range(1000)))
    subtask.cut()
    subtask.at("k", LIST).add(7)
    (entry,) = subtask.cut()
    assert len(entry.value) < 10


def test_a_list_in_many_chunks_is_written_back_as_one_when_it_is_read():
    subtask = Subtask()
    for number in range(80):
        subtask.at("k", LIST).add(number)
        assert len(subtask.cut()) == 1
    assert len(list(subtask.store.scan(b""))) == 80
    assert list(subtask.at("k", LIST).get()) == list(range(80))
    subtask.cut()
    assert len(list(subtask.store.scan(b""))) == 1
    subtask.remake()
    assert list(subtask.at("k", LIST).get()) == list(range(80))
    assert subtask.cut() == []


def test_one_map_entry_is_read_and_written_alone():
    subtask = Subtask()
    subtask.at("k", MAP).put_all({str(n): n for n in range(50)})
    assert len(subtask.cut()) == 50
    subtask.remake()
    subtask.at("k", MAP).put("7", 70)
    (entry,) = subtask.cut()
    assert entry.map_key == encode_key("7")


def test_a_map_entry_that_comes_and_goes_in_an_epoch_leaves_no_trace():
    subtask = Subtask()
    subtask.at("k", MAP).put("stored", 1)
    subtask.cut()
    subtask.remake()
    counts = subtask.at("k", MAP)
    for name in ("a", "b", "c"):  # of the first only that it is not there is known, then all is
        assert counts.get(name) is None
        counts.put(name, 2)
        counts.remove(name)
        assert counts.get(name) is None
    counts.remove("never there")
    assert counts.changed_keys() == []
    assert subtask.cut() == []
    counts.remove("stored")
    (gone,) = subtask.cut()
    assert (gone.map_key, gone.value) == (encode_key("stored"), None)


def test_a_removed_map_entry_that_may_be_stored_is_written():
    subtask = Subtask()
    subtask.at("k", MAP).put("a", 1)
    subtask.cut()
    subtask.remake()
    subtask.at("k", MAP).put("a", 2)  # nobody has asked what was there
    subtask.at("k", MAP).remove("a")
    (gone,) = subtask.cut()
    assert (gone.map_key, gone.value) == (encode_key("a"), None)
    subtask.remake()
    assert not subtask.at("k", MAP).contains("a")


class CountingStore(MemoryStore):
    """Counts what it is asked."""

    gets = scanned = 0

    def get(self, key):
        self.gets += 1
        return super().get(key)

    def scan(self, prefix, start=b""):
        for found in super().scan(prefix, start):
            self.scanned += 1
            yield found


@pytest.mark.parametrize(("entries", "gets", "scanned"), [(0, 1, 0), (10, 1, 10), (500, 40, 16)])
def test_a_small_map_is_read_whole_when_it_is_asked_for_a_second_entry(entries, gets, scanned):
    subtask = Subtask()
    subtask.store = CountingStore()
    subtask.at("k", MAP).put_all({str(n): n for n in range(entries)})
    subtask.cut()
    subtask.remake()
    for number in range(40):
        expected = number if number < entries else None
        assert subtask.at("k", MAP).get(str(number)) == expected
    assert (subtask.store.gets, subtask.store.scanned) == (gets, scanned)


def test_nothing_is_read_from_the_store_while_keys_are_live():
    subtask = Subtask()
    subtask.at("k", VALUE).update(1)
    subtask.cut()
    subtask.store = None  # type: ignore[assignment]
    assert subtask.at("k", VALUE).value() == 1


def test_equal_keys_share_their_state():
    subtask = Subtask()
    subtask.at(1, VALUE).update(1)
    assert subtask.at(True, VALUE).value() == 1
    subtask.cut()
    subtask.remake()
    assert subtask.at(1.0, VALUE).value() == 1


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(("one", "other"), [(Level.LOW, 1), (Point(1, 2), (1, 2))])
def test_keys_of_other_classes_share_the_state_of_the_plain_key_they_are_equal_to(one, other):
    for first, second in ((one, other), (other, one)):
        subtask = Subtask()
        subtask.at(first, VALUE).update(1)
        assert subtask.at(second, VALUE).value() == 1
        subtask.cut()
        subtask.remake()
        assert subtask.at(second, VALUE).value() == 1


@pytest.mark.parametrize("key", [Level.LOW, Point(1, 2)])
def test_map_keys_come_back_in_their_class(key):
    subtask = Subtask()
    descriptor = MapStateDescriptor("anything")
    subtask.at("k", descriptor).put(key, 7)
    subtask.cut()
    subtask.remake()
    ((back, value),) = subtask.at("k", descriptor).items()
    assert (type(back), back, value) == (type(key), key, 7)
    assert subtask.at("k", descriptor).get(key) == 7


def test_a_key_of_another_subtask_is_refused():
    """It would be lost when the job is rescaled, or as soon as its record goes where it should."""
    group = key_group_of(encode_key("mine"), MOST)
    mine = Subtask(key_groups=(group, group))
    mine.at("mine", VALUE).update(1)
    assert len(mine.cut()) == 1
    for use in (
        lambda s: s.at("another", VALUE).value(),
        lambda s: s.at("another", VALUE).update(1),
        lambda s: s.at("another", MAP).get("a"),
        lambda s: s.at("another", MAP).put("a", 1),
        lambda s: s.at("another", LIST).get(),
        lambda s: s.at("another", LIST).add(1),
    ):
        mine.remake()
        with pytest.raises(InvalidKeyError, match=r"'another'.*must be deterministic"):
            use(mine)
            mine.cut()


def test_state_without_a_key_is_explained():
    subtask = Subtask(key_groups=(0, 0))
    with pytest.raises(InvalidKeyError, match=r"in open\(\) there is no key"):
        subtask.state.get(VALUE).value()


# What is held in memory


@pytest.mark.parametrize("enough", [True, False])
def test_more_is_kept_as_long_as_there_is_memory(
    enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = 100
    monkeypatch.setattr(
        "penstock.state.keyed_state.memory_in_use", lambda: memory if enough else memory + 1
    )
    subtask = Subtask(keep=3, memory=memory)
    for key in range(10):
        subtask.at(key, VALUE).update(key)
        subtask.relieve()
    assert bool(subtask.spilled) is not enough
    assert len(subtask.cut()) == 10
    assert subtask.in_memory == (10 if enough else 2)
    assert [subtask.at(key, VALUE).value() for key in range(10)] == list(range(10))


def test_many_changes_are_written_in_parts() -> None:
    """Else their bytes, in several forms at once, would take far more memory than they do."""
    subtask = Subtask(keep=3, memory=1 << 50)
    for key in range(25_000):
        subtask.at(key, VALUE).update(key)
    parts = list(subtask.state.in_parts(subtask.state.snapshot()))
    assert [len(part) for part in parts] == [10_000, 10_000, 5_000]
    assert subtask.in_memory == 25_000


@pytest.mark.parametrize("kind", ["value", "map", "list", "unseen"])
def test_keys_that_are_gone_are_not_kept(kind: str) -> None:
    descriptors = {
        "map": MapStateDescriptor("m", Types.INT(), Types.INT()),
        "list": ListStateDescriptor("l", Types.INT()),
    }
    subtask = Subtask(keep=100, memory=1 << 50)
    stays = subtask.at("stays", descriptors.get(kind, VALUE))
    {"map": lambda: stays.put(1, 1), "list": lambda: stays.add(1)}.get(
        kind, lambda: stays.update(1)
    )()
    most = 0
    for epoch in range(20):
        for number in range(50):
            state = subtask.at((epoch, number), descriptors.get(kind, VALUE))
            if kind == "unseen":
                assert state.value() is None
            elif kind == "map":
                state.put(1, 1)
            else:
                (state.add if kind == "list" else state.update)(1)
        if epoch % 2:
            subtask.cut()
            for number in range(50):
                for before in (epoch, epoch - 1):
                    subtask.at((before, number), descriptors.get(kind, VALUE)).clear()
        subtask.cut()
        most = max(most, subtask.in_memory)
    assert most <= 300
    left = subtask.at("stays", descriptors.get(kind, VALUE))
    assert {"map": lambda: left.get(1) == 1, "list": lambda: list(left.get()) == [1]}.get(
        kind, lambda: left.value() == 1
    )()


def test_a_large_map_of_one_key_is_spilled():
    subtask = Subtask(keep=50)
    for number in range(1000):
        subtask.at("k", MAP).put(str(number), number)
        if number % 10 == 0:
            subtask.relieve()
            assert subtask.in_memory <= 60
    assert subtask.spills > 10
    assert dict(subtask.at("k", MAP).items()) == {str(n): n for n in range(1000)}
    subtask.relieve()
    assert subtask.in_memory <= 60
    subtask.cut()
    subtask.remake()
    assert dict(subtask.at("k", MAP).items()) == {str(n): n for n in range(1000)}


def test_a_large_list_of_one_key_is_spilled():
    subtask = Subtask(keep=50)
    for number in range(1000):
        subtask.at("k", LIST).add(number)
        if number % 10 == 0:
            subtask.relieve()
            assert subtask.in_memory <= 60
    assert subtask.spills > 10
    assert list(subtask.at("k", LIST).get()) == list(range(1000))
    subtask.relieve()
    assert subtask.in_memory <= 60
    subtask.cut()
    subtask.remake()
    assert list(subtask.at("k", LIST).get()) == list(range(1000))


def read_value(subtask: Subtask, key: int) -> None:
    assert subtask.at(key, VALUE).value() in (None, key)


def read_map(subtask: Subtask, key: int) -> None:
    subtask.at(key, MAP).is_empty()
    assert subtask.at(key, MAP).get("a") in (None, key)


def read_map_entry(subtask: Subtask, key: int) -> None:
    assert subtask.at(0, MAP).get(str(key)) is None


def read_list(subtask: Subtask, key: int) -> None:
    assert list(subtask.at(key, LIST).get()) in ([], [key])


@pytest.mark.parametrize("read", [read_value, read_map, read_map_entry, read_list])
@pytest.mark.parametrize("stored", [True, False])
def test_what_is_only_read_is_dropped_within_an_epoch(read, stored):
    subtask = Subtask(keep=50)
    for key in range(1, 1000) if stored else ():
        subtask.at(key, VALUE).update(key)
        subtask.at(key, MAP).put("a", key)
        subtask.at(key, LIST).add(key)
    subtask.cut()
    subtask.remake()
    subtask.at(7, VALUE).update(7)
    for key in range(1, 1000):
        read(subtask, key)
        if key % 10 == 0:
            subtask.relieve()
            assert subtask.in_memory <= 61
    assert subtask.spills == 0
    assert [entry.state for entry in subtask.cut()] == ["value"]


def test_dropping_what_is_settled_loses_no_change():
    subtask = Subtask(keep=3)
    for number in range(3):
        subtask.at("k", MAP).put(str(number), number)
    subtask.at("k", LIST).update([1, 2])
    subtask.at("k", VALUE).update(1)
    subtask.cut()
    subtask.at("k", MAP).remove("0")
    subtask.at("k", MAP).put("1", 10)
    subtask.at("k", LIST).add(3)
    subtask.at("k", VALUE).clear()
    for key in range(20):
        subtask.at(key, VALUE).value()
        subtask.at(key, MAP).get("x")
        subtask.at(key, LIST).get()
    subtask.relieve()
    assert subtask.spills == 0
    assert dict(subtask.at("k", MAP).items()) == {"1": 10, "2": 2}
    assert list(subtask.at("k", LIST).get()) == [1, 2, 3]
    assert subtask.at("k", VALUE).value() is None


def test_reading_all_keys_holds_a_few_at_a_time():
    subtask = Subtask(keep=50)
    for key in range(1000):
        subtask.at(key, VALUE).update(key)
    subtask.cut()
    found = {}
    for key in subtask.state.all_keys("value"):
        found[key] = subtask.at(key, VALUE).value()
        assert subtask.in_memory <= 51
    assert found == {key: key for key in range(1000)}


# Names, types, errors


def test_the_same_descriptor_gives_the_same_state():
    subtask = Subtask()
    again = ValueStateDescriptor("value", Types.INT())
    assert subtask.at("k", VALUE) is subtask.at("k", again)
    with pytest.raises(StateError, match="'value' is declared twice"):
        subtask.at("k", ValueStateDescriptor("value", Types.STRING()))
    with pytest.raises(StateError, match="'value' is declared twice"):
        subtask.at("k", ListStateDescriptor("value", Types.INT()))


def test_kinds_and_types_are_told():
    subtask = Subtask()
    for descriptor in DESCRIPTORS.values():
        subtask.at("k", descriptor)
    types = subtask.state.types()
    kinds = {name: found["kind"] for name, found in types.items()}
    assert kinds == {
        "value": "value",
        "anything": "value",
        "list": "list",
        "map": "map",
        "sum": "reducing",
        "mean": "aggregating",
    }
    assert types["value"]["type"] == Types.INT().describe()


def lasting(descriptor: StateDescriptor, millis: int) -> StateDescriptor:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(millis).build())
    return descriptor


def read(state: Any) -> Any:
    if hasattr(state, "items"):
        return dict(state.items())
    return state.value() if hasattr(state, "value") else state.get()


MAKE = [
    pytest.param(lambda: ValueStateDescriptor("s", Types.INT()), "update", (3,), 3, id="value"),
    pytest.param(lambda: ListStateDescriptor("s", Types.INT()), "add", (3,), [3], id="list"),
    pytest.param(
        lambda: MapStateDescriptor("s", Types.INT(), Types.INT()), "put", (1, 3), {1: 3}, id="map"
    ),
    pytest.param(
        lambda: ReducingStateDescriptor("s", max, Types.INT()), "add", (3,), 3, id="reducing"
    ),
    pytest.param(lambda: AggregatingStateDescriptor("s", Mean()), "add", (3,), 3, id="aggregating"),
]


@pytest.mark.parametrize(("make", "method", "arguments", "held"), MAKE)
def test_a_time_to_live_begins_when_it_is_switched_on(make, method, arguments, held):
    subtask = Subtask()
    getattr(subtask.at("k", make()), method)(*arguments)
    subtask.cut()
    subtask.now += DAY
    subtask.remake()
    assert read(subtask.at("k", lasting(make(), 1000))) == held
    subtask.cut()
    subtask.remake()
    subtask.now += 999
    assert read(subtask.at("k", lasting(make(), 1000))) == held
    subtask.now += 1
    assert not read(subtask.at("k", lasting(make(), 1000)))


@pytest.mark.parametrize(("make", "method", "arguments", "held"), MAKE)
def test_nothing_expires_once_a_time_to_live_is_switched_off(make, method, arguments, held):
    subtask = Subtask()
    getattr(subtask.at("k", lasting(make(), 1000)), method)(*arguments)
    subtask.cut()
    subtask.now += DAY
    subtask.remake()
    assert read(subtask.at("k", make())) == held
    subtask.cut()
    subtask.remake()
    assert read(subtask.at("k", make())) == held


def test_how_long_a_time_to_live_is_may_change():
    subtask = Subtask()
    subtask.at("k", lasting(ValueStateDescriptor("s", Types.INT()), 1000)).update(3)
    subtask.cut()
    subtask.remake()
    subtask.now += 1500
    assert subtask.at("k", lasting(ValueStateDescriptor("s", Types.INT()), 2000)).value() == 3
    assert subtask.cut() == []


def test_only_states_whose_type_has_changed_are_rewritten():
    subtask = Subtask(keep=2)
    for key in range(5):
        subtask.at(key, VALUE).update(key)
        subtask.at(key, ANYTHING).update(key)
        subtask.at(key, LIST).add_all([key, 7])
    subtask.cut()
    subtask.remake()
    wider = ListStateDescriptor("list", Types.DOUBLE())
    subtask.at(0, VALUE).update(100)
    subtask.at(1, wider).add(0.5)
    subtask.at(2, wider).clear()
    subtask.relieve()
    assert {(entry.state, decode_key(entry.key)) for entry in subtask.cut()} == {
        ("value", 0),
        *(("list", key) for key in range(5)),
    }
    subtask.remake()
    found = [list(subtask.at(key, wider).get()) for key in range(5)]
    assert repr(found) == "[[0.0, 7.0], [1.0, 7.0, 0.5], [], [3.0, 7.0], [4.0, 7.0]]"


def test_a_value_that_cannot_be_converted_names_the_state():
    subtask = Subtask()
    subtask.at("k", VALUE).update(3)
    subtask.fill([entry._replace(value=b"\xa1x") for entry in subtask.cut()])
    subtask.remake()
    state = subtask.at("k", ValueStateDescriptor("value", Types.DOUBLE()))
    with pytest.raises(StateError, match="stored value of state 'value' cannot be read: ValueErr"):
        state.value()


def test_states_without_a_time_to_live_are_recorded_as_they_always_were():
    subtask = Subtask()
    subtask.at("k", ValueStateDescriptor("s", Types.INT()))
    assert subtask.state.types() == {"s": {"kind": "value", "type": Types.INT().describe()}}


@pytest.mark.parametrize(
    ("descriptor", "read"),
    [
        (ValueStateDescriptor("value"), lambda s: s.value()),
        (ListStateDescriptor("list"), lambda s: s.get()),
        (MapStateDescriptor("map"), lambda s: s.get("a")),
        (MapStateDescriptor("map"), lambda s: s.items()),
    ],
)
def test_a_stored_value_that_cannot_be_read_names_the_state(descriptor, read):
    subtask = Subtask()
    subtask.at("k", VALUE).update(255)
    subtask.at("k", LIST).add(255)
    subtask.at("k", MAP).put("a", 255)
    subtask.cut()
    subtask.recorded.clear()
    subtask.remake()
    name = descriptor.get_name()
    with pytest.raises(StateError, match=f"stored value of state '{name}' cannot be read"):
        read(subtask.at("k", descriptor))


def test_values_must_fit_their_type():
    subtask = Subtask()
    with pytest.raises(TypeMismatchError):
        subtask.at("k", VALUE).update("x")
    with pytest.raises(TypeMismatchError):
        subtask.at("k", LIST).add_all([1, "x"])
    with pytest.raises(TypeMismatchError):
        subtask.at("k", MAP).put(1, 1)
    with pytest.raises(TypeMismatchError):
        subtask.at("k", MAP).put("a", "x")
    assert subtask.cut() == []
    assert subtask.at("k", VALUE).value() is None
    assert list(subtask.at("k", LIST).get()) == []
    assert subtask.at("k", MAP).is_empty()


@pytest.mark.parametrize("add", [lambda s: s.add(None), lambda s: s.update([1, None])])
def test_lists_hold_no_none(add):
    with pytest.raises(InvalidArgumentError, match="'list' cannot hold None"):
        add(Subtask().at("k", LIST))


@pytest.mark.parametrize(
    ("descriptor", "change"),
    [
        (ANYTHING, lambda s, value: s.update(value)),
        (ListStateDescriptor("anything"), lambda s, value: s.add(value)),
        (MapStateDescriptor("anything"), lambda s, value: s.put("a", value)),
    ],
)
def test_what_cannot_be_pickled_names_the_state(descriptor, change):
    subtask = Subtask()
    change(subtask.at("k", descriptor), threading.Lock())
    with pytest.raises(StateError, match=r"state 'anything' cannot be stored: .*lock"):
        subtask.cut()


def test_map_keys_are_converted_wherever_they_are_given():
    descriptor = MapStateDescriptor("rows", Types.ROW([Types.INT(), Types.INT()]), Types.INT())
    subtask = Subtask()
    state = subtask.at("k", descriptor)
    state.put((1, 2), 3)
    state[(4, 5)] = 6
    assert state.get((1, 2)) == 3
    assert (4, 5) in state
    del state[(4, 5)]
    assert list(state.items()) == [(Row(f0=1, f1=2), 3)]


@pytest.mark.parametrize("key", [1.0, 2.5, "a"])
def test_typed_map_keys_come_back_in_their_type(key):
    type_info = Types.STRING() if isinstance(key, str) else Types.DOUBLE()
    subtask = Subtask()
    subtask.at("k", MapStateDescriptor("typed", type_info, Types.INT())).put(key, 1)
    subtask.cut()
    subtask.remake()
    state = subtask.at("k", MapStateDescriptor("typed", type_info, Types.INT()))
    assert [(type(k), k) for k in state.keys()] == [(type(key), key)]  # noqa: SIM118


def test_boolean_map_keys_are_still_equal_to_themselves():
    descriptor = MapStateDescriptor("flags", Types.BOOLEAN(), Types.INT())
    subtask = Subtask()
    subtask.at("k", descriptor).put_all({True: 1, False: 0})
    subtask.cut()
    subtask.remake()
    assert dict(subtask.at("k", descriptor).items()) == {True: 1, False: 0}
    assert subtask.at("k", descriptor).get(True) == 1


def test_maps_may_hold_none():
    descriptor = MapStateDescriptor("anything")
    subtask = Subtask()
    subtask.at("k", descriptor).put("a", None)
    for _ in range(2):
        assert subtask.at("k", descriptor).contains("a")
        assert list(subtask.at("k", descriptor).items()) == [("a", None)]
        subtask.cut()
        subtask.remake()


def test_all_keys_are_those_of_the_store_and_of_the_epoch():
    subtask = Subtask()
    for key in (1, 2, "a"):
        subtask.at(key, VALUE).update(0)
    subtask.cut()
    subtask.remake()
    subtask.at(2, VALUE).update(5)
    subtask.at(("new",), VALUE).update(5)
    found = list(subtask.state.all_keys("value"))
    assert len(found) == 4
    assert set(found) == {1, 2, "a", ("new",)}


# Time to live

TTL = 1000


def expiring(descriptor: StateDescriptor, *settings: str) -> Any:
    builder = StateTtlConfig.new_builder(TTL)
    for name in settings:
        getattr(builder, name)()
    descriptor.enable_time_to_live(builder.build())
    return descriptor


READ, SHOW, NO_SWEEP = (
    "update_ttl_on_read_and_write",
    "return_expired_if_not_cleaned_up",
    "disable_cleanup_in_background",
)


def value_at(subtask: Subtask, descriptor: Any, now: int) -> Any:
    subtask.now = DAY + now
    return subtask.at("k", descriptor).value()


@pytest.fixture(params=["live", "remade"])
def between(request):
    """What happens between two accesses: nothing, or an epoch's end and a new instance."""

    def step(subtask: Subtask) -> None:
        if request.param == "remade":
            subtask.cut()
            subtask.remake()

    return step


def test_a_value_lives_until_its_time_since_the_last_write(between):
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()), NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    between(subtask)
    assert value_at(subtask, descriptor, 999) == 1
    between(subtask)
    assert value_at(subtask, descriptor, 1000) is None
    subtask.at("k", descriptor).update(2)
    between(subtask)
    assert value_at(subtask, descriptor, 1999) == 2


def test_reading_may_renew(between):
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()), READ, NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    for now in (900, 1800, 2700):
        between(subtask)
        assert value_at(subtask, descriptor, now) == 1
    between(subtask)
    assert value_at(subtask, descriptor, 3700) is None


def test_an_expired_value_may_be_seen_once(between):
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()), SHOW, NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    between(subtask)
    assert value_at(subtask, descriptor, 5000) == 1
    between(subtask)
    assert value_at(subtask, descriptor, 5000) is None


def test_an_expired_value_that_was_met_is_removed_from_the_store():
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()), NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    subtask.cut()
    value_at(subtask, descriptor, 1000)
    subtask.cut()
    assert list(subtask.store.scan(b"")) == []


def test_clear_and_none_remove_values_with_a_lifetime(between):
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()))
    subtask = Subtask()
    for remove in (lambda s: s.clear(), lambda s: s.update(None)):
        subtask.at("k", descriptor).update(1)
        between(subtask)
        remove(subtask.at("k", descriptor))
        between(subtask)
        assert subtask.at("k", descriptor).value() is None


def test_sums_and_means_expire(between):
    total = expiring(ReducingStateDescriptor("s", lambda a, b: a + b, Types.INT()))
    mean = expiring(AggregatingStateDescriptor("m", Mean()))
    subtask = Subtask()
    for now, expected in ((0, 4), (900, 8), (1800, 12), (2800, 4)):
        subtask.now = DAY + now
        subtask.at("k", total).add(4)
        subtask.at("k", mean).add(now)
        between(subtask)
        assert subtask.at("k", total).get() == expected
    assert subtask.at("k", mean).get() == 2800


def test_list_elements_expire_one_by_one(between):
    descriptor = expiring(ListStateDescriptor("l", Types.INT()), NO_SWEEP)
    subtask = Subtask()
    for element in (0, 400, 800):
        subtask.now = DAY + element
        subtask.at("k", descriptor).add(element)
        between(subtask)
    for now, expected in ((999, [0, 400, 800]), (1000, [400, 800]), (1799, [800]), (1800, [])):
        subtask.now = DAY + now
        assert list(subtask.at("k", descriptor).get()) == expected
        between(subtask)
    subtask.cut()
    assert list(subtask.store.scan(b"")) == []


def test_reading_a_list_may_renew_it(between):
    descriptor = expiring(ListStateDescriptor("l", Types.INT()), READ)
    subtask = Subtask()
    subtask.at("k", descriptor).add_all([1, 2])
    for now, expected in ((900, [1, 2]), (1800, [1, 2]), (2800, [])):
        between(subtask)
        subtask.now = DAY + now
        assert list(subtask.at("k", descriptor).get()) == expected


def test_expired_elements_may_be_seen_once(between):
    descriptor = expiring(ListStateDescriptor("l", Types.INT()), SHOW)
    subtask = Subtask()
    subtask.at("k", descriptor).add(1)
    subtask.now += 500
    subtask.at("k", descriptor).add(2)
    subtask.now += 500
    between(subtask)
    assert list(subtask.at("k", descriptor).get()) == [1, 2]
    between(subtask)
    assert list(subtask.at("k", descriptor).get()) == [2]


def test_map_entries_expire_one_by_one(between):
    descriptor = expiring(MapStateDescriptor("m", Types.STRING(), Types.INT()), NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).put("a", 1)
    subtask.now += 500
    subtask.at("k", descriptor).put("b", 2)
    between(subtask)
    subtask.now += 500
    assert list(subtask.at("k", descriptor).items()) == [("b", 2)]
    assert not subtask.at("k", descriptor).contains("a")
    assert subtask.at("k", descriptor).get("a") is None
    between(subtask)
    subtask.now += 500
    assert subtask.at("k", descriptor).is_empty()
    subtask.cut()
    assert list(subtask.store.scan(b"")) == []


def test_reading_a_map_entry_renews_that_entry(between):
    descriptor = expiring(MapStateDescriptor("m", Types.STRING(), Types.INT()), READ)
    subtask = Subtask()
    subtask.at("k", descriptor).put_all({"a": 1, "b": 2})
    between(subtask)
    subtask.now += 900
    assert subtask.at("k", descriptor).get("a") == 1
    between(subtask)
    subtask.now += 900
    assert dict(subtask.at("k", descriptor).items()) == {"a": 1}


def test_expired_map_entries_may_be_seen_once(between):
    descriptor = expiring(MapStateDescriptor("m", Types.STRING(), Types.INT()), SHOW, NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).put("a", 1)
    between(subtask)
    subtask.now += 2000
    assert subtask.at("k", descriptor).get("a") == 1
    between(subtask)
    assert subtask.at("k", descriptor).get("a") is None


def test_the_sweep_removes_what_nobody_reads():
    value = expiring(ValueStateDescriptor("v", Types.INT()))
    map_ = expiring(MapStateDescriptor("m", Types.STRING(), Types.INT()))
    subtask = Subtask()
    for key in range(20):
        subtask.at(key, value).update(key)
        subtask.at(key, map_).put_all({"a": 1, "b": 2})
    subtask.cut()
    subtask.now += 500
    subtask.at(3, value).update(33)
    subtask.at(3, map_).put("b", 22)
    subtask.cut()
    subtask.now += 500
    subtask.cut()
    assert len(list(subtask.store.scan(b""))) == 2
    subtask.remake()
    assert subtask.at(3, value).value() == 33
    assert dict(subtask.at(3, map_).items()) == {"b": 22}


def test_the_sweep_does_not_remove_what_was_written_in_its_epoch():
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()))
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    subtask.cut()
    subtask.now += 5000
    subtask.at("k", descriptor).update(2)
    subtask.cut()
    subtask.remake()
    assert subtask.at("k", descriptor).value() == 2


def test_the_sweep_goes_on_where_it_ended(monkeypatch):
    monkeypatch.setattr(keyed_state_module, "_SWEEP", 7)
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()))
    subtask = Subtask()
    for key in range(20):
        subtask.at(key, descriptor).update(key)
    subtask.cut()
    subtask.now += 999  # nothing has expired: this sweep removes nothing but moves on
    assert subtask.cut() == []
    subtask.now += 1
    left = []
    for _ in range(5):
        subtask.cut()
        left.append(len(list(subtask.store.scan(b""))))
    assert left[0] == 13
    assert left[-1] == 0


@pytest.mark.parametrize("groups", [MOST, 16, 1])
def test_new_instances_sweep_what_others_have_not_seen(monkeypatch, groups):
    """Wherever the entries that live on lie: here they are the first ones, which the sweep of a
    new instance would meet again and again if it began at them."""
    monkeypatch.setattr(keyed_state_module, "_SWEEP", 50)
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()))
    numbers = [n for n in range(40_000) if key_group_of(encode_key(n), MOST) < groups][:300]
    subtask = Subtask(key_groups=(0, groups - 1))
    for number in numbers:
        subtask.at(number, descriptor).update(number)
    subtask.cut()
    subtask.now += 500
    first = [decode_key(unpack_key(packed).key) for packed, _ in subtask.store.scan(b"")]
    first = first[: len(first) // 4]
    for number in first:
        subtask.at(number, descriptor).update(number)
    subtask.cut()
    subtask.now += 500
    for _ in range(100):
        subtask.remake()
        subtask.state.get(descriptor)
        subtask.cut()
    left = [decode_key(unpack_key(packed).key) for packed, _ in subtask.store.scan(b"")]
    assert left == first


def test_a_sweep_removes_no_more_than_its_share(monkeypatch):
    monkeypatch.setattr(keyed_state_module, "_SWEEP", 5)
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()))
    numbers = [n for n in range(4000) if key_group_of(encode_key(n), MOST) == 3]
    subtask = Subtask(key_groups=(3, 3))
    for number in numbers:
        subtask.at(number, descriptor).update(number)
    subtask.cut()
    subtask.now += 1000
    left = len(numbers)
    while left:
        assert len(subtask.cut()) == min(5, left)
        left -= min(5, left)
    assert subtask.cut() == []


def test_without_cleanup_in_the_background_nothing_is_swept():
    descriptor = expiring(ValueStateDescriptor("v", Types.INT()), NO_SWEEP)
    subtask = Subtask()
    subtask.at("k", descriptor).update(1)
    subtask.cut()
    subtask.now += 5000
    assert subtask.cut() == []


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "read", "cut", "remake"]), st.integers(0, 700)),
        max_size=25,
    ),
    renew=st.booleans(),
)
def test_lists_and_values_with_a_lifetime_against_a_model(steps, renew):
    options = (READ,) if renew else ()
    value = expiring(ValueStateDescriptor("v", Types.INT()), *options)
    elements = expiring(ListStateDescriptor("l", Types.INT()), *options)
    subtask = Subtask()
    model_value: tuple[int, int] | None = None  # what, when
    model_list: list[tuple[int, int]] = []
    for number, (step, passed) in enumerate(steps):
        subtask.now += passed
        now = subtask.now
        if step == "add":
            subtask.at("k", value).update(number)
            subtask.at("k", elements).add(number)
            model_value = (number, now)
            model_list.append((number, now))
        elif step == "read":
            model_list = [(n, now if renew else at) for n, at in model_list if now - at < TTL]
            if model_value is not None and now - model_value[1] >= TTL:
                model_value = None
            if model_value is not None and renew:
                model_value = (model_value[0], now)
            assert list(subtask.at("k", elements).get()) == [n for n, _ in model_list]
            assert subtask.at("k", value).value() == (model_value and model_value[0])
        else:
            subtask.cut()
            if step == "remake":
                subtask.remake()


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.FLOAT(), 0.1),
        (Types.TUPLE([Types.FLOAT()]), (0.1,)),
        (Types.MAP(Types.STRING(), Types.LIST(Types.FLOAT())), {"a": [0.1]}),
        (Types.ROW([Types.FLOAT()]), Row(f0=0.1)),
    ],
)
def test_a_float_keeps_its_bits(type_info: TypeInformation, value: Any) -> None:
    """As it does in PyFlink as long as the worker remembers it."""
    subtask = Subtask()
    descriptor = ValueStateDescriptor("exact", type_info)
    subtask.at("k", descriptor).update(value)
    assert subtask.at("k", descriptor).value() == value
