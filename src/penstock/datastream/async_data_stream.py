"""AsyncDataStream: applies an asynchronous function to a stream."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from penstock.common.time import Span, to_millis
from penstock.datastream._data_stream import DataStream, TypeLike
from penstock.datastream._stream_arguments import instance_of
from penstock.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from penstock.datastream.functions import AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.async_io import AsyncWait

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Calls something slow for every record, many at a time.

    At most `capacity` records are under way in a subtask. `timeout` is for all attempts with one
    record together. Watermarks keep their place among the records, whether these are kept in order
    or not. What a keyed stream becomes has no keys any more.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        capacity: int = 100,
        output_type: TypeLike = None,
    ) -> DataStream:
        """Results as they are ready, but none past a watermark."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeLike = None,
    ) -> DataStream:
        """The same, with further attempts when one fails."""
        operator = async_operator(
            "unordered_wait", async_function, timeout, async_retry_strategy, capacity, ordered=False
        )
        return _applied("unordered_wait", operator, data_stream, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        capacity: int = 100,
        output_type: TypeLike = None,
    ) -> DataStream:
        """Results in the order of the records."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Span,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeLike = None,
    ) -> DataStream:
        """The same, with further attempts when one fails."""
        operator = async_operator(
            "ordered_wait", async_function, timeout, async_retry_strategy, capacity, ordered=True
        )
        return _applied("ordered_wait", operator, data_stream, output_type)


def _applied(
    method: str, operator: AsyncWait, data_stream: DataStream, output_type: TypeLike
) -> DataStream:
    if not isinstance(data_stream, DataStream):
        raise InvalidArgumentError.of(f"the first argument of {method}", "a stream", data_stream)
    return data_stream._then("async wait operator", operator, output_type)


def async_operator(
    method: str, function: Any, timeout: Span, strategy: Any, capacity: Any, ordered: bool
) -> AsyncWait:
    """What such arguments of `method` ask for, if they are as they should be."""
    function = instance_of(method, (AsyncFunction,), function)
    _check_methods(function)
    millis = to_millis(timeout, "timeout")
    if millis == 0:
        raise InvalidArgumentError.of(
            "timeout",
            "at least a millisecond (an epoch does not end before its calls do, so each needs a "
            "limit; Time.hours(1) is one)",
            timeout,
        )
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise InvalidArgumentError.of("capacity", "an int of at least 1", capacity)
    if not isinstance(strategy, AsyncRetryStrategy):
        raise InvalidArgumentError.of(
            "async_retry_strategy",
            "an AsyncRetryStrategy, such as AsyncRetryStrategy.fixed_delay(...)",
            strategy,
        )
    predicate = strategy.get_retry_predicate()
    if not isinstance(predicate, AsyncRetryPredicate):
        raise InvalidArgumentError.of(
            f"what {type(strategy).__name__}.get_retry_predicate gives",
            "an AsyncRetryPredicate",
            predicate,
        )
    return AsyncWait(function, millis, capacity, strategy, ordered)


def _check_methods(function: AsyncFunction[Any, Any]) -> None:
    name = type(function).__name__
    if not iscoroutinefunction(function.async_invoke):
        raise InvalidArgumentError(f"{name}.async_invoke must be declared with `async def`")
    if iscoroutinefunction(function.timeout):
        raise InvalidArgumentError(
            f"{name}.timeout must be declared with `def`: it gives its results at once"
        )
