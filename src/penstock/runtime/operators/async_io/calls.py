"""The calls of an asynchronous function: an event loop in a thread of its own.

The function's code runs in that thread, `open`, `timeout` and `close` included, all but what takes
part in checkpoints. The task's thread hands records over and fetches answers; both go in batches,
since waking a thread costs more than a call. A blocked loop cannot even notice that a call takes
too long, so the task's thread looks after it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from penstock.datastream.functions import AsyncFunction, AsyncRetryStrategy, RuntimeContext
from penstock.errors import (
    AsyncTimeoutError,
    EngineError,
    InvalidArgumentError,
    JobCancelledError,
    is_users_file,
    short_repr,
)
from penstock.runtime.operators.async_io.queues import Call

_log = logging.getLogger("penstock")

# Between looks at the loop while no answers come.
_LOOK_SECONDS = 0.1
_BLOCKED_SECONDS = 1.0
# For cancelled calls to end, and for the thread behind them.
_CANCEL_SECONDS = 1.0
_CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class CallSettings:
    """How a function is called."""

    timeout_millis: int
    strategy: AsyncRetryStrategy[Any]


class AsyncCalls:
    """What is under way, of one function in one task."""

    def __init__(
        self,
        function: AsyncFunction[Any, Any],
        settings: CallSettings,
        context: RuntimeContext,
        stopped: Callable[[], bool],
    ) -> None:
        self.answered: deque[Call] = deque()
        """Calls that have their results, for the task's thread to take."""
        self.failure: BaseException | None = None
        """What the function raised, if it did."""
        self._function = function
        self._timeout = settings.timeout_millis / 1000
        self._strategy = settings.strategy
        predicate = settings.strategy.get_retry_predicate()
        self._retry_result = predicate.result_predicate()
        self._retry_error = predicate.exception_predicate()
        retries = self._retry_result is not None or self._retry_error is not None
        self._invoke = self._invoke_again if retries else function.async_invoke
        self._name = context.get_task_name()
        self._stopped = stopped
        self._most = 0
        metrics = context.get_metrics_group()
        self._timeouts = metrics.counter("numAsyncTimeouts")
        self._retries = metrics.counter("numAsyncRetries")
        metrics.gauge("maxAsyncInFlight", lambda: self._most)
        # Between the threads
        self._inbox: deque[Call] = deque()
        self._woken = False
        self._news = threading.Event()
        self._asked: float | None = None
        self._warned = False
        # Of the loop's thread
        self._running: dict[Call, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._to_tell = False
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._main, name=f"penstock async {self._name}", daemon=True
        )
        self._thread.start()
        failed = self._in_loop(function.open, context)
        if failed is not None:
            self._end()
            raise failed

    # The task's thread

    def submit(self, call: Call) -> None:
        """Have the function called with a record."""
        self._inbox.append(call)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._start)

    def wait(self) -> None:
        """Until something may have been answered, or has failed."""
        if self._news.wait(_LOOK_SECONDS):
            self._news.clear()  # the caller looks after this, so nothing is missed
        else:
            self._look_after()

    def _look_after(self) -> None:
        if self._stopped():
            raise JobCancelledError("the job was cancelled while asynchronous calls were under way")
        if not self._thread.is_alive():
            raise EngineError("the thread of the asynchronous calls has died")
        now = time.monotonic()
        asked = self._asked
        if asked is None:
            self._asked = now
            self._loop.call_soon_threadsafe(self._reply)
        elif now - asked > self._timeout + _BLOCKED_SECONDS:
            raise AsyncTimeoutError.blocked(now - asked, self._blocked_at())
        elif now - asked > _BLOCKED_SECONDS and not self._warned:
            self._warned = True
            _log.warning(
                "operator %r: a coroutine has blocked the event loop for %.1f s, at %s, so no "
                "other call goes on; await what takes long, or use asyncio.to_thread",
                self._name,
                now - asked,
                self._blocked_at() or "a line that is not known",
            )

    def _blocked_at(self) -> str | None:
        """The user's line that the loop's thread is in."""
        line = None
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and line is None:
            if is_users_file(frame.f_code.co_filename):
                line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return line

    def close(self) -> None:
        """Give up what is under way, close the function, end the thread."""
        if not self._thread.is_alive():
            return
        failed = None
        try:
            failed = self._in_loop(self._shut_down, seconds=_CLOSE_SECONDS)
        except concurrent.futures.TimeoutError:
            _log.warning(
                "operator %r: its asynchronous function did not close within %g s (at %s) and is "
                "left alone",
                self._name,
                _CLOSE_SECONDS,
                self._blocked_at() or "a line that is not known",
            )
        self._end()
        if failed is not None:
            raise failed

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CANCEL_SECONDS)

    def _in_loop(
        self, method: Callable[..., Any], *arguments: Any, seconds: float | None = None
    ) -> BaseException | None:
        """Call it in the loop's thread, and await it if it is a coroutine; what it raised."""

        async def outcome() -> BaseException | None:
            try:
                result = method(*arguments)
                if isawaitable(result):
                    await result
            except (Exception, SystemExit) as error:
                return error  # a SystemExit that a task raises ends the loop
            return None

        return asyncio.run_coroutine_threadsafe(outcome(), self._loop).result(seconds)

    # The loop's thread

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)  # the function may have started some
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_CANCEL_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _reply(self) -> None:
        self._asked = None

    def _start(self) -> None:
        self._woken = False  # first: what is added from now on wakes it again
        inbox, running, loop = self._inbox, self._running, self._loop
        deadline = loop.time() + self._timeout
        while inbox:
            call = inbox.popleft()
            call.deadline = deadline
            running[call] = loop.create_task(self._answer(call))
        self._most = max(self._most, len(running))
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._expire)

    async def _answer(self, call: Call) -> None:
        try:
            results = _checked(await self._invoke(call.value), "async_invoke")
        except BaseException as error:
            if call in self._running and not self._closing:
                self._fail(error)
        else:
            self._finish(call, results)

    async def _invoke_again(self, value: Any) -> list[Any]:
        """As often as the strategy says. What is too late is cancelled from outside."""
        attempts = 1
        while True:
            try:
                found = await self._function.async_invoke(value)
            except Exception as error:
                again = self._retry_error
                if again is None or not again(error) or not self._strategy.can_retry(attempts):
                    raise
            else:
                results = _checked(found, "async_invoke")
                wanting = self._retry_result
                if (
                    wanting is None
                    or not wanting(results)
                    or not self._strategy.can_retry(attempts)
                ):
                    return results
            self._retries.inc()
            millis = self._strategy.get_backoff_time_millis(attempts)
            await asyncio.sleep(max(0, millis) / 1000)
            attempts += 1

    def _finish(self, call: Call, results: list[Any]) -> None:
        if self._running.pop(call, None) is None:
            return  # it was given up, and took no notice
        call.results = results
        self.answered.append(call)
        if not self._to_tell:
            # Once for all that is answered in this round of the loop.
            self._to_tell = True
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._to_tell = False
        self._news.set()

    def _fail(self, error: BaseException) -> None:
        cause = error.__cause__
        if isinstance(error, RuntimeError) and isinstance(cause, StopIteration):
            # What Python makes of a StopIteration in a coroutine, without the trace to it.
            error = error.with_traceback(cause.__traceback__)
            error.__cause__ = None
        elif not isinstance(error, Exception | SystemExit):
            told = f"{type(error).__name__} was raised, and not because the call was given up"
            error = RuntimeError(told).with_traceback(error.__traceback__)
        if self.failure is None:
            self.failure = error
        self._news.set()

    def _expire(self) -> None:
        """Give up the calls that have taken too long. They are in the order of their deadlines."""
        self._timer = None
        now = self._loop.time()
        for call, task in list(self._running.items()):
            if call.deadline > now:
                self._timer = self._loop.call_at(call.deadline, self._expire)
                break
            self._timeouts.inc()
            waiting_at = _waiting_at(task)
            task.cancel()
            try:
                results = self._too_late(call.value, waiting_at)
            except (Exception, SystemExit) as error:
                self._fail(error)
            else:
                self._finish(call, results)

    def _too_late(self, value: Any, waiting_at: str | None) -> list[Any]:
        if type(self._function).timeout is AsyncFunction.timeout:
            raise AsyncTimeoutError.of(value, self._timeout, waiting_at)
        return _checked(self._function.timeout(value), "timeout")

    async def _shut_down(self) -> None:
        self._closing = True
        under_way = list(self._running.values())
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=_CANCEL_SECONDS)
        close: Callable[[], Any] = self._function.close
        closed = close()
        if isawaitable(closed):
            await closed


def _checked(results: Any, method: str) -> list[Any]:
    """A copy: the function may go on with its own."""
    if isinstance(results, list):
        return results.copy()
    raise InvalidArgumentError(
        f"{method} must return a list of results, which may be empty, got "
        f"{type(results).__name__} {short_repr(results)}; return [result] for a single one"
    )


def _waiting_at(task: asyncio.Task[None]) -> str | None:
    """The user's innermost line that a call has got to."""
    line = None
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None and is_users_file(frame.f_code.co_filename):
            line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return line
