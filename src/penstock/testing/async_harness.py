"""A harness for asynchronous functions: the calls run as in a job, in real time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from penstock.common.time import Span, Time
from penstock.datastream.async_data_stream import async_operator
from penstock.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from penstock.datastream.functions import AsyncFunction, AsyncRetryStrategy
from penstock.graph.partitioning import Forward
from penstock.runtime.operators.async_io import AsyncWait
from penstock.testing.clock import ManualClock
from penstock.testing.harness import Harness, Operators, Program, surrounded_by


class AsyncFunctionHarness(Harness):
    """Drives an AsyncFunction; results are in the order of the records.

    ::

        with AsyncFunctionHarness(LookUp(), timeout=Time.seconds(1)) as harness:
            assert harness.process(7) == [(7, "seven")]
    """

    _operators: ClassVar[Operators] = {AsyncFunction: AsyncWait}

    def __init__(
        self,
        function: AsyncFunction[Any, Any],
        timeout: Span = Time.seconds(10),  # noqa: B008 - it cannot be changed
        async_retry_strategy: AsyncRetryStrategy[Any] | None = None,
        capacity: int = 100,
        output_type: Any = None,
        clock: ManualClock | None = None,
    ) -> None:
        strategy = async_retry_strategy or NO_RETRY_STRATEGY
        checked = async_operator(
            "AsyncFunctionHarness", function, timeout, strategy, capacity, ordered=True
        )
        settings = (checked.timeout_millis, capacity, strategy, True)
        program = Program(function, (Forward(),), output_type, settings)
        self._start(program, surrounded_by(clock))

    def process(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand over a record and wait for its results."""
        before = len(self._around.outputs)
        self._process(0, value, timestamp)
        self._attempt(self._task.await_answers)
        return self._around.outputs[before:]

    def process_all(self, values: Iterable[Any]) -> list[Any]:
        """Hand over several records, which are under way together; the results of all."""
        before = len(self._around.outputs)
        for value in values:
            self._process(0, value, None)
        self._attempt(self._task.await_answers)
        return self._around.outputs[before:]
