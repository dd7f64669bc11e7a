"""Asynchronous functions in their harness: what they may do, and what becomes of their mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from penstock.common import Time
from penstock.datastream import AsyncFunction, AsyncRetryStrategy, RuntimeContext
from penstock.datastream.async_retry_predicates import (
    empty_result_predicate,
    has_exception_predicate,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import (
    AsyncTimeoutError,
    InvalidArgumentError,
    PenstockError,
    StateError,
    UserFunctionError,
)
from penstock.runtime.operators.async_io import calls
from penstock.testing import AsyncFunctionHarness, OperatorHarness

LONG = Time.seconds(10)
SHORT = Time.milliseconds(30)


def line_of(text: str) -> str:
    with open(__file__, encoding="utf-8") as lines:
        number = next(n for n, line in enumerate(lines, 1) if text in line)
    return f"test_async_harness.py:{number}"


class Doubled(AsyncFunction):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0)
        return [value] * 2


def test_results_of_one_and_of_several() -> None:
    with AsyncFunctionHarness(Doubled()) as harness:
        assert harness.process(1) == [1, 1]
        assert harness.process_all([2, 3]) == [2, 2, 3, 3]


def test_another_harness_names_this_one() -> None:
    with pytest.raises(InvalidArgumentError, match="use AsyncFunctionHarness"):
        OperatorHarness(Doubled())


class Together(AsyncFunction):
    """Answers when so many calls are under way."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._under_way = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self._all_here = asyncio.Event()

    async def async_invoke(self, value: Any) -> list[Any]:
        self._under_way += 1
        if self._under_way == self._number:
            self._all_here.set()
        await self._all_here.wait()
        return [value]


def test_calls_are_under_way_together() -> None:
    with AsyncFunctionHarness(Together(100)) as harness:
        assert harness.process_all(range(100)) == list(range(100))


class InThrees(AsyncFunction):
    """Three calls wait for one another; gives the number that were under way."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._under_way = 0
        self._three = asyncio.Event()

    async def async_invoke(self, value: Any) -> list[int]:
        self._under_way += 1
        three = self._three
        if self._under_way == 3:
            self._three = asyncio.Event()
            three.set()
        await three.wait()
        most, self._under_way = self._under_way, self._under_way - 1
        return [most]


def test_capacity_bounds_them() -> None:
    with AsyncFunctionHarness(InThrees(), capacity=3) as harness:
        assert max(harness.process_all(range(18))) == 3


class Session(AsyncFunction):
    """Its open and close are coroutines, as those of clients are; all runs in one thread."""

    log: ClassVar[list[str]] = []

    async def open(self, runtime_context: RuntimeContext) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self._threads = {threading.get_ident()}
        self._ticks = asyncio.create_task(self._tick())
        Session.log.append("open")

    async def _tick(self) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            Session.log.append("ticks end")

    async def async_invoke(self, value: Any) -> list[Any]:
        self._threads.add(threading.get_ident())
        if value == "slow":
            await asyncio.sleep(3600)
        return [len(self._threads)]

    def timeout(self, value: Any) -> list[Any]:
        self._threads.add(threading.get_ident())
        return [f"{value} is late", len(self._threads)]

    async def close(self) -> None:  # type: ignore[override]
        self._threads.add(threading.get_ident())
        await asyncio.sleep(0)
        Session.log.append(f"close in {len(self._threads)} thread")


def test_a_function_lives_in_one_thread_with_a_loop() -> None:
    Session.log = []
    with AsyncFunctionHarness(Session(), SHORT) as harness:
        assert harness.process("quick") == [1]
        assert harness.process_all(["slow", "quick"]) == ["slow is late", 1, 1]
    assert Session.log == ["open", "close in 1 thread", "ticks end"]
    assert not [t for t in threading.enumerate() if t.name.startswith("penstock async Session")]


class FailsToOpen(Doubled):
    def __init__(self, raised: BaseException) -> None:
        self._raised = raised

    def open(self, runtime_context: RuntimeContext) -> None:
        raise self._raised  # cannot open


@pytest.mark.parametrize(
    ("raised", "comes"), [(OSError("no"), UserFunctionError), (SystemExit("no"), SystemExit)]
)
def test_an_open_that_fails(raised: BaseException, comes: type[BaseException]) -> None:
    with pytest.raises(comes, match="no") as caught:
        AsyncFunctionHarness(FailsToOpen(raised))
    if comes is UserFunctionError:
        assert f"{line_of('# cannot open')}: OSError: no" in str(caught.value)
    assert not [t for t in threading.enumerate() if t.name.startswith("penstock async Fails")]


class FailsToClose(Doubled):
    async def close(self) -> None:  # type: ignore[override]
        raise TimeoutError("no answer")  # cannot close


def test_a_close_that_fails() -> None:
    harness = AsyncFunctionHarness(FailsToClose())
    with pytest.raises(UserFunctionError, match=f"{line_of('# cannot close')}: TimeoutError"):
        harness.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("penstock async Fails")]


class UsesState(Doubled):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("s"))


def test_there_is_no_keyed_state() -> None:
    with pytest.raises(StateError, match=r"asynchronous .* process function before or behind it"):
        AsyncFunctionHarness(UsesState())


# What goes wrong


class Never(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        return await self._asked(value)

    async def _asked(self, value: Any) -> list[Any]:
        await asyncio.get_running_loop().create_future()  # waits for ever
        return []


def test_a_call_that_is_never_answered() -> None:
    message = r"operator 'Never' .*test_async_harness.py.* 'x'\) gave no answer within 0.03 s, "
    message += f"waiting at .*{line_of('# waits for ever')}; raise the time-out, or override"
    with AsyncFunctionHarness(Never(), SHORT) as harness:
        with pytest.raises(AsyncTimeoutError, match=message) as caught:
            harness.process((7, "x"))
        assert isinstance(caught.value, TimeoutError)


class Stubborn(Doubled):
    """Takes no notice of being cancelled, and answers when it is too late."""

    async def async_invoke(self, value: Any) -> list[Any]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return ["too late"]

    def timeout(self, value: Any) -> list[Any]:
        return ["late"]


def test_an_answer_that_comes_too_late_is_ignored() -> None:
    with AsyncFunctionHarness(Stubborn(), SHORT) as harness:
        assert [harness.process(1), harness.process(2)] == [["late"], ["late"]]


class Fails(AsyncFunction):
    def __init__(self, raised: Any) -> None:
        self._raised = raised

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0)
        raise self._raised  # this line


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KeyError("k"), "KeyError: 'k'"),
        (StopIteration(), "RuntimeError: coroutine raised StopIteration"),
        (asyncio.CancelledError(), "RuntimeError: CancelledError was raised, and not because"),
        (GeneratorExit(), "RuntimeError: GeneratorExit was raised, and not because"),
    ],
)
def test_what_a_coroutine_raises(raised: BaseException, told: str) -> None:
    with AsyncFunctionHarness(Fails(raised)) as harness:
        place = f"operator 'Fails .*' failed at .*{line_of('# this line')}"
        with pytest.raises(UserFunctionError, match=f"{place}: {told}"):
            harness.process(1)


def test_an_exit_does_not_end_the_loop_alone() -> None:
    with AsyncFunctionHarness(Fails(SystemExit(3))) as harness, pytest.raises(SystemExit):
        harness.process(1)


class Returns(AsyncFunction):
    def __init__(self, result: Any, late: bool = False) -> None:
        self._result = result
        self._late = late

    async def async_invoke(self, value: Any) -> Any:
        if self._late:
            await asyncio.sleep(3600)
        return self._result

    def timeout(self, value: Any) -> Any:
        return self._result


@pytest.mark.parametrize("result", [None, 5, "text", (1, 2), {"a": 1}, range(1)])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_no_list(result: Any, late: bool) -> None:
    method = "timeout" if late else "async_invoke"
    message = f"{method} must return a list .*, got {type(result).__name__} .*return .result."
    refused = pytest.raises(InvalidArgumentError, match=message)
    with AsyncFunctionHarness(Returns(result, late), SHORT) as harness, refused:
        harness.process(1)


class Reused(AsyncFunction):
    """Returns the same list each time."""

    async def async_invoke(self, value: Any) -> list[Any]:
        self.results = getattr(self, "results", [])
        self.results[:] = [value]
        return self.results


def test_results_are_taken_when_they_are_given() -> None:
    with AsyncFunctionHarness(Reused()) as harness:
        assert harness.process_all([1, 2, 3]) == [1, 2, 3]


RELEASED = threading.Event()


class Blocks(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        RELEASED.wait(60)  # blocks the loop
        return [value]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calls, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(calls, "_BLOCKED_SECONDS", 0.05)
    RELEASED.clear()
    yield
    RELEASED.set()


class Releasing(logging.Handler):
    """Keeps what is logged, and ends the block by it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        RELEASED.set()


@pytest.mark.usefixtures("impatient")
def test_a_blocked_loop_is_told_of_once() -> None:
    handler = Releasing()
    logging.getLogger("penstock").addHandler(handler)
    try:
        with AsyncFunctionHarness(Blocks()) as harness:
            assert harness.process(1) == [1]
    finally:
        logging.getLogger("penstock").removeHandler(handler)
    (message,) = handler.messages
    assert message.startswith("operator 'Blocks': a coroutine has blocked the event loop for ")
    assert line_of("# blocks the loop") in message


@pytest.mark.usefixtures("impatient")
def test_a_blocked_loop_cannot_put_off_the_time_out() -> None:
    with AsyncFunctionHarness(Blocks(), SHORT) as harness:
        message = f"blocked the event loop .* at .*{line_of('# blocks the loop')}"
        with pytest.raises(AsyncTimeoutError, match=message):
            harness.process(1)
        assert not RELEASED.is_set()
        RELEASED.set()


# Attempts


class Flaky(AsyncFunction):
    """Fails as often as the record says, then gives nothing as often, then the attempts."""

    def __init__(self) -> None:
        self._attempts: dict[Any, int] = {}

    async def async_invoke(self, value: tuple[int, int]) -> list[int]:
        attempt = self._attempts[value] = self._attempts.get(value, 0) + 1
        if attempt <= value[0]:
            raise ConnectionError(f"attempt {attempt}")
        return [] if attempt <= sum(value) else [attempt]


def flaky(attempts: int, timeout: Time = LONG, delay: int = 1) -> AsyncFunctionHarness:
    strategy = AsyncRetryStrategy.fixed_delay(
        attempts, delay, empty_result_predicate, has_exception_predicate
    )
    return AsyncFunctionHarness(Flaky(), timeout, strategy)


def metrics(harness: AsyncFunctionHarness) -> dict[str, Any]:
    group = harness._task.contexts[0].get_metrics_group()
    return {name.rpartition(".")[2]: value for name, value in group.snapshot().items()}


def test_attempts() -> None:
    with flaky(3) as harness:
        assert harness.process_all([(0, 0), (1, 0), (1, 2), (0, 3)]) == [1, 2, 4, 4]
        assert harness.process((0, 4)) == [], "after the last attempt the result is taken as it is"
        with pytest.raises(UserFunctionError, match="ConnectionError: attempt 4"):
            harness.process((4, 0))
        counted = metrics(harness)
        # How many were on their way at once depends on how fast the first ones are answered.
        assert counted.pop("maxAsyncInFlight") in range(1, 5)
        assert counted == {"numAsyncRetries": 1 + 3 + 3 + 3 + 3, "numAsyncTimeouts": 0}


def test_without_predicates_there_is_one_attempt() -> None:
    strategy = AsyncRetryStrategy.fixed_delay(3, 1)
    with AsyncFunctionHarness(Flaky(), async_retry_strategy=strategy) as harness:
        assert harness.process((0, 1)) == []
        with pytest.raises(UserFunctionError, match="attempt 1"):
            harness.process((1, 0))


def test_the_time_out_is_for_all_attempts_and_delays() -> None:
    with flaky(1000, SHORT, delay=10_000) as harness:
        with pytest.raises(AsyncTimeoutError, match=r"for \(1, 0\) gave no answer within 0.03 s"):
            harness.process((1, 0))
        assert metrics(harness)["numAsyncTimeouts"] == 1


def test_a_predicate_that_fails_is_told_of() -> None:
    def broken(results: Any) -> bool:
        return bool(results[7])  # broken predicate

    strategy = AsyncRetryStrategy.fixed_delay(3, 1, result_predicate=broken)
    refused = pytest.raises(PenstockError, match=f"{line_of('# broken predicate')}: IndexError")
    with AsyncFunctionHarness(Flaky(), async_retry_strategy=strategy) as harness, refused:
        harness.process((0, 0))


def test_nothing_is_kept_of_it_in_a_snapshot() -> None:
    with AsyncFunctionHarness(Doubled()) as harness:
        harness.process(1)
        snapshot = harness.snapshot()
    assert (snapshot.entries, snapshot.operator_state) == ((), {})
    with AsyncFunctionHarness.restore(snapshot) as again:
        assert again.process(2) == [2, 2]
