"""Asynchronous functions and the rules by which their calls are tried again.

The strategies sit beside their base class because `AsyncRetryStrategy` has factory methods that
make them; `async_retry_strategies` offers them under PyFlink's path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from penstock.datastream._basic_functions import Function
from penstock.errors import InvalidArgumentError

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[OUT]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Says after which outcomes a call is tried again."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate[OUT] | None:
        """True for results to try again; None: results are always final."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """True for errors to try again; None: errors are always final."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Says whether and when a call is tried again."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether another attempt may follow `current_attempts` made so far."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before the next attempt."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The outcomes after which to try again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Take the first outcome."""
        return NoRetryStrategy()

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[Any] | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Wait the same time before each attempt."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[Any] | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Wait `multiplier` times as long before each further attempt, up to a maximum."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts,
            initial_delay,
            max_retry_delay,
            multiplier,
            result_predicate,
            exception_predicate,
        )


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """A predicate made of two callables, either of which may be missing."""

    def __init__(
        self,
        result_predicate: ResultPredicate[OUT] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate[OUT] | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """Never tries again."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Tries again up to `max_attempts` times, after the same delay each time."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[OUT] | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> None:
        _require_positive("max_attempts", max_attempts)
        _require_positive("backoff_time_millis", backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Tries again up to `max_attempts` times, after growing delays."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[OUT] | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> None:
        _require_positive("max_attempts", max_attempts)
        _require_positive("initial_delay", initial_delay)
        _require_positive("multiplier", multiplier)
        if max_retry_delay < initial_delay:
            raise InvalidArgumentError.of(
                "max_retry_delay", f"at least initial_delay ({initial_delay})", max_retry_delay
            )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        # Computed from the count, not kept: one strategy serves many calls at once.
        steps = max(0, current_attempts - 1)
        try:
            delay = self._initial_delay * float(self._multiplier) ** steps
        except OverflowError:
            return self._max_delay
        return int(min(delay, self._max_delay))

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class AsyncFunction(Function, Generic[IN, OUT]):
    """One value in, any number out, by awaiting something slow."""

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The outputs for `value`."""

    def timeout(self, value: IN) -> list[OUT]:
        """The outputs for a value whose call took too long; the default fails the job."""
        raise TimeoutError(
            f"The asynchronous call for {value!r} timed out. Raise the time-out, or override "
            "AsyncFunction.timeout to give a result for such values."
        )


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An asynchronous function with how its calls are run."""

    class OutputMode(Enum):
        """Whether outputs keep the order of the inputs."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: int
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode


def _require_positive(name: str, value: float) -> None:
    if value <= 0:
        raise InvalidArgumentError.of(name, "greater than 0", value)
