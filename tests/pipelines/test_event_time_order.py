"""Row B8: records of a key in the order of time, the same results whatever the epochs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import (
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.driver.epoch_report import EpochReport
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    InvalidProgramError,
    UserFunctionError,
)
from penstock.runtime.codec import decode, encode
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.table_file import read_table_file
from penstock.testing import ScriptedSource

EVERYWHERE = {"penstock.event-time-order.enabled": "true"}


def late_by_at_most(millis: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(millis).with_timestamp_assigner(
        lambda record, _: record[1]
    )


class Journal(KeyedProcessFunction):
    """Writes down all that it can see. Timers lie between the records, on them, and before them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self._last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers, at = ctx.timer_service(), ctx.timestamp()
        self._seen.add(value[2])
        timers.register_event_time_timer(at + value[2] % 40)
        if value[2] % 5 == 0:
            timers.register_event_time_timer(at - 3)
        last = self._last.value()
        if last is not None and value[2] % 3 == 0:
            timers.delete_event_time_timer(last)
        self._last.update(at + value[2] % 40)
        yield self._subtask, "record", value, at, timers.current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        seen = tuple(self._seen.get())[-5:]
        watermark = ctx.timer_service().current_watermark()
        yield self._subtask, "timer", ctx.get_current_key(), timestamp, watermark, seen
        if timestamp % 11 == 0:
            ctx.timer_service().register_event_time_timer(timestamp + 2)


def out_of_order(count: int, by: int, seed: int = 8) -> list[tuple[str, int, int]]:
    """Records of five keys; their times have gaps and ties, and are late by less than `by`."""
    chance = random.Random(seed)
    times = [chance.randrange(count * 2) for _ in range(count)]
    times.sort(key=lambda time: time + chance.randrange(by))
    return [(f"key {chance.randrange(5)}", time, n) for n, time in enumerate(times)]


def cut(records: list[Any], epochs: int) -> list[list[Any]]:
    return [records[n * len(records) // epochs : (n + 1) * len(records) // epochs]
            for n in range(epochs)]  # fmt: skip


def timed(env: StreamExecutionEnvironment, script: list[list[Any]], bound: int) -> Any:
    source = env.from_source(ScriptedSource(script)).set_parallelism(1)
    return source.assign_timestamps_and_watermarks(late_by_at_most(bound))


def as_bytes(outputs: list[Any]) -> bytes:
    """Not pickle's own: it writes an object that occurs twice otherwise than two that are equal."""
    return encode(outputs)[0]


def by_subtask(outputs: Any) -> dict[int, bytes]:
    """The bytes of what each subtask gave, in order."""
    found: dict[int, list[Any]] = {}
    for output in outputs:
        found.setdefault(output[0], []).append(output)
    return {subtask: as_bytes(given) for subtask, given in found.items()}


def test_out_of_order_input_is_handed_over_in_order(env: StreamExecutionEnvironment) -> None:
    records = [("a", 30), ("a", 10), ("b", 25), ("a", 20), ("b", 5)]
    keyed = timed(env, [records], 100).key_by(lambda r: r[0])

    found = list(keyed.in_event_time_order().map(lambda r: r).execute_and_collect())

    assert [r for r in found if r[0] == "a"] == [("a", 10), ("a", 20), ("a", 30)]
    assert [r for r in found if r[0] == "b"] == [("b", 5), ("b", 25)]


def test_without_it_records_come_as_they_arrive(env: StreamExecutionEnvironment) -> None:
    records = [("a", 30), ("a", 10), ("a", 20)]
    keyed = timed(env, [records], 100).key_by(lambda r: r[0])
    assert list(keyed.map(lambda r: r).execute_and_collect()) == records


class Between(KeyedProcessFunction):
    """A timer at the record's time, one before the next record and one behind the last."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        for time in (ctx.timestamp(), ctx.timestamp() + 5, 1000):
            ctx.timer_service().register_event_time_timer(time)
        yield "record", ctx.timestamp(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", timestamp, ctx.timer_service().current_watermark()


def test_timers_fire_between_the_records(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env, [[("a", 20), ("a", 10)]], 100).key_by(lambda r: r[0])

    found = list(keyed.in_event_time_order().process(Between()).execute_and_collect())

    assert found == [
        ("record", 10, 9),
        ("timer", 10, 10),
        ("timer", 15, 15),
        ("record", 20, 19),
        ("timer", 20, 20),
        ("timer", 25, 25),
        ("timer", 1000, 1000),
    ]


def test_the_same_bytes_whatever_the_epochs(make_env: Any) -> None:
    records = out_of_order(600, by=30)
    found = {}
    for epochs in (1, 7, 100):
        env = make_env()
        reports: list[EpochReport] = []
        env.add_epoch_listener(reports.append)
        keyed = timed(env, cut(records, epochs), 30).key_by(lambda r: r[0]).in_event_time_order()
        found[epochs] = by_subtask(keyed.process(Journal()).execute_and_collect())
        assert sum(not report.idle for report in reports) == epochs

    assert found[1] == found[7] == found[100]
    given = [output for part in found[1].values() for output in decode(part)]
    assert len(found[1]) == 2
    assert sorted(g[2] for g in given if g[1] == "record") == sorted(records)
    assert sum(g[1] == "timer" for g in given) > 500


def test_ties_come_by_producer_and_in_the_order_of_each(make_env: Any) -> None:
    """Two sources, cut differently, with few times and one key."""
    chance = random.Random(4)
    times = sorted(chance.randrange(20) for _ in range(120))
    left = [("x", time, f"left {n}") for n, time in enumerate(times)]
    right = [("x", time, f"right {n}") for n, time in enumerate(times)]
    found = []
    for first, second in ((1, 1), (2, 9), (8, 3)):
        env = make_env()
        both = timed(env, cut(left, first), 0).union(timed(env, cut(right, second), 0))
        keyed = both.key_by(lambda r: r[0]).in_event_time_order()
        found.append(as_bytes(list(keyed.map(lambda r: r).execute_and_collect())))

    assert decode(found[0]) == sorted(left + right, key=lambda r: r[1])
    assert found[0] == found[1] == found[2]


class Numbered(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def map(self, value: Any) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return (*value, count)


ANY_OPERATOR: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "reduce": (
        lambda s: s.reduce(lambda a, b: (a[0], b[1], a[2] + b[2])),
        [("k", 1, "a"), ("k", 2, "ab"), ("k", 3, "abc")],
    ),
    "map": (lambda s: s.map(Numbered()), [("k", 1, "a", 1), ("k", 2, "b", 2), ("k", 3, "c", 3)]),
    "flat map with state": (
        lambda s: s.flat_map_with_state(lambda r, text: ([text], (text or "") + r[2])),
        [None, "a", "ab"],
    ),
    "filter": (lambda s: s.filter(lambda r: r[1] > 1), [("k", 2, "b"), ("k", 3, "c")]),
}


@pytest.mark.parametrize("operator", ANY_OPERATOR)
@pytest.mark.parametrize("how", ["stream", "environment"])
def test_any_operator(make_env: Any, operator: str, how: str) -> None:
    env = make_env(EVERYWHERE if how == "environment" else {})
    script = [[("k", 2, "b")], [("k", 3, "c"), ("k", 1, "a")]]
    keyed = timed(env, script, 100).key_by(lambda r: r[0])
    if how == "stream":
        keyed = keyed.in_event_time_order()
    run, expected = ANY_OPERATOR[operator]

    assert list(run(keyed).execute_and_collect()) == expected


class Written(SinkFunction):
    """Appends to a file: a sink function gives nothing back."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def invoke(self, value: Any, context: Any) -> None:
        with open(self._path, "a") as file:
            file.write(f"{value[1]} after {context.current_watermark()}\n")


def test_a_sink_of_a_keyed_stream(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    keyed = timed(env, [[("k", 2)], [("k", 3), ("k", 1)]], 100).key_by(lambda r: r[0])
    keyed.in_event_time_order().add_sink(Written(tmp_path / "out"))
    keyed.in_event_time_order().print()  # a writer, whose committer the driver must find
    env.execute()
    assert (tmp_path / "out").read_text() == "1 after 0\n2 after 1\n3 after 2\n"


def test_only_the_next_operator_is_in_order(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env, [[("k", 2), ("k", 1)]], 100).key_by(lambda r: r[0])
    again = keyed.in_event_time_order().key_by(lambda r: r[0])
    assert list(again.map(lambda r: r[1]).execute_and_collect()) == [2, 1]


SIDE = OutputTag("side")


class ToBothSides(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield SIDE, value[1]
        yield value[1]


def test_side_outputs_keep_the_order(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env, [[("k", 3), ("k", 1)], [("k", 2)]], 100).key_by(lambda r: r[0])
    both = keyed.in_event_time_order().process(ToBothSides())
    side = both.get_side_output(SIDE).map(lambda n: -n)
    found = list(both.union(side).execute_and_collect())
    assert [n for n in found if n > 0] == [1, 2, 3]
    assert [n for n in found if n < 0] == [-1, -2, -3]


class Shown(ProcessWindowFunction):
    """A window's records as they are, and how far time was when it fired."""

    def process(self, key: str, context: Any, elements: Any) -> Any:
        window = context.window()
        yield key, window.start, window.end, context.current_watermark(), list(elements)


class Counted(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        yield key, list(elements)


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda s: s.window(TumblingEventTimeWindows.of(Time.milliseconds(50))),
    "sliding": lambda s: s.window(
        SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(15))
    ),
    "session": lambda s: s.window(EventTimeSessionWindows.with_gap(Time.milliseconds(6))),
    "by a trigger": lambda s: s.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).trigger(
        ContinuousEventTimeTrigger.of(Time.milliseconds(20))
    ),
    "of three": lambda s: s.count_window(3),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_give_the_same_whatever_the_epochs(make_env: Any, executor: str, kind: str) -> None:
    records = out_of_order(300, by=30)
    found = []
    # So many epochs take Spark too long to have them for every kind.
    for epochs in (1, 5) if executor == "spark" else (1, 7, 100):
        env = make_env({"parallelism.default": "1"})
        keyed = timed(env, cut(records, epochs), 30).key_by(lambda r: r[0])
        windows = WINDOWS[kind](keyed.in_event_time_order())
        shown = windows.process(Shown() if kind != "of three" else Counted())
        found.append(as_bytes(list(shown.execute_and_collect())))

    assert len(set(found)) == 1
    contents = [window[-1] for window in decode(found[0])]
    assert len(contents) > 20
    assert all(times == sorted(times) for times in ([r[1] for r in c] for c in contents))


# Late records, and those without time


def test_late_records_are_handed_over_at_once_and_counted(make_env: Any) -> None:
    env = make_env()
    reports: list[EpochReport] = []
    env.add_epoch_listener(reports.append)
    script = [[("k", 100), ("k", 90)], [("k", 50), ("k", 120)], [("k", 95)]]
    keyed = timed(env, script, 0).key_by(lambda r: r[0]).in_event_time_order()

    seen = keyed.process(Between()).uid("between").execute_and_collect()

    # The watermark is at 99 when 50 comes, and at 119 when 95 does.
    found = [(time, watermark) for kind, time, watermark in seen if kind == "record"]
    assert found == [(90, 89), (50, 99), (100, 99), (95, 119), (120, 119)]
    counts = [
        count
        for report in reports
        for metrics in report.metrics["between"]
        for name, count in metrics.items()
        if name.endswith("numLateRecords")
    ]
    # A new instance, which Spark may make at any time, counts anew.
    assert max(counts) in (1, 2)


def test_a_stream_without_timestamps_is_refused(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_elements(("a", 1)).key_by(lambda r: r[0]).in_event_time_order()
    message = r"'Map' \(.*test_event_time_order.py:\d+\).*assign_timestamps_and_watermarks"
    with pytest.raises(InvalidProgramError, match=message):
        list(keyed.map(lambda r: r).execute_and_collect())


def test_one_of_two_united_streams_without_timestamps(env: StreamExecutionEnvironment) -> None:
    united = timed(env, [[("a", 1)]], 0).union(env.from_elements(("b", 2)))
    keyed = united.key_by(lambda r: r[0]).in_event_time_order()
    with pytest.raises(InvalidProgramError, match="they have no timestamps"):
        list(keyed.map(lambda r: r).execute_and_collect())


class EmitsByTheClock(KeyedProcessFunction):
    """What a processing-time timer emits has no timestamp."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(1)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key()


def test_a_record_without_a_timestamp(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env, [[("a", 1)], [("b", 2)], []], 0).key_by(lambda r: r[0])
    stream = keyed.process(EmitsByTheClock()).key_by(lambda r: r).in_event_time_order()
    message = r"'in order' \(.*test_event_time_order.py:\d+\).*a record has no timestamp"
    with pytest.raises(InvalidArgumentError, match=message):
        list(stream.map(lambda r: r).name("in order").execute_and_collect())


def test_the_clock_still_fires_timers(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env, [[("a", 1)], [("a", 2)], []], 0).key_by(lambda r: r[0])
    found = keyed.in_event_time_order().process(EmitsByTheClock()).execute_and_collect()
    assert set(found) == {"a"}


# Errors


class FailsAt(KeyedProcessFunction):
    def __init__(self, record: int | None = None, timer: int | None = None) -> None:
        self._record, self._timer = record, timer

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        if value[1] == self._record:
            raise LookupError("no such record")
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if timestamp == self._timer:
            raise LookupError("no such timer")


def fails_behind(value: Any) -> Any:
    if value[1] == 20:
        raise LookupError("behind it")
    return value


@pytest.mark.parametrize(
    ("function", "behind", "culprit", "message"),
    [
        (FailsAt(record=20), str, "in order", "no such record"),
        (FailsAt(timer=21), str, "in order", "no such timer"),
        (FailsAt(), fails_behind, "behind", "behind it"),
    ],
    ids=["record", "timer", "behind"],
)
def test_errors_name_the_operator_and_the_line(
    env: StreamExecutionEnvironment, function: Any, behind: Any, culprit: str, message: str
) -> None:
    keyed = timed(env, [[("k", 30), ("k", 20), ("k", 10)]], 100).key_by(lambda r: r[0])
    stream = keyed.in_event_time_order().process(function).name("in order")
    with pytest.raises(UserFunctionError) as caught:
        list(stream.map(behind).name("behind").execute_and_collect())
    assert caught.value.operator.startswith(f"{culprit} (")
    assert caught.value.original_message == message
    assert "test_event_time_order.py" in caught.value.location


# Checkpoints

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


def test_a_restart_changes_nothing(make_env: Any) -> None:
    records = out_of_order(200, by=50)

    def outputs(script: list[list[Any]]) -> dict[int, bytes]:
        keyed = timed(make_env(RESTARTS), script, 50).key_by(lambda r: r[0]).in_event_time_order()
        return by_subtask(keyed.process(Journal()).execute_and_collect())

    script: list[list[Any]] = cut(records, 10)
    failing = [list(epoch) for epoch in script]
    failing[3].insert(4, ScriptedSource.FAIL)
    failing[7].append(ScriptedSource.FAIL)
    assert outputs(failing) == outputs(script)


def waiting_in(directory: Path) -> set[tuple[bytes, ...]]:
    """Time, key and place of all records that wait in the newest checkpoint."""
    log = CheckpointLog(LocalFileSystem(), CheckpointLayout.of_job(str(directory), "job"))
    manifest = log.newest("job")
    assert manifest is not None
    left: set[tuple[bytes, ...]] = set()
    for file in manifest.files():
        for entries in read_table_file(log.fs, log.layout.root, file):
            for entry in entries:
                if entry.state == "_waiting":
                    place = (entry.key, entry.namespace, entry.map_key)
                    (left.discard if entry.value is None else left.add)(place)
    return left


@pytest.mark.parametrize(("before", "after"), [("2", "2"), ("2", "3"), ("3", "1")])
def test_waiting_records_outlive_a_failure(
    make_env: Any,
    restartable_env: Any,
    collect_until_error: Any,
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    """The job goes on later, with as many subtasks or with others."""
    records = out_of_order(200, by=50)

    def stream(parallelism: str, fails_at: int) -> Any:
        def check(record: Any) -> Any:
            if record[2] == fails_at:
                raise ValueError("now")
            return record

        env = restartable_env({"parallelism.default": parallelism})
        source = env.from_collection(records).uid("source").map(check).uid("check")
        keyed = source.set_parallelism(1).assign_timestamps_and_watermarks(late_by_at_most(50))
        ordered = keyed.uid("time").key_by(lambda r: r[0]).in_event_time_order()
        return ordered.process(Journal()).uid("journal")

    def by_key(outputs: list[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for _, kind, what, *rest in outputs:
            found.setdefault(what if kind == "timer" else what[0], []).append((kind, what, *rest))
        return found

    first, _ = collect_until_error(stream(before, fails_at=150))
    assert len(waiting_in(tmp_path / "checkpoints")) > 10
    second = list(stream(after, fails_at=-1).execute_and_collect())
    keyed = timed(make_env(), [records], 50).key_by(lambda r: r[0])
    in_one_go = list(keyed.in_event_time_order().process(Journal()).execute_and_collect())

    assert first
    assert by_key(first + second) == by_key(in_one_go)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_nothing_is_left_when_the_last_watermark_has_come(
    restartable_env: Any, tmp_path: Path, backend: str
) -> None:
    waiting: list[int] = []
    env = restartable_env({"state.backend.type": backend})
    env.add_epoch_listener(lambda report: waiting.append(len(waiting_in(tmp_path / "checkpoints"))))
    keyed = timed(env, cut(out_of_order(200, by=50), 10), 50).key_by(lambda r: r[0])
    found = list(keyed.in_event_time_order().map(lambda r: r).execute_and_collect())
    assert len(found) == 200
    assert min(waiting[:-2]) > 0  # the source's last epoch ends with its last watermark
    assert waiting[-1] == 0


def test_more_records_wait_than_memory_shall_hold(make_env: Any) -> None:
    """They go to disk and come back, several times over, and in order."""
    records = out_of_order(3000, by=1500)

    def outputs(settings: dict[str, str]) -> dict[int, bytes]:
        keyed = timed(make_env(settings), cut(records, 3), 1500).key_by(lambda r: r[0])
        return by_subtask(keyed.in_event_time_order().process(Journal()).execute_and_collect())

    assert outputs({"penstock.state.cache-entries": "50"}) == outputs({})


def test_memory_is_bounded_while_many_records_are_handed_over(
    restartable_env: Any, tmp_path: Path
) -> None:
    """All at the last watermark: what changes by that goes to disk in parts, as ever."""
    parts: set[str] = set()

    def look(report: EpochReport) -> None:
        if report.epoch == 1:  # in which the source ends
            found = (tmp_path / "checkpoints").rglob(f"{report.epoch:010d}_*.segment*")
            parts.update(path.name for path in found)

    settings = {"penstock.state.cache-entries": "50", "parallelism.default": "1"}
    env = restartable_env({**settings, "penstock.source.max-records-per-epoch": "100000"})
    env.add_epoch_listener(look)
    script = [[("k", time) for time in range(9000, 0, -1)], []]
    keyed = timed(env, script, 10_000).key_by(lambda r: r[0]).in_event_time_order()
    found = list(keyed.map(lambda r: r[1]).execute_and_collect())
    assert found == list(range(1, 9001))
    assert len(parts) > 1


def test_giving_the_order_up_is_refused_while_records_may_wait(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def stream(settings: dict[str, str], ends: bool) -> Any:
        def check(record: Any) -> Any:
            if record[2] == 150 and not ends:
                raise ValueError("now")
            return record

        source = restartable_env(settings).from_collection(out_of_order(200, by=50)).uid("source")
        timed = source.assign_timestamps_and_watermarks(late_by_at_most(50)).uid("time")
        return timed.map(check).uid("check").key_by(lambda r: r[0]).map(lambda r: r).uid("map")

    collect_until_error(stream(EVERYWHERE, ends=False))
    with pytest.raises(CheckpointMismatchError, match=r"'Map' \(.*keep in_event_time_order\(\)"):
        list(stream({}, ends=True).execute_and_collect())
    assert len(list(stream(EVERYWHERE, ends=True).execute_and_collect())) > 0


@pytest.mark.spark
@pytest.mark.parametrize("executor", ["spark"], indirect=True)
def test_a_spark_source(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """One file an epoch, with its rows in several tasks; each is late by less than two files."""
    times = list(range(90))
    random.Random(2).shuffle(times)
    for number in range(3):
        part = sorted(times, key=lambda time: time // 30)[number * 30 : number * 30 + 30]
        rows = spark.createDataFrame([("x", time) for time in part], "k string, t long")
        rows.repartition(2).write.parquet(str(tmp_path / "in" / str(number)))
    frame = (
        spark.readStream.schema("k string, t long")
        .option("maxFilesPerTrigger", 2)
        .option("recursiveFileLookup", "true")
        .parquet(str(tmp_path / "in"))
    )
    stream = make_env().from_spark(frame, tuple, bounded=True)
    keyed = stream.assign_timestamps_and_watermarks(late_by_at_most(90)).key_by(lambda r: r[0])
    found = keyed.in_event_time_order().map(lambda r: r[1]).execute_and_collect()
    assert list(found) == list(range(90))


def test_explain_says_so(make_env: Any) -> None:
    env = make_env(EVERYWHERE)
    timed(env, [[("k", 1)]], 0).key_by(lambda r: r[0]).map(lambda r: r).print()
    assert "keyed input in event-time order" in env.explain()
