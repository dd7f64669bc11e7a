"""Row A16: loops converge, their records are state, and time does not wait for them."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from silent_source import ThenSilent

from penstock.common import Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.datastream import (
    CheckpointingMode,
    CoMapFunction,
    DataStream,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import (
    CheckpointMismatchError,
    InvalidProgramError,
    UnsupportedFeatureError,
)
from penstock.runtime import loop_records
from penstock.runtime.watermarks import MAX_TIMESTAMP
from penstock.testing import ScriptedSource

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)
on_spark = pytest.mark.parametrize("executor", ["spark"], indirect=True)

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}


def less(pair: tuple[Any, int]) -> tuple[Any, int]:
    return pair[0], pair[1] - 1


def left(pair: tuple[Any, int]) -> bool:
    return pair[1] > 0


def done(pair: tuple[Any, int]) -> bool:
    return pair[1] <= 0


def counted_down(pairs: DataStream, **uids: str) -> DataStream:
    """(name, 0) for every (name, turns), after as many turns."""
    loop = pairs.iterate()
    if "uid" in uids:
        loop = loop.uid(uids["uid"])
    body = loop.map(less)
    loop.close_with(body.filter(left))
    return body.filter(done)


class CountsSteps(KeyedProcessFunction):
    """A step of Collatz' sequence; how many there were is in the state of the number they began
    with."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._steps = runtime_context.get_state(ValueStateDescriptor("steps", Types.LONG()))

    def process_element(self, value: tuple[int, int, int], ctx: Any) -> Any:
        start, number, _ = value
        steps = self._steps.value() or 0
        if number > 1:
            steps += 1
            self._steps.update(steps)
            number = number // 2 if number % 2 == 0 else 3 * number + 1
        yield start, number, steps


def test_converges_with_keyed_state_in_the_loop(env: StreamExecutionEnvironment) -> None:
    epochs: list[Any] = []
    env.add_epoch_listener(epochs.append)
    loop = env.from_elements(1, 2, 4, 5).map(lambda n: (n, n, 0)).iterate()
    steps = loop.key_by(lambda record: record[0]).process(CountsSteps())
    loop.close_with(steps.filter(lambda record: record[1] > 1))
    ends = steps.filter(lambda record: record[1] == 1).map(lambda record: (record[0], record[2]))

    assert sorted(ends.execute_and_collect()) == [(1, 0), (2, 1), (4, 2), (5, 5)]

    in_loop = [sum(loop.records for loop in epoch.loops.values()) for epoch in epochs]
    assert in_loop == [2, 1, 1, 1, 0, 0]
    assert [epoch.final for epoch in epochs] == [False] * 5 + [True]
    assert [loop.turns_without_input for e in epochs for loop in e.loops.values()][:3] == [0, 1, 2]


@pytest.mark.spark
@on_spark
def test_records_go_round_while_a_spark_source_is_silent(
    spark: Any, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    spark.createDataFrame([("a", 3), ("b", 1)], "k string, n int").write.parquet(
        str(tmp_path / "in")
    )
    frame = spark.readStream.schema("k string, n int").parquet(str(tmp_path / "in"))

    with counted_down(env.from_spark(frame, tuple)).execute_and_collect() as results:
        assert sorted(islice(results, 2)) == [("a", 0), ("b", 0)]


@pytest.mark.spark
@on_spark
def test_a_bounded_spark_source_ends_when_its_loop_is_dry(
    spark: Any, env: StreamExecutionEnvironment
) -> None:
    frame = spark.createDataFrame([("a", 3), ("b", 1)], "k string, n int")
    stream = counted_down(env.from_spark(frame, tuple))
    assert sorted(stream.execute_and_collect()) == [("a", 0), ("b", 0)]


@locally
def test_records_go_round_while_a_python_source_is_silent(env: StreamExecutionEnvironment) -> None:
    source = env.from_source(ThenSilent(("a", 3), ("b", 1)))
    with counted_down(source).execute_and_collect() as results:
        assert sorted(islice(results, 2)) == [("a", 0), ("b", 0)]


# Shapes


@locally
def test_loops_one_behind_the_other(env: StreamExecutionEnvironment) -> None:
    first = counted_down(env.from_elements(("a", 2), ("b", 4)))
    second = counted_down(first.map(lambda pair: (pair[0], 3)))
    assert sorted(second.execute_and_collect()) == [("a", 0), ("b", 0)]


@locally
def test_a_loop_in_a_loop(env: StreamExecutionEnvironment) -> None:
    """The inner one counts down from 2, as often as the outer one goes round."""
    outer = env.from_elements(("a", 2), ("b", 3)).map(lambda p: (*p, 0, 0)).iterate()
    inner = outer.map(lambda r: (r[0], r[1], 2, r[3])).iterate()
    body = inner.map(lambda r: (r[0], r[1], r[2] - 1, r[3] + 1))
    inner.close_with(body.filter(lambda r: r[2] > 0))
    turned = body.filter(lambda r: r[2] == 0).map(lambda r: (r[0], r[1] - 1, 0, r[3]))
    outer.close_with(turned.filter(lambda r: r[1] > 0))
    ends = turned.filter(lambda r: r[1] == 0).map(lambda r: (r[0], r[3]))
    assert sorted(ends.execute_and_collect()) == [("a", 4), ("b", 6)]


@locally
def test_closed_with_several_streams(env: StreamExecutionEnvironment) -> None:
    """By two calls, and by a union with a stream from elsewhere; spread over the subtasks."""
    other = env.from_elements(("from elsewhere", 2))
    loop = env.from_elements(("odd", 3), ("even", 4)).iterate()
    body = loop.map(less)
    loop.close_with(body.filter(lambda p: left(p) and p[1] % 2 == 1).rebalance())
    loop.close_with(
        body.filter(lambda p: left(p) and p[1] % 2 == 0)
        .key_by(lambda p: p[0])
        .union(other.map(lambda p: p))
    )
    results = body.filter(done).execute_and_collect()
    assert sorted(results) == [("even", 0), ("from elsewhere", 0), ("odd", 0)]


class NumbersAndTexts(CoMapFunction):
    def map1(self, value: int) -> str:
        return f"{value}"

    def map2(self, value: str) -> str:
        return f"({value})"


@locally
def test_feedback_of_another_type(env: StreamExecutionEnvironment) -> None:
    loop = env.from_elements(1, 2).iterate().with_feedback_type(Types.STRING())
    texts = loop.map(NumbersAndTexts(), Types.STRING())
    assert loop.close_with(texts.filter(lambda text: len(text) < 5)).get_type() == Types.STRING()
    ends = texts.filter(lambda text: len(text) >= 5)
    assert sorted(ends.execute_and_collect()) == ["((1))", "((2))"]


@locally
def test_records_that_change_after_they_were_sent_back(env: StreamExecutionEnvironment) -> None:
    class SamePlace(KeyedProcessFunction):
        """Gives the same list every time, and changes it afterwards."""

        def process_element(self, value: list[int], ctx: Any) -> Any:
            yield value
            value.append(-1)

    loop = env.from_elements([1], [2], [3]).iterate()
    body = loop.key_by(lambda v: v[0]).process(SamePlace()).map(lambda v: [*v, v[-1]])
    loop.close_with(body.filter(lambda v: len(v) < 4))
    ends = body.filter(lambda v: len(v) == 4)
    assert sorted(ends.execute_and_collect()) == [[n] * 4 for n in (1, 2, 3)]


@locally
@pytest.mark.parametrize("parallelism", [1, 3])
def test_another_parallelism_than_the_source(
    env: StreamExecutionEnvironment, parallelism: int
) -> None:
    loop = env.from_elements(("a", 3), ("b", 1)).iterate()
    body = loop.map(less).set_parallelism(parallelism)
    loop.close_with(body.filter(left).set_parallelism(parallelism))
    assert sorted(body.filter(done).execute_and_collect()) == [("a", 0), ("b", 0)]


@locally
def test_many_records_in_the_loop(make_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a file holds; in order, by whatever file they came."""
    monkeypatch.setattr(loop_records, "_FILE_BYTES", 20_000)
    count = 30_000
    epochs: list[Any] = []
    env = make_env({"parallelism.default": "1"})
    env.add_epoch_listener(epochs.append)
    pairs = env.from_collection(range(count)).map(lambda n: (n, 3))

    results = list(counted_down(pairs).execute_and_collect())

    assert results == [(n, 0) for n in range(count)]
    assert [loop.records for e in epochs for loop in e.loops.values()][:2] == [count, count]


# Time


BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(0).with_timestamp_assigner(
    lambda record, _: record[2]
)


def _windowed(env: StreamExecutionEnvironment, script: Any) -> list[Any]:
    """Counts (name, turns, time) by windows of a second behind the loop."""
    stream = env.from_source(ScriptedSource(script), BY_TIME)
    loop = stream.iterate()
    body = loop.map(lambda r: (r[0], r[1] - 1, r[2]))
    loop.close_with(body.filter(lambda r: r[1] > 0))
    windows = (
        body.filter(lambda r: r[1] <= 0)
        .map(lambda r: (r[2] // 1000, 1))
        .key_by(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
    )
    return sorted(windows.sum(1).execute_and_collect())


@locally
def test_the_end_of_time_waits_for_the_loop(env: StreamExecutionEnvironment) -> None:
    """The source has ended, and what is still in the loop is not late by that."""
    assert _windowed(env, [[("a", 1, 100), ("b", 4, 200), ("c", 2, 1500)]]) == [(0, 2), (1, 1)]


class BehindTheEnd(ProcessFunction):
    """Whether a record finds time at its end."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield ctx.timer_service().current_watermark() == MAX_TIMESTAMP


@locally
def test_the_end_of_time_waits_for_a_loop_within(env: StreamExecutionEnvironment) -> None:
    """The outer one is empty meanwhile."""
    outer = env.from_source(ScriptedSource([[("a", 2, 100)]]), BY_TIME).iterate()
    inner = outer.map(lambda r: (r[0], r[1], r[2], 5)).iterate()
    body = inner.map(lambda r: (*r[:3], r[3] - 1))
    inner.close_with(body.filter(lambda r: r[3] > 0))
    turned = body.filter(lambda r: r[3] == 0).map(lambda r: (r[0], r[1] - 1, r[2]))
    outer.close_with(turned.filter(lambda r: r[1] > 0))
    assert list(outer.process(BehindTheEnd()).execute_and_collect()) == [False, False]


@locally
def test_the_end_of_time_waits_for_what_else_enters_the_loop(
    env: StreamExecutionEnvironment,
) -> None:
    """By the feedback alone, long after the input has ended."""
    other = env.from_source(ScriptedSource([[], [], [], [], [], [("b", 1, 200)]]), BY_TIME)
    loop = env.from_source(ScriptedSource([[("a", 1, 100)]]), BY_TIME).iterate()
    body = loop.map(lambda r: (r[0], r[1] - 1, r[2]))
    loop.close_with(body.filter(lambda r: r[1] > 0).union(other))
    assert list(loop.process(BehindTheEnd()).execute_and_collect()) == [False, False]


@locally
def test_other_watermarks_do_not(env: StreamExecutionEnvironment) -> None:
    """As in Flink: b comes out of the loop when its window has been."""
    script = [[("a", 1, 100), ("b", 4, 200)], [("c", 1, 5000)], [], [("d", 1, 5001)]]
    assert _windowed(env, script) == [(0, 1), (5, 2)]


class OnceMoreAtTheEnd(KeyedProcessFunction):
    """Sends its record on, and another one when time has come to its end."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[0] != "again":
            ctx.timer_service().register_event_time_timer(10_000)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ("again", 2, timestamp)


@locally
def test_what_timers_send_round_at_the_end_is_not_lost(env: StreamExecutionEnvironment) -> None:
    stream = env.from_source(ScriptedSource([[("a", 2, 100)]]), BY_TIME)
    loop = stream.iterate()
    body = (
        loop.key_by(lambda r: r[0])
        .process(OnceMoreAtTheEnd())
        .map(lambda r: (r[0], r[1] - 1, r[2]))
    )
    loop.close_with(body.filter(lambda r: r[1] > 0))
    ends = body.filter(lambda r: r[1] <= 0).map(lambda r: r[0])
    assert sorted(ends.execute_and_collect()) == ["a", "again"]


class Later(KeyedProcessFunction):
    """Holds every record for a while."""

    def __init__(self, millis: int) -> None:
        self._millis = millis

    def open(self, runtime_context: RuntimeContext) -> None:
        self._held = runtime_context.get_state(ValueStateDescriptor("held", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._held.update(value[1])
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + self._millis)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self._held.value()


@locally
@pytest.mark.parametrize(("wait", "hold", "expected"), [(0, 60_000, []), (1500, 100, [("a", 0)])])
def test_an_empty_loop_is_waited_for(
    env: StreamExecutionEnvironment, wait: int, hold: int, expected: list[Any]
) -> None:
    loop = env.from_elements(("a", 2)).iterate(max_wait_time_millis=wait)
    body = loop.key_by(lambda r: r[0]).process(Later(hold)).map(less)
    loop.close_with(body.filter(left))
    assert list(body.filter(done).execute_and_collect()) == expected


# Failures


@locally
def test_restart_with_records_in_the_loop(make_env: Any, tmp_path: Path) -> None:
    """The function fails in the third turn, when some records have come out and some not."""
    marker = tmp_path / "failed"

    def fails_once(pair: tuple[Any, int]) -> tuple[Any, int]:
        if pair[1] == 2 and pair[0] == "c" and not marker.exists():
            marker.touch()
            raise RuntimeError("once")
        return pair

    env = make_env(RESTARTS)
    source = ScriptedSource([[("a", 1), ("b", 3)], [("c", 4)], [("d", 1)]])
    loop = env.from_source(source).iterate()
    body = loop.map(fails_once).map(less)
    loop.close_with(body.filter(left))

    results = list(body.filter(done).execute_and_collect())

    assert marker.exists()
    assert sorted(results) == [("a", 0), ("b", 0), ("c", 0), ("d", 0)]


@locally
def test_at_most_once_drops_what_was_in_the_loop(make_env: Any, tmp_path: Path) -> None:
    """As it drops all records of an epoch that was tried before."""
    marker = tmp_path / "failed"

    def fails_once(pair: tuple[Any, int]) -> tuple[Any, int]:
        if pair == ("a", 2) and not marker.exists():
            marker.touch()
            raise RuntimeError("once")
        return pair

    env = make_env(RESTARTS)
    env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode.AT_MOST_ONCE)
    loop = env.from_source(ScriptedSource([[("a", 3)], [], [("b", 2)]])).iterate()
    body = loop.map(fails_once).map(less)
    loop.close_with(body.filter(left))
    assert list(body.filter(done).execute_and_collect()) == [("b", 0)]


@locally
@pytest.mark.parametrize("steps", [(2, 3, 1), (1, 4, 2)], ids=str)
def test_another_parallelism_with_records_in_the_loop(
    restartable_env: Any, collect_until_error: Any, steps: tuple[int, ...]
) -> None:
    settings = {"penstock.source.max-records-per-epoch": "1000"}

    def fails_at(turn: int) -> Any:
        """Raises when the loop has gone round so often."""

        def check(pair: tuple[int, int]) -> tuple[int, int]:
            number, turns = pair
            if number % 8 == 7 and 8 - turns == turn:
                raise RuntimeError("half-way")
            return pair

        return check

    def program(parallelism: int, turn: int) -> DataStream:
        env = restartable_env({**settings, "parallelism.default": str(parallelism)})
        numbers = env.from_sequence(0, 199).uid("numbers").map(lambda n: (n, 1 + n % 8))
        loop = numbers.iterate().uid("loop")
        body = loop.map(fails_at(turn)).map(less)
        loop.close_with(body.filter(left))
        return body.filter(done)

    first, _ = collect_until_error(program(steps[0], turn=2))
    second, _ = collect_until_error(program(steps[1], turn=5))
    third = list(program(steps[2], turn=-1).execute_and_collect())

    assert first
    assert second
    assert third
    assert Counter(first + second + third) == Counter((n, 0) for n in range(200))


@locally
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 2), (2, 2)])
def test_another_parallelism_with_records_for_all_in_the_loop(
    restartable_env: Any, collect_until_error: Any, before: int, after: int
) -> None:
    """Each subtask has each of them once, however many there are by then."""

    def program(parallelism: int, fails_at: int) -> DataStream:
        def check(pair: tuple[int, int]) -> tuple[int, int]:
            return pair[0], pair[1] // (pair[1] != fails_at)

        env = restartable_env({"parallelism.default": str(parallelism)})
        loop = env.from_sequence(0, 4).uid("n").map(lambda n: (n, 2)).iterate().uid("loop")
        body = loop.map(check).map(less)
        loop.close_with(body.filter(left).broadcast())
        return body.filter(done)

    first, _ = collect_until_error(program(before, fails_at=1))
    assert first == []
    results = program(after, fails_at=-1).execute_and_collect()
    assert Counter(results) == {(n, 0): after for n in range(5)}


@locally
def test_another_program_may_not_lose_the_loop(
    restartable_env: Any, collect_until_error: Any
) -> None:
    def fail(pair: tuple[str, int]) -> tuple[str, int]:
        if pair[1] == 1:
            raise RuntimeError("half-way")
        return pair

    pairs = restartable_env().from_elements(("a", 3)).uid("pairs").map(fail)
    loop = pairs.iterate().uid("loop")
    body = loop.map(fail).map(less)
    loop.close_with(body.filter(left))
    collect_until_error(body)

    pairs = restartable_env().from_elements(("a", 3)).uid("pairs")
    with pytest.raises(CheckpointMismatchError, match="- loop: records in its loop"):
        list(pairs.map(less).uid("loop").execute_and_collect())


# What is refused, and what is said


@locally
def test_a_loop_that_does_not_end(make_env: Any, caplog: pytest.LogCaptureFixture) -> None:
    epochs: list[Any] = []
    env = make_env({"penstock.iteration.warn-after-turns": "5"})
    env.add_epoch_listener(epochs.append)
    loop = env.from_elements(7, 8).iterate()
    body = loop.map(lambda n: n)
    loop.close_with(body)
    with caplog.at_level(logging.WARNING), body.execute_and_collect() as results:
        for _ in results:
            if epochs and epochs[-1].epoch >= 8:
                break
    (warning,) = (m for m in caplog.messages if "turned" in m)
    line = _line_of("loop = env.from_elements(7, 8)")
    assert warning.startswith(f"Iteration ({__file__}:{line}) has turned 5 times without input")
    assert "still has 2 records in its loop" in warning
    (last,) = epochs[8].loops.values()
    assert (last.records, last.turns_without_input) == (2, 8)
    (subtasks,) = epochs[8].metrics.values()
    assert subtasks == [{f"Iteration.{i}.numRecordsInLoop": 1} for i in range(2)]


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@locally
def test_never_closed(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).iterate().map(lambda n: n)
    with pytest.raises(
        InvalidProgramError, match=r"'Iteration' \(.*test_iterations.py:\d+\).*never"
    ):
        stream.execute_and_collect()


@locally
def test_unlike_parallelism(env: StreamExecutionEnvironment) -> None:
    loop = env.from_elements(1).iterate().set_parallelism(2)
    body = loop.map(lambda n: n).name("Body").set_parallelism(1)
    loop.close_with(body)
    with pytest.raises(InvalidProgramError, match=r"parallelism 2, and 'Body' .* has 1"):
        body.execute_and_collect()


@locally
def test_batch_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = counted_down(env.from_elements(("a", 2)))
    with pytest.raises(UnsupportedFeatureError, match=r"iteration .*test_iterations.*STREAMING"):
        stream.execute_and_collect()


@locally
def test_automatic_mode_is_streaming(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    stream = counted_down(env.from_elements(("a", 2)))
    assert list(stream.execute_and_collect()) == [("a", 0)]
