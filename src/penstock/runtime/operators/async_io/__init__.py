"""Asynchronous functions: many calls under way at once, their answers emitted by the task's thread.

No call outlives its epoch: what is under way at the end is awaited. So there is nothing to keep in
a checkpoint, and after a failure the epoch's records come again and are asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import AsyncFunction, AsyncRetryStrategy
from penstock.runtime.operators.async_io.calls import AsyncCalls, CallSettings
from penstock.runtime.operators.async_io.queues import (
    Call,
    CallQueue,
    OrderedQueue,
    UnorderedQueue,
)
from penstock.runtime.operators.base import OpenOperator, OperatorHost
from penstock.runtime.watermarks import WATERMARK, Control


@dataclass(frozen=True)
class AsyncWait:
    """Calls an AsyncFunction with every record and emits what it answers."""

    function: AsyncFunction[Any, Any]
    timeout_millis: int
    capacity: int
    """The most records that may be under way."""
    strategy: AsyncRetryStrategy[Any]
    ordered: bool

    waits = True
    """For others to answer, perhaps long: who cancels the job does not wait with it."""

    def open(self, host: OperatorHost) -> OpenOperator:
        return _OpenAsyncWait(self, host)


class _OpenAsyncWait(OpenOperator):
    def __init__(self, described: AsyncWait, host: OperatorHost) -> None:
        host.context.refuse_state(
            "it is asynchronous and calls for several keys are under way at once; use state in a "
            "process function before or behind it"
        )
        self._capacity = described.capacity
        self._queue: CallQueue = OrderedQueue() if described.ordered else UnorderedQueue()
        self._scope = host.scope
        self._emit, self._emit_run = host.emit, host.emit_run
        # Its hooks are called in the task's thread, which is no matter: no call is under way then.
        host.checkpoints.enlist(described.function)
        settings = CallSettings(described.timeout_millis, described.strategy)
        self._calls = AsyncCalls(described.function, settings, host.context, host.stopped)
        self.process = self._process
        self.run = self._run

    def _run(self, values: Iterable[Any]) -> None:
        self._emit_run(self._results(values))

    def _process(self, value: Any) -> None:
        for result in self._results((value,)):
            self._emit(result)

    def _results(self, values: Iterable[Any]) -> Iterator[Any]:
        """Call for each, and meanwhile hand on what has been answered."""
        scope, queue, calls = self._scope, self._queue, self._calls
        answered, submit, most = calls.answered, calls.submit, self._capacity - 1
        for value in values:
            timestamp = scope.timestamp
            if queue.size > most:
                yield from self._until_left(most)
            call = Call(value, timestamp)
            queue.add(call)
            submit(call)
            if answered:
                yield from self._ready()
            scope.timestamp = timestamp  # who gave us the record may not be done with it

    def _until_left(self, most: int) -> Iterator[Any]:
        """Hand on answers until at most so many calls are left."""
        yield from self._ready()
        while self._queue.size > most:
            self._calls.wait()
            yield from self._ready()

    def _ready(self) -> Iterator[Any]:
        calls, queue, scope = self._calls, self._queue, self._scope
        if calls.failure is not None:
            raise calls.failure
        while calls.answered:
            queue.answered(calls.answered.popleft())
        while True:
            while (call := queue.take()) is not None:
                scope.timestamp = call.timestamp
                yield from call.results or ()
            control = queue.take_control()
            if control is None:
                return
            self.pass_on(control)

    def control(self, control: Control) -> None:
        """Emits nothing: it may come from within a run."""
        if control[0] == WATERMARK:
            self.time.watermark = control[1]
        if self._queue.size:
            self._queue.add_control(control)
        else:
            self.pass_on(control)

    def next_timer(self, until: int) -> int | None:
        return None

    def end_epoch(self) -> None:
        self._emit_run(self._until_left(0))

    def finish(self) -> None:
        self._emit_run(self._until_left(0))

    def parts(self) -> tuple[Any, ...]:
        return self, self._calls

    def close(self) -> None:
        self._calls.close()
