"""Row A17: asynchronous calls, ordered and not, in jobs; what goes on between two records of
theirs, at the end of an epoch, after a failure and when the job is cancelled."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.async_retry_predicates import has_exception_predicate
from penstock.errors import AsyncTimeoutError, JobCancelledError, UserFunctionError
from penstock.testing import ScriptedSource

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)
both_modes = pytest.mark.parametrize("method", ["ordered_wait", "unordered_wait"])

MIN = -(1 << 63)
LONG = Time.minutes(10)
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "0 ms",
}


class Backwards(AsyncFunction):
    """Of so many records in a row, the last is answered first, and so on to the first."""

    def __init__(self, together: int) -> None:
        self._together = together
        self._answered: dict[int, asyncio.Event] = {}

    def _event(self, number: int) -> asyncio.Event:
        return self._answered.setdefault(number, asyncio.Event())

    async def async_invoke(self, value: Any) -> list[Any]:
        number = value[0] if isinstance(value, tuple) else value
        if (number + 1) % self._together:
            await self._event(number + 1).wait()
        self._event(number).set()
        return [value]


def test_a_hundred_slow_calls_overlap(env: StreamExecutionEnvironment) -> None:
    """Each waits for the next one: without overlap none is ever answered."""
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    numbers = env.set_parallelism(1).from_sequence(0, 99)

    slow = AsyncDataStream.ordered_wait(numbers, Backwards(100), LONG, 100, Types.LONG())
    found = slow.uid("slow").map(lambda value: value * 2).execute_and_collect()

    assert list(found) == list(range(0, 200, 2))
    # The last epoch may have an instance of its own, which has called nothing.
    most: Counter[str] = Counter()
    for report in reports:
        for group in report.metrics.get("slow", []):
            most |= Counter({name.rpartition(".")[2]: value for name, value in group.items()})
    assert most == {"maxAsyncInFlight": 100}


@locally
def test_unordered_results_leave_as_they_are_ready(env: StreamExecutionEnvironment) -> None:
    numbers = env.set_parallelism(1).from_sequence(0, 9)

    found = AsyncDataStream.unordered_wait(numbers, Backwards(10), LONG).execute_and_collect()

    assert list(found) == list(range(9, -1, -1))


class Several(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        return [value] * value


@locally
@both_modes
def test_any_number_of_results(env: StreamExecutionEnvironment, method: str) -> None:
    numbers = env.from_elements(0, 1, 3)

    found = getattr(AsyncDataStream, method)(numbers, Several(), LONG).execute_and_collect()

    assert sorted(found) == [1, 3, 3, 3]


@locally
@both_modes
def test_where_a_stream_forks(env: StreamExecutionEnvironment, method: str) -> None:
    """Records come one by one there, and are under way together all the same."""
    numbers = env.set_parallelism(1).from_sequence(0, 9)
    plain = numbers.map(lambda value: value + 100)

    asked = getattr(AsyncDataStream, method)(numbers, Backwards(10), LONG)

    found = sorted(asked.union(plain).execute_and_collect())
    assert found == [*range(10), *range(100, 110)]


# Event time


class AfterThird(WatermarkGenerator):
    """Punctuated: a watermark behind every third record."""

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        if event[0] % 3 == 2:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Shown(ProcessFunction):
    """Each record with its timestamp and the watermark that it met."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


EVERY_THIRD = WatermarkStrategy.for_generator(AfterThird).with_timestamp_assigner(
    lambda record, _: record[1]
)


def timed(env: StreamExecutionEnvironment) -> Any:
    records = [(number, number * 10) for number in range(9)]
    source = env.set_parallelism(1).from_collection(records)
    return source.assign_timestamps_and_watermarks(EVERY_THIRD)


@locally
@pytest.mark.parametrize("chained", [True, False])
@both_modes
def test_watermarks_keep_their_place(
    env: StreamExecutionEnvironment, method: str, chained: bool
) -> None:
    """And do not stop the calls behind them: the first three wait for the last of the nine."""

    class AcrossWatermarks(Backwards):
        async def async_invoke(self, value: Any) -> list[Any]:
            if value[0] == 2:
                await self._event(8).wait()
            return await super().async_invoke(value)

    calls = getattr(AsyncDataStream, method)(timed(env), AcrossWatermarks(3), LONG)
    shown = (calls if chained else calls.global_()).process(Shown())

    ordered = list(range(9)) if method == "ordered_wait" else [2, 1, 0, 5, 4, 3, 8, 7, 6]
    watermarks = [MIN] * 3 + [20] * 3 + [50] * 3
    assert list(shown.execute_and_collect()) == [
        (number, number * 10, watermark)
        for number, watermark in zip(ordered, watermarks, strict=True)
    ]


class TwiceWithTime(ProcessFunction):
    """Asks for the time of its record again after something was emitted."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value[0] * 2, ctx.timestamp()
        yield value[0] * 2 + 1, ctx.timestamp()


class WithTime(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


@locally
@both_modes
def test_who_is_before_keeps_its_time(env: StreamExecutionEnvironment, method: str) -> None:
    """Answers to earlier records leave between two results of one record."""
    twice = timed(env).process(TwiceWithTime())

    calls = getattr(AsyncDataStream, method)(twice, Backwards(2), LONG, 2)
    found = sorted(calls.process(WithTime()).execute_and_collect())

    times = [number // 2 * 10 for number in range(18)]
    assert found == [((number, time), time) for number, time in enumerate(times)]


class Itself(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [value]


@locally
def test_on_a_keyed_stream(env: StreamExecutionEnvironment) -> None:
    keyed = timed(env).key_by(lambda record: record[0] % 2)

    calls = AsyncDataStream.ordered_wait(keyed, Itself(), LONG)

    assert sorted(calls.process(WithTime()).execute_and_collect()) == [
        ((number, number * 10), number * 10) for number in range(9)
    ]


@locally
@both_modes
def test_in_event_time_order(env: StreamExecutionEnvironment, method: str) -> None:
    """The calls are made in order; watermarks still keep their place."""
    records = [(1, 10), (0, 0), (2, 20), (4, 40), (3, 30), (5, 50), (7, 70), (6, 60), (8, 80)]
    source = env.set_parallelism(1).from_collection(records)
    in_order = source.assign_timestamps_and_watermarks(EVERY_THIRD).key_by(lambda record: "all")

    calls = getattr(AsyncDataStream, method)(in_order.in_event_time_order(), Backwards(3), LONG)

    shown = list(calls.process(WithTime()).execute_and_collect())
    ordered = list(range(9)) if method == "ordered_wait" else [2, 1, 0, 5, 4, 3, 8, 7, 6]
    assert shown == [((number, number * 10), number * 10) for number in ordered]


# Epochs


class SlowAtFirst(AsyncFunction):
    async def async_invoke(self, value: str) -> list[str]:
        await asyncio.sleep(0.05 if value == "first" else 0)
        return [value]


@locally
def test_no_call_outlives_its_epoch(env: StreamExecutionEnvironment) -> None:
    source = ScriptedSource([["first", "second"], ["third"], ["fourth"]])
    stream = env.set_parallelism(1).from_source(source)

    found = AsyncDataStream.unordered_wait(stream, SlowAtFirst(), LONG).execute_and_collect()

    assert list(found) == ["second", "first", "third", "fourth"]


class CountsCalls(AsyncFunction):
    """Every call leaves a line in a file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    async def async_invoke(self, value: int) -> list[int]:
        with open(self._path, "a") as file:
            file.write(f"{value}\n")
        await asyncio.sleep(0.001 * (value % 3))
        return [value]


class FailsOnce:
    def __init__(self, path: Path, at: int) -> None:
        self._path, self._at = str(path), at

    def __call__(self, value: int) -> int:
        if value == self._at and not os.path.exists(self._path):
            with open(self._path, "w"):
                raise RuntimeError("as was to be expected")
        return value


def test_after_a_failure_records_are_asked_again(make_env: Any, tmp_path: Path) -> None:
    """Those of the failed epoch, and no others; every result is there once."""
    calls = tmp_path / "calls"
    source = ScriptedSource([[0, 1, 2], [3, 4, 5], [6, 7]])
    stream = make_env(RESTARTS).set_parallelism(1).from_source(source)

    asked = AsyncDataStream.unordered_wait(stream, CountsCalls(calls), LONG)
    found = asked.map(FailsOnce(tmp_path / "failed", at=4)).execute_and_collect()

    assert sorted(found) == list(range(8))
    asked_for = sorted(map(int, calls.read_text().split()))
    assert [asked_for.count(n) for n in (0, 1, 2, 6, 7)] == [1] * 5
    assert asked_for.count(4) == 2


class Diary(AsyncFunction):
    """Waits for ever, and writes down what becomes of it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def _note(self, what: str) -> None:
        with open(self._path, "a") as file:
            file.write(f"{what}\n")

    async def async_invoke(self, value: Any) -> list[Any]:
        self._note("called")
        try:
            await asyncio.sleep(3600)
        finally:
            self._note("given up")
        return []

    def close(self) -> None:
        self._note("closed")


def test_a_cancelled_job_does_not_wait_for_answers(make_env: Any, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    env = make_env()
    stream = env.set_parallelism(1).from_sequence(1, 2)
    AsyncDataStream.unordered_wait(stream, Diary(diary), Time.hours(1)).print()
    job = env.execute_async("waiting")
    deadline = time.monotonic() + 60
    while not diary.exists() or diary.read_text().count("called") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    cancelled = time.monotonic()
    job.cancel().result()

    assert time.monotonic() - cancelled < 60
    with pytest.raises(JobCancelledError):
        job.get_job_execution_result().result()
    if env._configuration.to_dict()["penstock.executor"] == "local":
        assert diary.read_text().split("\n")[2:] == ["given up", "given up", "closed", ""]


# What goes wrong


class Fails(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        if value == 7:
            await asyncio.sleep(3600)  # never answered
        return [1 // (value - 3)]  # divides


def line_of(text: str) -> str:
    with open(__file__, encoding="utf-8") as lines:
        return f"test_async_io.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


@locally
@both_modes
def test_an_error_in_a_chain_is_of_the_asynchronous_operator(
    env: StreamExecutionEnvironment, method: str
) -> None:
    numbers = env.from_sequence(1, 5).map(lambda value: value)
    asked = getattr(AsyncDataStream, method)(numbers, Fails(), LONG).name("asks")

    message = f"operator 'asks .*' failed at .*{line_of('# divides')}: ZeroDivisionError"
    with pytest.raises(UserFunctionError, match=message):
        list(asked.map(str).execute_and_collect())


@locally
@both_modes
def test_errors_before_and_behind_are_not_of_it(
    env: StreamExecutionEnvironment, method: str
) -> None:
    before = env.from_elements(0).map(lambda value: 1 // value).name("before")
    behind = getattr(AsyncDataStream, method)(env.from_elements(0), Itself(), LONG)
    behind = behind.map(lambda value: 1 // value).name("behind")

    with pytest.raises(UserFunctionError, match="operator 'before"):
        list(getattr(AsyncDataStream, method)(before, Itself(), LONG).execute_and_collect())
    with pytest.raises(UserFunctionError, match="operator 'behind"):
        list(behind.execute_and_collect())


@locally
def test_a_call_that_is_never_answered(env: StreamExecutionEnvironment) -> None:
    asked = AsyncDataStream.unordered_wait(env.from_elements(7), Fails(), Time.milliseconds(50))

    message = r"operator 'asks' .*test_async_io.py.* async_invoke for 7 gave no answer within "
    message += f"0.05 s, waiting at .*{line_of('# never answered')}"
    with pytest.raises(AsyncTimeoutError, match=message):
        list(asked.name("asks").execute_and_collect())


class SlowOnce(AsyncFunction):
    def __init__(self, path: Path) -> None:
        self._path = path

    async def async_invoke(self, value: int) -> list[int]:
        if not self._path.exists():
            self._path.touch()
            await asyncio.sleep(3600)
        return [value]


@locally
def test_a_restart_may_help_against_it(make_env: Any, tmp_path: Path) -> None:
    numbers = make_env(RESTARTS).from_elements(1, 2)
    slow = SlowOnce(tmp_path / "asked")

    asked = AsyncDataStream.unordered_wait(numbers, slow, Time.milliseconds(50))

    assert sorted(asked.execute_and_collect()) == [1, 2]


class Unreachable(AsyncFunction):
    """Fails until the third attempt."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._attempts = 0

    async def async_invoke(self, value: int) -> list[int]:
        self._attempts += 1
        if self._attempts < 3:
            raise ConnectionError(self._attempts)
        return [self._attempts]


@locally
@both_modes
def test_further_attempts(env: StreamExecutionEnvironment, method: str) -> None:
    strategy = AsyncRetryStrategy.exponential_backoff(
        5, 1, 10, 2.0, exception_predicate=has_exception_predicate
    )

    asked = getattr(AsyncDataStream, f"{method}_with_retry")(
        env.from_elements(1), Unreachable(), LONG, strategy
    )

    assert list(asked.execute_and_collect()) == [3]
