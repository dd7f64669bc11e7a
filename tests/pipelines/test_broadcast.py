"""Row E3: broadcast state, changed by broadcast records and read beside the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import CheckpointMismatchError, InvalidProgramError, StateError
from penstock.testing import ScriptedSource

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names")
ABOVE = OutputTag("above")
BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(0).with_timestamp_assigner(
    lambda record, _: record[1]
)


class Judge(BroadcastProcessFunction):
    """Readings (sensor, value) against limits (sensor, limit); None takes a limit back."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        limit = limits.get(value[0])
        if limit is not None and value[1] > limit:
            yield ABOVE, (*value, limit)
        yield (*value, sorted(limits))

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        sensor, limit = value
        if limit is None:
            limits.remove(sensor)
        else:
            limits[sensor] = limit
            ctx.get_broadcast_state(NAMES).put(len(list(limits.keys())), sensor)
        yield "limits", dict(limits.items()), dict(ctx.get_broadcast_state(NAMES).items())


def scripted(env: StreamExecutionEnvironment, script: Any, uid: str, strategy: Any = None) -> Any:
    # In one subtask: another would have no records, and hold the watermark back.
    return env.from_source(ScriptedSource(script), strategy, uid).set_parallelism(1).uid(uid)


# In each epoch the limits come first, since their source was made first.
CHANGES = [[("a", 10)], [("b", 5), ("a", 20)], [("b", None)], []]
READINGS = [
    [("a", 11), ("b", 7)],
    [("a", 15), ("b", 6)],
    [("b", 9), ("a", 21)],
    [("a", 30)],
]
JUDGED = [
    ("a", 11, ["a"]),
    ("a", 15, ["a", "b"]),
    ("a", 21, ["a"]),
    ("a", 30, ["a"]),
    ("b", 6, ["a", "b"]),
    ("b", 7, ["a"]),
    ("b", 9, ["a"]),
]
TOO_HIGH = [("a", 11, 10), ("a", 21, 20), ("a", 30, 20), ("b", 6, 5)]


def judged(env: StreamExecutionEnvironment, changes: Any, readings: Any) -> tuple[Any, Any]:
    limits = scripted(env, changes, "limits").broadcast(LIMITS, NAMES)
    main = scripted(env, readings, "readings").connect(limits).process(Judge()).uid("judge")
    return main, main.get_side_output(ABOVE).map(lambda found: ("above", *found))


def test_every_subtask_has_the_state(env: StreamExecutionEnvironment) -> None:
    main, above = judged(env, CHANGES, READINGS)

    found = list(main.union(above).execute_and_collect())

    assert sorted(r for r in found if r[0] in "ab") == JUDGED
    assert sorted(r[1:] for r in found if r[0] == "above") == TOO_HIGH
    seen = [r[1:] for r in found if r[0] == "limits"]
    each_subtask = [
        ({"a": 10}, {1: "a"}),
        ({"a": 10, "b": 5}, {1: "a", 2: "b"}),
        ({"a": 20, "b": 5}, {1: "a", 2: "a"}),
        ({"a": 20}, {1: "a", 2: "a"}),
    ]
    assert sorted(seen, key=repr) == sorted(each_subtask * 2, key=repr)


@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_it_outlives_a_failure(make_env: Any, where: int) -> None:
    """In whichever epoch the failure is."""
    readings = [list(epoch) for epoch in READINGS]
    readings[where].append(ScriptedSource.FAIL)

    main, above = judged(make_env(RESTARTS), CHANGES, readings)
    found = list(main.union(above).execute_and_collect())

    assert sorted(r for r in found if r[0] in "ab") == JUDGED
    assert sorted(r[1:] for r in found if r[0] == "above") == TOO_HIGH


def half_way(env: StreamExecutionEnvironment, fails: bool, descriptor: Any = LIMITS) -> Any:
    """Twenty limits in the first epochs, then readings that need all of them."""

    class Lookup(BroadcastProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._here = runtime_context.get_index_of_this_subtask()

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            limits = ctx.get_broadcast_state(descriptor)
            yield value, self._here, sorted(limits.items())

        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            ctx.get_broadcast_state(descriptor).put(*value)

    def check(value: int) -> int:
        if fails and value >= 280:
            raise RuntimeError("half-way")
        return value

    limits = env.from_collection([(f"s{n}", n) for n in range(20)]).uid("limits")
    readings = env.from_sequence(0, 299).uid("readings").map(check).uid("check")
    return readings.rebalance().connect(limits.broadcast(descriptor)).process(Lookup()).uid("look")


ALL_LIMITS = sorted((f"s{n}", n) for n in range(20))


@pytest.mark.parametrize(("before", "after"), [("2", "3"), ("3", "1"), ("2", "2")])
def test_other_parallelism(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    """Every new subtask has a copy; so has one whose old copy was another's."""
    first, _ = collect_until_error(half_way(restartable_env({"parallelism.default": before}), True))
    env = restartable_env({"parallelism.default": after})
    second = list(half_way(env, False).execute_and_collect())

    assert first
    assert {value for value, _, _ in first}.isdisjoint(value for value, _, _ in second)
    assert len(first) + len(second) == 300
    assert {where for _, where, _ in second} == set(range(int(after)))
    assert all(limits == ALL_LIMITS for _, _, limits in second)


def test_a_changed_type_is_refused(restartable_env: Any, collect_until_error: Any) -> None:
    collect_until_error(half_way(restartable_env(), True))
    other = MapStateDescriptor("limits", Types.STRING(), Types.STRING())
    with pytest.raises(CheckpointMismatchError, match=r"state 'limits'.*was stored as broadcast"):
        list(half_way(restartable_env(), False, other).execute_and_collect())


def test_state_without_its_operator_is_refused(
    restartable_env: Any, collect_until_error: Any
) -> None:
    collect_until_error(half_way(restartable_env(), True))
    stream = half_way(restartable_env(), False).uid("another")
    with pytest.raises(CheckpointMismatchError, match="- look: operator state"):
        list(stream.execute_and_collect())


class Meddle(BroadcastProcessFunction):
    def __init__(self, meddle: Callable[[Any], Any]) -> None:
        self._meddle = meddle

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        assert not hasattr(limits, "put")
        self._meddle(limits)
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(LIMITS).put(*value)


def test_the_data_side_cannot_change_it(env: StreamExecutionEnvironment) -> None:
    limits = env.from_elements(("a", 1)).broadcast(LIMITS)
    meddling = Meddle(lambda limits: limits.put("a", 1))
    stream = env.from_elements(1).connect(limits).process(meddling).name("meddle")
    with pytest.raises(StateError, match=r"'meddle'.*'limits' can only be read here"):
        list(stream.execute_and_collect())


def test_undeclared_state_is_refused(env: StreamExecutionEnvironment) -> None:
    limits = env.from_elements(("a", 1)).broadcast(NAMES)
    stream = env.from_elements(1).connect(limits).process(Meddle(str))
    with pytest.raises(StateError, match=r"no broadcast state .*'limits'.*was given .*'names'"):
        list(stream.execute_and_collect())


# Beside a keyed stream

COUNT = ValueStateDescriptor("count", Types.INT())
RECENT = ListStateDescriptor("recent")
BY_VALUE = MapStateDescriptor("by value")
TOTAL = ReducingStateDescriptor("total", lambda a, b: a + b)


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


MEAN = AggregatingStateDescriptor("mean", Mean())


class Gather(KeyedBroadcastProcessFunction):
    """Readings (sensor, value) in every kind of state; commands "show" and "forget"."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(COUNT)
        self._recent = runtime_context.get_list_state(RECENT)
        self._by_value = runtime_context.get_map_state(BY_VALUE)
        self._total = runtime_context.get_reducing_state(TOTAL)
        self._mean = runtime_context.get_aggregating_state(MEAN)

    def process_element(self, value: Any, ctx: Any) -> None:
        assert ctx.get_current_key() == value[0]
        self._count.update((self._count.value() or 0) + 1)
        self._recent.add(value[1])
        self._by_value.put(value[1], True)
        self._by_value.put(-value[1], False)
        self._total.add(value[1])
        self._mean.add(value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        command, *names = value
        shown: dict[str, dict[Any, Any]] = {}
        for descriptor in (COUNT, RECENT, BY_VALUE, TOTAL, MEAN):
            found = shown[descriptor.get_name()] = {}
            ctx.apply_to_keyed_state(descriptor, lambda key, state, f=found: f.update({key: state}))
            for key in found:
                found[key] = None
        if command == "forget":

            def forget(key: Any, state: Any) -> None:
                if key in names:
                    state.clear()

            for descriptor in (COUNT, RECENT, BY_VALUE, TOTAL, MEAN):
                ctx.apply_to_keyed_state(descriptor, forget)
        else:
            ctx.apply_to_keyed_state(COUNT, lambda k, s: shown["count"].update({k: s.value()}))
            ctx.apply_to_keyed_state(
                RECENT, lambda k, s: shown["recent"].update({k: list(s.get())})
            )
            ctx.apply_to_keyed_state(
                BY_VALUE, lambda k, s: shown["by value"].update({k: sorted(s.items())})
            )
            ctx.apply_to_keyed_state(TOTAL, lambda k, s: shown["total"].update({k: s.get()}))
            ctx.apply_to_keyed_state(MEAN, lambda k, s: shown["mean"].update({k: s.get()}))
            yield shown


NOTHING = MapStateDescriptor("nothing")


def shown(env: StreamExecutionEnvironment, readings: Any, commands: Any) -> dict[str, Any]:
    """What all subtasks together showed, which must have no key in common."""
    stream = scripted(env, readings, "readings").key_by(0)
    told = scripted(env, commands, "commands").broadcast(NOTHING)
    together: dict[str, Any] = {}
    for one in stream.connect(told).process(Gather()).uid("gather").execute_and_collect():
        for name, found in one.items():
            assert not together.get(name, {}).keys() & found.keys()
            together.setdefault(name, {}).update(found)
    return together


def expected(values: dict[str, list[int]]) -> dict[str, Any]:
    return {
        "count": {key: len(found) for key, found in values.items()},
        "recent": values,
        "by value": {
            key: sorted([(v, True) for v in found] + [(-v, False) for v in found])
            for key, found in values.items()
        },
        "total": {key: sum(found) for key, found in values.items()},
        "mean": {key: sum(found) / len(found) for key, found in values.items()},
    }


def test_apply_to_all_keys(env: StreamExecutionEnvironment) -> None:
    """To those stored by earlier epochs, and those only in memory; not to removed ones."""
    readings = [[(f"k{n}", n) for n in range(1, 9)], [("k1", 100), ("new", 5)], [("newer", 6)]]
    commands = [[], [("forget", "k2", "new")], [("show",)]]

    values = {f"k{n}": [n] for n in (1, 3, 4, 5, 6, 7, 8)}
    values["k1"].append(100)
    values["newer"] = [6]
    assert shown(env, readings, commands) == expected(values)


def test_apply_to_more_keys_than_memory_holds(make_env: Any) -> None:
    """With a cache of few entries, changes are written while they are made."""
    env = make_env({"penstock.state.cache-entries": "16"})
    readings = [[(f"k{n}", n) for n in range(1, 301)], [("k7", 7)], []]
    gone = [f"k{n}" for n in range(1, 301, 2)]
    commands = [[], [("forget", *gone)], [("show",)]]

    values = {f"k{n}": [n] for n in range(2, 301, 2)}
    assert shown(env, readings, commands) == expected(values)


def test_apply_after_a_failure(make_env: Any) -> None:
    env = make_env(RESTARTS)
    readings = [[("a", 1), ("b", 2)], [("c", 3)], [("d", 4), ScriptedSource.FAIL]]
    commands = [[], [("forget", "a")], [("show",)]]

    assert shown(env, readings, commands) == expected({"b": [2], "c": [3], "d": [4]})


class Remind(KeyedBroadcastProcessFunction):
    """Readings (sensor, time); after a while, which is broadcast, the sensor is reported."""

    def process_element(self, value: Any, ctx: Any) -> None:
        patience = ctx.get_broadcast_state(LIMITS).get("patience")
        ctx.timer_service().register_event_time_timer(value[1] + patience)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(LIMITS).put(value[0], value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(LIMITS)
        assert not hasattr(limits, "put")
        yield ctx.get_current_key(), timestamp, limits.get("patience")


def reminded(env: StreamExecutionEnvironment, readings: Any) -> list[Any]:
    script = [[("patience", 0, 100)], [("patience", 1000, 500)], [("clock", 5000, 0)]]
    limits = scripted(env, script, "limits", BY_TIME).broadcast(LIMITS)
    stream = scripted(env, readings, "readings", BY_TIME).key_by(0).connect(limits)
    return sorted(stream.process(Remind()).uid("remind").execute_and_collect())


# Timers of the first epoch's readings fire in the second, after the longer patience has come.
REMINDERS = [("a", 110, 500), ("a", 1400, 500), ("b", 120, 500), ("b", 1600, 500)]


def test_timers_beside_broadcast_state(env: StreamExecutionEnvironment) -> None:
    readings = [[("a", 10), ("b", 20)], [("a", 900), ("b", 1100)], []]
    assert reminded(env, readings) == REMINDERS


def test_timers_and_broadcast_state_outlive_a_failure(make_env: Any) -> None:
    fail = ScriptedSource.FAIL
    readings = [[("a", 10), ("b", 20)], [fail, ("a", 900), ("b", 1100)], [fail]]
    assert reminded(make_env(RESTARTS), readings) == REMINDERS


def test_no_event_time_order_beside_a_broadcast_stream(env: StreamExecutionEnvironment) -> None:
    """Its records have no key under which they could wait."""
    limits = scripted(env, [[("patience", 0, 100)]], "limits", BY_TIME).broadcast(LIMITS)
    keyed = scripted(env, [[("a", 10)]], "readings", BY_TIME).key_by(0).in_event_time_order()
    with pytest.raises(InvalidProgramError, match=r"inputs has no keys \(a broadcast stream"):
        list(keyed.connect(limits).process(Remind()).execute_and_collect())


class WithoutKey(KeyedBroadcastProcessFunction):
    """Uses state of a key on the broadcast side."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> None:
        self._count.update(1)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self._count.update(2)


def test_broadcast_records_have_no_key(env: StreamExecutionEnvironment) -> None:
    data = env.from_elements("a")
    told = env.from_elements(1).broadcast(NOTHING)
    stream = data.key_by(lambda v: v).connect(told).process(WithoutKey()).name("careless")
    with pytest.raises(StateError, match=r"'careless'.*there is no current key here"):
        list(stream.execute_and_collect())


class AppliesFromTheDataSide(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.apply_to_keyed_state(COUNT, lambda key, state: None)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None: ...


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_only_the_broadcast_side_goes_over_all_keys(env: StreamExecutionEnvironment) -> None:
    told = env.from_elements(1).broadcast(NOTHING)
    data = env.from_elements("a").key_by(lambda v: v).connect(told)
    stream = data.process(AppliesFromTheDataSide()).name("careless")
    with pytest.raises(StateError, match=r"'careless'.*only process_broadcast_element may"):
        list(stream.execute_and_collect())
