"""What AsyncDataStream refuses, and when."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from penstock.common import Configuration, Duration, Time, Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    KeyedStream,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.errors import InvalidArgumentError


class Answer(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


class NoCoroutine(AsyncFunction):
    def async_invoke(self, value: Any) -> Any:
        return [value]


class LateCoroutine(Answer):
    async def timeout(self, value: Any) -> Any:
        return []


class Plain(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class NoPredicate(AsyncRetryStrategy):
    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return 0

    def get_retry_predicate(self) -> Any:
        return None


@pytest.fixture
def numbers() -> DataStream:
    local = Configuration().set_string("penstock.executor", "local")
    return StreamExecutionEnvironment.get_execution_environment(local).from_elements(1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timeout": Time.seconds(0)}, r"timeout must be at least a millisecond .*Time.hours"),
        ({"timeout": Duration.of_nanos(10)}, "timeout must be at least a millisecond"),
        ({"timeout": Time.seconds(-1)}, "timeout must be zero or longer"),
        ({"timeout": 1.5}, r"timeout must be a Time, .*, got float 1.5"),
        ({"timeout": "5 s"}, r"timeout must be a Time, .*, got str '5 s'"),
        ({"capacity": 0}, "capacity must be an int of at least 1, got int 0"),
        ({"capacity": True}, "capacity must be an int of at least 1"),
        ({"capacity": 2.0}, "capacity must be an int of at least 1"),
        ({"async_function": Plain()}, r"needs an AsyncFunction, got Plain, .* belongs in map"),
        ({"async_function": Answer}, r"got the class Answer itself; pass an instance"),
        ({"async_function": lambda value: [value]}, "needs an AsyncFunction, got function"),
        ({"async_function": NoCoroutine()}, "NoCoroutine.async_invoke .* `async def`"),
        ({"async_function": LateCoroutine()}, "LateCoroutine.timeout .* `def`"),
        ({"data_stream": [1, 2]}, r"first argument of \w+ must be a stream, got list"),
    ],
)
@pytest.mark.parametrize("method", ["ordered_wait", "unordered_wait"])
def test_refused(numbers: DataStream, method: str, arguments: Any, message: str) -> None:
    good = {"data_stream": numbers, "async_function": Answer(), "timeout": Time.seconds(1)}
    with pytest.raises(InvalidArgumentError, match=message):
        getattr(AsyncDataStream, method)(**{**good, **arguments})


@pytest.mark.parametrize("strategy", [None, "no", NoPredicate()])
@pytest.mark.parametrize("method", ["ordered_wait_with_retry", "unordered_wait_with_retry"])
def test_no_strategy(numbers: DataStream, method: str, strategy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="AsyncRetry"):
        getattr(AsyncDataStream, method)(numbers, Answer(), Time.seconds(1), strategy)


def test_elsewhere_it_is_told_where_it_belongs(numbers: DataStream) -> None:
    with pytest.raises(InvalidArgumentError, match=r"belongs in AsyncDataStream.unordered_wait"):
        numbers.map(Answer())


def test_what_it_gives(numbers: DataStream) -> None:
    """Any span will do as a time-out; what was keyed is not keyed any more."""
    keyed = numbers.key_by(lambda value: value)
    span = dt.timedelta(seconds=1)
    stream = AsyncDataStream.ordered_wait(keyed, Answer(), span, 5, Types.INT())

    assert stream.get_type() == Types.INT()
    assert stream.get_name() == "async wait operator"
    assert not isinstance(stream, KeyedStream)
