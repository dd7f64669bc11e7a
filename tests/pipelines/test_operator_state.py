"""Operator state: lists and maps of a subtask, kept by functions of every kind."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Types
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoMapFunction,
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.functions import JoinFunction, ReduceFunction
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import CountTumblingWindowAssigner, TumblingEventTimeWindows
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    PenstockError,
    StateError,
    TypeMismatchError,
    UnsupportedFeatureError,
    UserFunctionError,
)
from penstock.testing import ScriptedSource

local = pytest.mark.parametrize("executor", ["local"], indirect=True)
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}
SEEN = ListStateDescriptor("seen", Types.LONG())
ALL_SEEN = ListStateDescriptor("all seen", Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Hoard(FlatMapFunction, CheckpointedFunction):
    """Keeps all that it has seen. Tells (what it is given back, where, in its three forms)."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._list = store.get_list_state(SEEN)
        self._union = store.get_union_list_state(ALL_SEEN)
        self._rules = store.get_broadcast_state(RULES)
        self._seen = list(self._list.get())
        given = list(self._list.get()), list(self._union.get()), dict(self._rules.items())
        self._to_tell = [("given", given)] if context.is_restored() else []

    def open(self, runtime_context: RuntimeContext) -> None:
        self._here = runtime_context.get_index_of_this_subtask()
        self._rules.put("limit", 7)

    def flat_map(self, value: int) -> Iterator[Any]:
        for kind, given in self._to_tell:
            yield kind, self._here, given
        self._to_tell = []
        self._seen.append(value)
        yield "seen", self._here, value

    def snapshot_state(self, context: Any) -> None:
        assert context.get_checkpoint_id() >= 0
        assert context.get_checkpoint_timestamp() > 1_600_000_000_000
        self._list.update(self._seen)
        self._union.update(self._seen)


def hoarded(env: StreamExecutionEnvironment, limit: int) -> DataStream:
    def check(value: int) -> int:
        if value >= limit:
            raise RuntimeError("half-way")
        return value

    numbers = env.from_sequence(0, 99).uid("numbers").set_parallelism(1)
    checked = numbers.map(check).uid("check").set_parallelism(1)
    return checked.rebalance().flat_map(Hoard()).uid("hoard")


def seen_at(found: Iterable[Any]) -> dict[int, list[int]]:
    """By subtask, in order."""
    seen: dict[int, list[int]] = {}
    for kind, where, value in found:
        if kind == "seen":
            seen.setdefault(where, []).append(value)
    return seen


def given_first(found: Iterable[Any]) -> dict[int, Any]:
    """By subtask, what its first instance was given."""
    given: dict[int, Any] = {}
    for kind, where, value in found:
        if kind == "given":
            given.setdefault(where, value)
    return given


def half_and_half(
    restartable_env: Any, collect_until_error: Any, before: int, after: int
) -> tuple[list[Any], list[Any]]:
    epochs = {"penstock.source.max-records-per-epoch": "35"}
    first_env = restartable_env({**epochs, "parallelism.default": str(before)})
    second_env = restartable_env({**epochs, "parallelism.default": str(after)})
    first, _ = collect_until_error(hoarded(first_env, limit=60))
    second = list(hoarded(second_env, limit=1000).execute_and_collect())
    return first, second


def check_rescaled(first: list[Any], second: list[Any], after: int) -> None:
    before = seen_at(first)
    numbers = [value for where in sorted(before) for value in before[where]]
    assert len(numbers) >= 20
    given = given_first(second)
    assert sorted(given) == list(range(after))
    parts = [given[where][0] for where in range(after)]
    assert [value for part in parts for value in part] == numbers
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(everything == numbers for _, everything, _ in given.values())
    assert all(rules == {"limit": 7} for _, _, rules in given.values())
    afterwards = seen_at(second)
    assert sorted([*numbers, *(v for part in afterwards.values() for v in part)]) == [*range(100)]


def test_other_parallelism(restartable_env: Any, collect_until_error: Any) -> None:
    first, second = half_and_half(restartable_env, collect_until_error, 2, 3)
    check_rescaled(first, second, 3)


@local
@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 2), (4, 3), (1, 5)])
def test_any_other_parallelism(
    restartable_env: Any, collect_until_error: Any, before: int, after: int
) -> None:
    first, second = half_and_half(restartable_env, collect_until_error, before, after)
    check_rescaled(first, second, after)


@local
def test_the_same_parallelism_gives_each_its_own_list(
    restartable_env: Any, collect_until_error: Any
) -> None:
    first, second = half_and_half(restartable_env, collect_until_error, 3, 3)
    given = given_first(second)
    assert {where: own for where, (own, _, _) in given.items()} == seen_at(first)
    everything = [v for _, part in sorted(seen_at(first).items()) for v in part]
    assert all(union == everything for _, union, _ in given.values())


@local
def test_rescaled_twice_without_an_epoch_between(
    restartable_env: Any, collect_until_error: Any
) -> None:
    """The second start fails at once; nothing may be lost or doubled by it."""
    env = restartable_env({"parallelism.default": "2"})
    first, _ = collect_until_error(hoarded(env, limit=60))
    env = restartable_env({"parallelism.default": "5"})
    between, _ = collect_until_error(hoarded(env, limit=0))
    assert between == []
    env = restartable_env({"parallelism.default": "3"})
    check_rescaled(first, list(hoarded(env, limit=1000).execute_and_collect()), 3)


class Numbered(MapFunction, ListCheckpointed):
    """Numbers the records of its subtask."""

    def __init__(self) -> None:
        self._count = 0
        self._restored: list[list[int]] = []

    def map(self, value: Any) -> tuple[Any, int]:
        self._count += 1
        return value, self._count

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return [self._count]

    def restore_state(self, state: list[int]) -> None:
        self._count = sum(state)


def test_list_checkpointed(make_env: Any) -> None:
    env = make_env({**RESTARTS, "parallelism.default": "1"})
    script = [["a", "b"], ["c", ScriptedSource.FAIL, "d"], ["e"]]
    stream = env.from_source(ScriptedSource(script)).map(Numbered())
    assert list(stream.execute_and_collect()) == [
        ("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5),
    ]  # fmt: skip


# Every kind of function


class Kept(CheckpointedFunction):
    """Counts what it was called with, in operator state alone."""

    def initialize_state(self, context: Any) -> None:
        self._state = context.get_operator_state_store().get_list_state(SEEN)

    def snapshot_state(self, context: Any) -> None:
        pass

    def count(self) -> int:
        """One more than before."""
        self._state.add(1)
        return len(list(self._state.get()))


class KeptMap(MapFunction, Kept):
    def map(self, value: Any) -> Any:
        return self.count()


class KeptCallable(Kept):
    """No function by its class, but as good as one."""

    def __call__(self, value: Any) -> Any:
        return self.count()


class KeptFlatMap(FlatMapFunction, Kept):
    def flat_map(self, value: Any) -> Any:
        yield self.count()


class KeptAsync(AsyncFunction, Kept):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [self.count()]


class KeptFilter(FilterFunction, Kept):
    def filter(self, value: Any) -> bool:
        return self.count() % 2 == 0


class KeptProcess(KeyedProcessFunction, Kept):
    """Beside state of the key, under the same name."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._keyed = runtime_context.get_list_state(SEEN)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._keyed.add(value)
        yield self.count(), len(list(self._keyed.get()))


class KeptReduce(ReduceFunction, Kept):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return self.count()


class KeptCoMap(CoMapFunction, Kept):
    def map1(self, value: Any) -> Any:
        return self.count()

    def map2(self, value: Any) -> Any:
        return self.count()


class KeptBroadcast(BroadcastProcessFunction, Kept):
    """Its broadcast state is one of its operator states."""

    def initialize_state(self, context: Any) -> None:
        super().initialize_state(context)
        self._rules = context.get_operator_state_store().get_broadcast_state(RULES)

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.count()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put("n", value)
        assert self._rules.get("n") == value


class KeptWindow(ProcessWindowFunction, Kept):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield self.count()


class KeptJoin(JoinFunction, Kept):
    def join(self, first: Any, second: Any) -> Any:
        return self.count()


def _in_windows(stream: DataStream) -> DataStream:
    return stream.key_by(lambda v: 0).window(CountTumblingWindowAssigner(1)).process(KeptWindow())


def _beside_broadcast(stream: DataStream) -> DataStream:
    rules = stream.get_execution_environment().from_collection([3]).broadcast(RULES)
    return stream.connect(rules).process(KeptBroadcast())


def _joined(stream: DataStream) -> DataStream:
    """Each record with itself."""
    timed = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OwnTime())
    )
    keys = timed.join(timed).where(lambda v: 0).equal_to(lambda v: 0)
    return keys.window(TumblingEventTimeWindows.of(Time.milliseconds(1))).apply(KeptJoin())


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def _connected(stream: DataStream) -> DataStream:
    other = stream.get_execution_environment().from_source(ScriptedSource([[], []]))
    return stream.connect(other).map(KeptCoMap())


FUNCTIONS = {
    "map": (lambda s: s.map(KeptMap()), [1, 2, 3, 4, 5]),
    "callable": (lambda s: s.map(KeptCallable()), [1, 2, 3, 4, 5]),
    "flat_map": (lambda s: s.flat_map(KeptFlatMap()), [1, 2, 3, 4, 5]),
    "filter": (lambda s: s.filter(KeptFilter()), [11, 13]),
    "async": (
        lambda s: AsyncDataStream.ordered_wait(s, KeptAsync(), Time.seconds(9), 1),
        [1, 2, 3, 4, 5],
    ),
    "process": (
        lambda s: s.key_by(lambda v: v % 2).process(KeptProcess()),
        [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)],
    ),
    "reduce": (lambda s: s.key_by(lambda v: 0).reduce(KeptReduce()), [10, 1, 2, 3, 4]),
    "connect": (_connected, [1, 2, 3, 4, 5]),
    "broadcast": (_beside_broadcast, [1, 2, 3, 4, 5]),
    "window": (_in_windows, [1, 2, 3, 4, 5]),
    "join": (_joined, [1, 2, 3, 4, 5]),
}


@local
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_every_kind_of_function(make_env: Any, kind: str) -> None:
    """A failure in every epoch does not disturb the count."""
    fail = ScriptedSource.FAIL
    program, expected = FUNCTIONS[kind]
    env = make_env({**RESTARTS, "parallelism.default": "1"})
    source = ScriptedSource([[10, 11], [12, fail, 13], [fail, 14]])
    assert list(program(env.from_source(source)).execute_and_collect()) == expected


class BufferingSink(SinkFunction, CheckpointedFunction):
    """Writes a file for every three records; what is left over waits in state."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def initialize_state(self, context: Any) -> None:
        self._state = context.get_operator_state_store().get_list_state(
            ListStateDescriptor("buffered")
        )
        self._buffered = list(self._state.get())

    def invoke(self, value: Any, context: Any) -> None:
        self._buffered.append(value)
        if len(self._buffered) == 3:
            (self._directory / "-".join(map(str, self._buffered))).touch()
            self._buffered.clear()

    def snapshot_state(self, context: Any) -> None:
        self._state.update(self._buffered)


def test_a_sink_that_buffers(make_env: Any, tmp_path: Path) -> None:
    directory = tmp_path / "written"
    directory.mkdir()
    env = make_env({**RESTARTS, "parallelism.default": "1"})
    script = [[1, 2], [3, 4, ScriptedSource.FAIL], [5, 6]]
    env.from_source(ScriptedSource(script)).add_sink(BufferingSink(str(directory)))
    env.execute()
    assert sorted(path.name for path in directory.iterdir()) == ["1-2-3", "4-5-6"]


class CountingReader(SourceReader, ListCheckpointed):
    """Gives each record with how many this reader has given."""

    def __init__(self) -> None:
        self._given = 0

    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        self._given += 1
        return ReadResult([(position, self._given)], position + 1, position == 4, paused=True)

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return [self._given]

    def restore_state(self, state: list[int]) -> None:
        self._given = sum(state)


class CountingSource(Source):
    boundedness = Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split("only", None, 0)]

    def create_reader(self, context: InitContext) -> SourceReader:
        return CountingReader()


def _stumble_once(mark: Path) -> Any:
    def check(value: Any) -> Any:
        if value[0] == 3 and not mark.exists():
            mark.touch()
            raise RuntimeError("once")
        return value

    return check


@local
def test_a_source_reader(make_env: Any, tmp_path: Path) -> None:
    env = make_env({**RESTARTS, "parallelism.default": "1"})
    stream = env.from_source(CountingSource()).map(_stumble_once(tmp_path / "mark"))
    assert list(stream.execute_and_collect()) == [(n, n + 1) for n in range(5)]


# A changed program


class Declares(MapFunction, CheckpointedFunction):
    """Puts every record into what it declares."""

    def __init__(self, method: str, descriptor: Any, limit: int) -> None:
        self._method = method
        self._descriptor = descriptor
        self._limit = limit

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._state = getattr(store, self._method)(self._descriptor)

    def map(self, value: int) -> int:
        if value >= self._limit:
            raise RuntimeError("half-way")
        self._state.add(value)
        return len(list(self._state.get()))

    def snapshot_state(self, context: Any) -> None:
        pass


def declaring(env: Any, method: str, descriptor: Any, limit: int = 1000, uid: str = "d") -> Any:
    numbers = env.from_sequence(0, 99).uid("numbers").rebalance()
    return numbers.map(Declares(method, descriptor, limit)).uid(uid)


@local
@pytest.mark.parametrize(
    ("method", "descriptor"),
    [
        ("get_list_state", ListStateDescriptor("seen", Types.STRING())),
        ("get_union_list_state", SEEN),
    ],
)
def test_a_changed_type_is_refused(
    restartable_env: Any, collect_until_error: Any, method: str, descriptor: Any
) -> None:
    collect_until_error(declaring(restartable_env(), "get_list_state", SEEN, limit=60))
    with pytest.raises(CheckpointMismatchError, match=r"state 'seen'.*stored as operator list of"):
        list(declaring(restartable_env(), method, descriptor).execute_and_collect())


@local
def test_state_without_its_operator_is_refused(
    restartable_env: Any, collect_until_error: Any
) -> None:
    collect_until_error(declaring(restartable_env(), "get_list_state", SEEN, limit=60))
    stream = declaring(restartable_env(), "get_list_state", SEEN, uid="another")
    with pytest.raises(CheckpointMismatchError, match="- d: operator state"):
        list(stream.execute_and_collect())


@local
def test_state_that_is_not_declared_is_kept(restartable_env: Any, collect_until_error: Any) -> None:
    """A version of the program without it comes between two with it."""
    first, _ = collect_until_error(declaring(restartable_env(), "get_list_state", SEEN, limit=60))
    other = ListStateDescriptor("other")
    collect_until_error(declaring(restartable_env(), "get_list_state", other, limit=90))
    last = list(declaring(restartable_env(), "get_list_state", SEEN).execute_and_collect())
    assert sum(sorted(last)[-2:]) == len(first) + len(last)


@local
def test_a_union_that_is_only_added_to_does_not_multiply(make_env: Any) -> None:
    """What others have stored is theirs: three restarts, and still each number once."""
    fail = ScriptedSource.FAIL
    env = make_env({**RESTARTS, "restart-strategy.fixed-delay.attempts": "5"})
    script = [[1, 2], [3, 4, fail], [5, 6, fail], [7, 8, fail], [9, 10]]
    stream = env.from_source(ScriptedSource(script)).set_parallelism(1).rebalance()
    counts = list(stream.map(Declares("get_union_list_state", ALL_SEEN, 100)).execute_and_collect())
    assert max(counts) == 8  # three of each subtask's at the third restart, and two more


# Bad input


def failing(env: StreamExecutionEnvironment, function: Any) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        list(env.from_collection([1, 2]).map(function).execute_and_collect())
    return caught.value


class Careless(MapFunction, CheckpointedFunction):
    def __init__(self, initialize: Any = None, snapshot: Any = None) -> None:
        self._initialize = initialize
        self._snapshot = snapshot

    def map(self, value: Any) -> Any:
        return value

    def initialize_state(self, context: Any) -> None:
        if self._initialize is not None:
            self.state = self._initialize(context.get_operator_state_store(), context)

    def snapshot_state(self, context: Any) -> None:
        if self._snapshot is not None:
            self._snapshot(self, context)


def _lists(store: Any, context: Any) -> Any:
    return store.get_list_state(ListStateDescriptor("things"))


def _expiring(store: Any, context: Any) -> Any:
    descriptor = ListStateDescriptor("things")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return store.get_list_state(descriptor)


def _twice(store: Any, context: Any) -> None:
    store.get_list_state(SEEN)
    store.get_union_list_state(SEEN)


CARELESS = {
    "a value that cannot be stored": (
        Careless(_lists, lambda f, _: f.state.add(threading.Lock())),
        (StateError, r"a value of state 'things' cannot be stored.*store what can be pickled"),
    ),
    "None": (
        Careless(_lists, lambda f, _: f.state.update([1, None])),
        (InvalidArgumentError, r"list state 'things' cannot hold None"),
    ),
    "another type": (
        Careless(lambda s, _: s.get_list_state(SEEN), lambda f, _: f.state.add("a")),
        (TypeMismatchError, r"state 'seen'"),
    ),
    "another kind of descriptor": (
        Careless(lambda s, _: s.get_list_state(ValueStateDescriptor("v"))),
        (StateError, r"expected a ListStateDescriptor, got ValueStateDescriptor\('v'"),
    ),
    "a name": (
        Careless(lambda s, _: s.get_broadcast_state("rules")),
        (StateError, r"expected a MapStateDescriptor, got 'rules'"),
    ),
    "one name for two": (
        Careless(_twice),
        (StateError, r"'seen' is declared twice: as operator list .* and as union list"),
    ),
    "a time to live": (
        Careless(_expiring),
        (UnsupportedFeatureError, r"time to live of operator state \('things'\)"),
    ),
    "state of keys without keys": (
        Careless(lambda _, c: c.get_keyed_state_store().get_list_state(SEEN)),
        (StateError, r"its input is not keyed"),
    ),
    "the store in snapshot_state": (
        Careless(None, lambda _, context: context.get_operator_state_store()),
        (StateError, r"there is no get_operator_state_store\(\) here: .*in initialize_state"),
    ),
    "an error of its own": (
        Careless(None, lambda *_: 1 / 0),
        (UserFunctionError, r"'careless .*' failed at .*_state\.py:\d+: ZeroDivisionError"),
    ),
}


@local
@pytest.mark.parametrize("case", CARELESS)
def test_misuse_is_refused(env: StreamExecutionEnvironment, case: str) -> None:
    function, (kind, message) = CARELESS[case]
    stream = env.from_collection([1, 2]).map(function).name("careless")
    with pytest.raises(kind, match=message) as caught:
        list(stream.execute_and_collect())
    assert "careless" in str(caught.value)


class AsksInOpen(MapFunction):
    def open(self, runtime_context: Any) -> None:
        runtime_context.get_operator_state_store()

    def map(self, value: Any) -> Any:
        return value


class Both(MapFunction, CheckpointedFunction, ListCheckpointed):
    def map(self, value: Any) -> Any:
        return value

    def initialize_state(self, context: Any) -> None:
        pass

    def snapshot_state(self, *arguments: Any) -> Any:
        return []

    def restore_state(self, state: Any) -> None:
        pass


class NoList(Numbered):
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> Any:
        return "count"


class ReadsKey(KeyedProcessFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        self._state = context.get_keyed_state_store().get_state(ValueStateDescriptor("v"))

    def snapshot_state(self, context: Any) -> None:
        self._state.value()

    def process_element(self, value: Any, ctx: Any) -> None:
        self._state.update(value)


@local
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (AsksInOpen(), r"there is no get_operator_state_store\(\) here"),
        (Both(), r"Both is a CheckpointedFunction and a ListCheckpointed.*derive it from one"),
        (NoList(), r"what snapshot_state returns must be a list, got str 'count'"),
    ],
)
def test_more_misuse(env: StreamExecutionEnvironment, function: Any, message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        list(env.from_collection([1]).map(function).execute_and_collect())


@local
def test_there_is_no_key_in_snapshot_state(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1]).key_by(lambda v: v).process(ReadsKey())
    with pytest.raises(StateError, match=r"there is no current key here.*snapshot_state"):
        list(stream.execute_and_collect())


@local
def test_its_size_is_a_metric(env: StreamExecutionEnvironment) -> None:
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    list(env.from_collection([1, 2]).map(KeptMap()).uid("m").execute_and_collect())
    sizes = [v for r in reports for m in r.metrics["m"] for k, v in m.items() if "Bytes" in k]
    assert max(sizes) > 0
