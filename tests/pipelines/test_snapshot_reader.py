"""What a snapshot holds, read without the program: every kind of state, from a job that died."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from penstock.common import Duration, Row, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidArgumentError
from penstock.state.snapshot_diff import changes, diff
from penstock.state.snapshot_export import export
from penstock.state.snapshot_reader import StateInfo, rows_of, states_of
from penstock.state.stored_keys import EnumMember, KeyObject
from penstock.state.stored_states import StoredWindow
from penstock.state.stored_values import Pickled
from penstock.storage.snapshot import Snapshot, open_snapshot

pytestmark = pytest.mark.parametrize("executor", ["local"], indirect=True)

KEYS = 7
GOOD = 60
"""Records before the one that the job dies of; they come ten to an epoch."""
DAY = timedelta(days=1)


@dataclass
class Visit:
    page: str
    seconds: float
    tags: list[str]


class Seen(NamedTuple):
    first: int
    last: int


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: int, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]


def _expiring(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(DAY).build())
    return descriptor


class Everything(KeyedProcessFunction):
    """Keeps one state of each kind."""

    def open(self, runtime_context: RuntimeContext) -> None:
        c = runtime_context
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.last = c.get_state(ValueStateDescriptor("last", Types.DATACLASS(Visit)))
        self.seen = c.get_state(ValueStateDescriptor("seen", Types.NAMED_TUPLE(Seen)))
        self.any = c.get_state(ValueStateDescriptor("any"))
        self.history = c.get_list_state(ListStateDescriptor("history", Types.LONG()))
        self.parities = c.get_map_state(
            MapStateDescriptor("parities", Types.STRING(), Types.LONG())
        )
        self.sum = c.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        )
        self.mean = c.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), pair))
        self.short = c.get_state(_expiring(ValueStateDescriptor("short", Types.LONG())))
        self.few = c.get_list_state(_expiring(ListStateDescriptor("few", Types.LONG())))
        self.gone = c.get_map_state(MapStateDescriptor("gone", Types.LONG(), Types.LONG()))

    def process_element(self, n: int, ctx: Any) -> Iterator[Any]:
        self.last.update(Visit(f"/{n}", n / 2, ["a"] * (n % 3)))
        before = self.seen.value()
        self.seen.update(Seen(n if before is None else before.first, n))
        self.any.update({"n": n})
        self.history.add(n)
        self.parities.put("even" if n % 2 == 0 else "odd", n)
        self.sum.add(n)
        self.mean.add(n)
        self.short.update(n)
        self.few.add(n)
        self.gone.put(n, n)
        if n >= 3 * KEYS:
            self.gone.remove(n - 3 * KEYS)
        ctx.timer_service().register_event_time_timer(1_000_000 + n)
        yield n

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield timestamp


class Remembering(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.state = store.get_list_state(ListStateDescriptor("numbers", Types.LONG()))

    def snapshot_state(self, context: Any) -> None:
        pass

    def map(self, value: int) -> int:
        if value >= GOOD:
            raise RuntimeError("here it dies")
        self.state.add(value)
        return value


class InMillis(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value) * 100


def _numbers(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(range(GOOD + 1), Types.LONG()).uid("numbers")
    marks = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_days(1)
    ).with_timestamp_assigner(InMillis())
    stream = numbers.map(Remembering(), Types.LONG()).uid("remembering").set_parallelism(1)
    return stream.assign_timestamps_and_watermarks(marks).set_parallelism(1)


@pytest.fixture
def snapshot(restartable_env: Any, collect_until_error: Any, tmp_path: Path) -> Any:
    """Runs a job until it dies, and opens what it has left."""

    def run(build: Any, **settings: str) -> Snapshot:
        numbers = _numbers(restartable_env({"penstock.state.max-segments": "3", **settings}))
        collect_until_error(build(numbers))
        return open_snapshot(str(tmp_path / "checkpoints" / "job"))

    return run


def _everything(numbers: DataStream) -> DataStream:
    return numbers.key_by(lambda n: f"key {n % KEYS}").process(Everything()).uid("all")


def _by_key() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for n in range(GOOD):
        found.setdefault(f"key {n % KEYS}", []).append(n)
    return found


def test_every_kind_of_keyed_state(snapshot: Any) -> None:
    found = snapshot(_everything)

    def values(state: str) -> dict[Any, Any]:
        return {row.key: row.value for row in rows_of(found, "all", state)}

    each = _by_key()
    lasts = {key: ns[-1] for key, ns in each.items()}
    assert values("last") == {
        key: {"page": f"/{n}", "seconds": n / 2, "tags": ["a"] * (n % 3)}
        for key, n in lasts.items()
    }
    assert values("seen") == {key: {"first": ns[0], "last": ns[-1]} for key, ns in each.items()}
    assert values("history") == each
    assert values("sum") == {key: sum(ns) for key, ns in each.items()}
    assert values("mean") == {key: (sum(ns), len(ns)) for key, ns in each.items()}
    assert values("short") == lasts
    assert values("few") == each

    entries = {(row.key, row.map_key): row.value for row in rows_of(found, "all", "parities")}
    assert entries == {
        (key, "even" if n % 2 == 0 else "odd"): n for key, ns in each.items() for n in ns
    }
    # Each key's three newest: the others were removed, in later files than they were put.
    kept = Counter(row.key for row in rows_of(found, "all", "gone"))
    assert kept == {key: min(3, len(ns)) for key, ns in each.items()}
    timers = {(row.key, row.time) for row in rows_of(found, "all", "_event_timers")}
    assert timers == {(key, 1_000_000 + n) for key, ns in each.items() for n in ns}


def test_stamps_of_a_time_to_live(snapshot: Any) -> None:
    found = snapshot(_everything)
    (value,) = rows_of(found, "all", "short", key="key 3")
    (elements,) = rows_of(found, "all", "few", key="key 3")
    assert value.last_used > 1_600_000_000_000
    assert len(elements.last_used) == len(elements.value)
    assert elements.last_used[-1] == value.last_used


def test_states_are_listed(snapshot: Any) -> None:
    found = snapshot(_everything)
    listed = {(info.operator, info.state): info for info in states_of(found)}
    history = listed["all", "history"]
    assert history == StateInfo("all", "history", "list", "List[Long]", KEYS, history.bytes)
    assert history.bytes > GOOD * 5
    assert listed["all", "short"].expiring
    kinds = {(uid, state): (info.kind, info.type) for (uid, state), info in listed.items()}
    assert kinds["all", "last"] == (
        "value",
        "Visit(page: String, seconds: Double, tags: List[String])",
    )
    assert kinds["all", "parities"] == ("map", "Map[String, Long]")
    assert kinds["all", "mean"] == ("aggregating", "Tuple(Long, Long)")
    assert kinds["all", "_event_timers"] == ("event-time timers", "")
    assert kinds["all", "any"] == ("value", "PickledByteArray")
    assert kinds["remembering", "numbers"] == ("operator list", "List[Long]")
    assert listed["remembering", "numbers"].entries == GOOD
    assert listed["all", "_event_timers"].entries == GOOD
    assert kinds["numbers", "_positions"] == ("source positions", "")


def test_pickles_stay_closed_unless_asked_for(snapshot: Any) -> None:
    found = snapshot(_everything)
    (closed,) = rows_of(found, "all", "any", key="key 3")
    (opened,) = rows_of(found, "all", "any", key="key 3", trust_pickle=True)
    assert isinstance(closed.value, Pickled)
    assert str(closed.value).startswith("<pickled, ")
    assert opened.value == {"n": _by_key()["key 3"][-1]}
    (position,) = rows_of(found, "numbers", "_positions")
    assert isinstance(position.value["position"], Pickled)


def test_operator_state(snapshot: Any) -> None:
    found = snapshot(_everything)
    rows = list(rows_of(found, "remembering", "numbers"))
    assert sorted(row.value for row in rows) == list(range(GOOD))
    assert {row.subtask for row in rows} <= {0, 1}


class Rules(BroadcastProcessFunction):
    RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(self.RULES).put(f"rule {value}", value)


def test_broadcast_state_is_shown_once(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        rules = numbers.filter(lambda n: n < 3).broadcast(Rules.RULES)
        return numbers.connect(rules).process(Rules()).uid("ruled")

    rows = rows_of(snapshot(build), "ruled", "rules")
    assert sorted((row.map_key, row.value) for row in rows) == [(f"rule {n}", n) for n in range(3)]


def _window_sums(found: Snapshot, state: str) -> dict[tuple[Any, Any], Any]:
    return {(row.key, row.window): row.value for row in rows_of(found, "windows", state)}


def test_windows(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        windows = numbers.key_by(lambda n: n % 2, Types.LONG()).window(
            TumblingEventTimeWindows.of(Time.seconds(2))
        )
        return windows.reduce(lambda a, b: a + b).uid("windows")

    expected: Counter[tuple[Any, Any]] = Counter()
    for n in range(GOOD):
        expected[n % 2, StoredWindow(n * 100 // 2000 * 2000)] += n
    assert _window_sums(snapshot(build), "_windows") == expected


def test_windows_with_elements(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        windows = numbers.key_by(lambda n: n % 2).window(
            TumblingEventTimeWindows.of(Time.seconds(2))
        )
        return windows.apply(lambda key, window, ns: [sum(ns)]).uid("windows")

    found = snapshot(build)
    sums = {at: sorted(ns) for at, ns in _window_sums(found, "_windows").items()}
    expected: dict[tuple[Any, Any], list[int]] = {}
    for n in range(GOOD):
        expected.setdefault((n % 2, StoredWindow(n * 100 // 2000 * 2000)), []).append(n)
    assert sums == expected
    (info,) = (info for info in states_of(found) if info.state == "_windows")
    assert (info.kind, info.entries) == ("windows", len(expected))


def test_sessions(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        windows = numbers.key_by(lambda n: n // 20).window(
            EventTimeSessionWindows.with_gap(Time.seconds(1))
        )
        return windows.reduce(lambda a, b: a + b).uid("windows")

    assert _window_sums(snapshot(build), "_sessions") == {
        (k, StoredWindow(k * 2000, k * 2000 + 1900 + 1000)): sum(range(20 * k, 20 * k + 20))
        for k in range(3)
    }


def test_windows_of_the_general_operator(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        windows = numbers.key_by(lambda n: n % 2).window(
            TumblingEventTimeWindows.of(Time.seconds(2))
        )
        return windows.trigger(CountTrigger.of(1000)).reduce(lambda a, b: a + b).uid("windows")

    found = snapshot(build)
    expected: Counter[tuple[Any, Any]] = Counter()
    records: Counter[tuple[Any, Any]] = Counter()
    for n in range(GOOD):
        start = n * 100 // 2000 * 2000
        expected[n % 2, StoredWindow(start, start + 2000)] += n
        records[n % 2, StoredWindow(start, start + 2000)] += 1
    assert _window_sums(found, "_windows/contents") == expected
    assert _window_sums(found, "trigger/count") == records


class Pairs(ProcessJoinFunction):
    def process_element(self, left: int, right: int, ctx: Any) -> list[Any]:
        return [(left, right)]


def test_records_of_an_interval_join(snapshot: Any) -> None:
    def build(numbers: DataStream) -> DataStream:
        keyed = numbers.key_by(lambda n: n % 2)
        return keyed.interval_join(keyed).between(-100, 100).process(Pairs()).uid("pairs")

    found = snapshot(build)
    for state in ("_left", "_right"):
        (info,) = (info for info in states_of(found) if info.state == state)
        assert (info.kind, info.type, info.entries) == ("records by time", "PickledByteArray", GOOD)
        rows = rows_of(found, "pairs", state, trust_pickle=True)
        assert {(row.key, row.time): row.value for row in rows} == {
            (n % 2, n * 100): [n] for n in range(GOOD)
        }


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Point:
    x: int
    y: int


def test_keys_of_users_classes_are_not_imported(snapshot: Any) -> None:
    kinds = [Colour.RED, Point(1, 2), ("a", 1), Row("r", 1), 2.5, 3]

    def build(numbers: DataStream) -> DataStream:
        return numbers.key_by(lambda n: kinds[n % 6]).process(Everything()).uid("all")

    keys = {row.key for row in rows_of(snapshot(build), "all", "sum")}
    module = Point.__module__
    point = KeyObject(f"{module}.Point", (("x", 1), ("y", 2)))
    red = EnumMember(f"{module}.Colour", "RED")
    assert keys == {red, point, ("a", 1), Row("r", 1), 2.5, 3}
    assert (str(point), str(red)) == ("Point(x=1, y=2)", "Colour.RED")


@pytest.mark.parametrize("after", ["1", "3"])
def test_after_another_parallelism(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path, after: str
) -> None:
    """Files of former subtasks count only for the key groups that a subtask has now."""
    rest = GOOD // 2

    def run(limit: int, parallelism: str) -> None:
        env = restartable_env({"parallelism.default": parallelism})
        numbers = env.from_sequence(0, 10_000).uid("numbers").set_parallelism(1)

        def check(n: int) -> int:
            if n >= limit:
                raise RuntimeError("here it dies")
            return n

        stream = (
            numbers.map(check, Types.LONG()).set_parallelism(1).key_by(lambda n: f"key {n % KEYS}")
        )
        collect_until_error(stream.process(Everything()).uid("all"))

    run(rest, "2")
    run(GOOD, after)
    found = open_snapshot(str(tmp_path / "checkpoints" / "job"))
    assert {row.key: row.value for row in rows_of(found, "all", "history")} == _by_key()
    (info,) = (info for info in states_of(found) if info.state == "sum")
    assert info.entries == KEYS


def test_differences(snapshot: Any, tmp_path: Path) -> None:
    newest = snapshot(_everything)
    directory = tmp_path / "checkpoints" / "job" / "epochs"
    before = open_snapshot(str(directory / f"{newest.manifest.epoch - 1}.json"))

    found = {d.state: d for d in diff(before, newest) if d.operator == "all"}
    lists = found["history"]
    assert (lists.added, lists.removed, lists.changed, lists.same) == (0, 0, KEYS, 0)
    timers = found["_event_timers"]
    assert (timers.added, timers.removed, timers.same) == (10, 0, GOOD - 10)
    gone = found["gone"]
    assert (gone.added, gone.removed, gone.same) == (10, 10, 3 * KEYS - 10)

    assert {c.after.value for c in changes(before, newest, "all", "gone") if c.how == "added"} == {
        *range(GOOD - 10, GOOD)
    }
    back = {d.state: d for d in diff(newest, before)}
    assert (back["gone"].added, back["gone"].removed) == (10, 10)


def test_exports(snapshot: Any, tmp_path: Path) -> None:
    found = snapshot(_everything)
    table = tmp_path / "last.parquet"
    assert export(found, "all", "last", str(table)) == KEYS
    rows = {row["key"]: row["value"] for row in pq.read_table(table).to_pylist()}
    n = _by_key()["key 3"][-1]
    assert rows["key 3"] == {"page": f"/{n}", "seconds": n / 2, "tags": ["a"] * (n % 3)}

    lines = tmp_path / "parities.jsonl"
    export(found, "all", "parities", str(lines))
    parsed = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {"key": "key 0", "map_key": "even", "value": 56} in parsed

    text = tmp_path / "history.csv"
    export(found, "all", "history", str(text))
    with text.open(newline="") as file:
        assert {row["key"]: row["value"] for row in csv.DictReader(file)} == {
            key: str(ns) for key, ns in _by_key().items()
        }
    with pytest.raises(InvalidArgumentError, match="parquet or csv or jsonl"):
        export(found, "all", "history", str(tmp_path / "history.xls"))


def test_what_is_not_there(snapshot: Any) -> None:
    found = snapshot(_everything)
    with pytest.raises(InvalidArgumentError, match="did you mean 'remembering'"):
        rows_of(found, "rememberin", "numbers")
    with pytest.raises(InvalidArgumentError, match="it has _event_timers, any, few, gone"):
        rows_of(found, "all", "histroy")
    with pytest.raises(InvalidArgumentError, match="not kept by key"):
        rows_of(found, "remembering", "numbers", key=1)
