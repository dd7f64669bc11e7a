"""What to do when a job fails, as immutable descriptions; the driver acts on them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from penstock import options
from penstock.common.config_options import ConfigOption
from penstock.common.configuration import Configuration
from penstock.common.time import Duration, Time, to_millis
from penstock.errors import InvalidArgumentError

__all__ = [
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "restart_strategy_from",
    "set_restart_strategy",
]

Span: TypeAlias = int | Duration | Time | dt.timedelta


@dataclass(frozen=True)
class RestartStrategyConfiguration:
    def get_description(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class _NoRestart(RestartStrategyConfiguration):
    def get_description(self) -> str:
        return "Restart deactivated."


@dataclass(frozen=True)
class _FallBack(RestartStrategyConfiguration):
    def get_description(self) -> str:
        return "Exponential delay if checkpoints are on, else no restart."


@dataclass(frozen=True)
class _FixedDelay(RestartStrategyConfiguration):
    restart_attempts: int = options.FIXED_DELAY_ATTEMPTS.default
    delay_between_attempts_interval: Span = options.FIXED_DELAY_DELAY.default

    def __post_init__(self) -> None:
        _count(self.restart_attempts, "restart_attempts")
        _in_millis(self, "delay_between_attempts_interval")

    @property
    def delay_millis(self) -> int:
        return cast(int, self.delay_between_attempts_interval)

    def get_restart_attempts(self) -> int:
        return self.restart_attempts

    def get_delay_between_attempts_interval(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.delay_millis)

    def get_description(self) -> str:
        return (
            f"Restart with fixed delay ({self.delay_millis} ms), "
            f"#{self.restart_attempts} restart attempts."
        )


@dataclass(frozen=True)
class _FailureRate(RestartStrategyConfiguration):
    max_failure_rate: int = options.FAILURE_RATE_MAX_FAILURES.default
    failure_interval: Span = options.FAILURE_RATE_INTERVAL.default
    delay_between_attempts_interval: Span = options.FAILURE_RATE_DELAY.default

    def __post_init__(self) -> None:
        _count(self.max_failure_rate, "failure_rate")
        _in_millis(self, "failure_interval")
        _in_millis(self, "delay_between_attempts_interval")

    @property
    def failure_interval_millis(self) -> int:
        return cast(int, self.failure_interval)

    @property
    def delay_millis(self) -> int:
        return cast(int, self.delay_between_attempts_interval)

    def get_max_failure_rate(self) -> int:
        return self.max_failure_rate

    def get_failure_interval(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.failure_interval_millis)

    def get_delay_between_attempts_interval(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.delay_millis)

    def get_description(self) -> str:
        return (
            f"Failure rate restart with at most {self.max_failure_rate} failures in "
            f"{self.failure_interval_millis} ms and a delay of {self.delay_millis} ms."
        )


@dataclass(frozen=True)
class _ExponentialDelay(RestartStrategyConfiguration):
    """Waits that grow by a factor; `attempts` is None for no limit."""

    initial_backoff_millis: int
    max_backoff_millis: int
    backoff_multiplier: float
    reset_backoff_threshold_millis: int
    jitter_factor: float
    attempts: int | None = None

    def get_initial_backoff(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.initial_backoff_millis)

    def get_max_backoff(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.max_backoff_millis)

    def get_backoff_multiplier(self) -> float:
        return self.backoff_multiplier

    def get_reset_backoff_threshold(self) -> dt.timedelta:
        return dt.timedelta(milliseconds=self.reset_backoff_threshold_millis)

    def get_jitter_factor(self) -> float:
        return self.jitter_factor

    def get_attempts_before_reset_backoff(self) -> int | None:
        return self.attempts

    def get_description(self) -> str:
        return (
            f"Restart with exponential delay from {self.initial_backoff_millis} ms to "
            f"{self.max_backoff_millis} ms, multiplier {self.backoff_multiplier}."
        )


class RestartStrategies:
    """Factories, with PyFlink's nested names."""

    NoRestartStrategyConfiguration = _NoRestart
    FallbackRestartStrategyConfiguration = _FallBack
    FixedDelayRestartStrategyConfiguration = _FixedDelay
    FailureRateRestartStrategyConfiguration = _FailureRate
    ExponentialDelayRestartStrategyConfiguration = _ExponentialDelay

    @staticmethod
    def no_restart() -> _NoRestart:
        return _NoRestart()

    @staticmethod
    def fall_back_restart() -> _FallBack:
        return _FallBack()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: Span) -> _FixedDelay:
        return _FixedDelay(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Span, delay_interval: Span
    ) -> _FailureRate:
        return _FailureRate(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: Span = options.EXPONENTIAL_INITIAL_BACKOFF.default,
        max_backoff: Span = options.EXPONENTIAL_MAX_BACKOFF.default,
        backoff_multiplier: float = options.EXPONENTIAL_MULTIPLIER.default,
        reset_backoff_threshold: Span = options.EXPONENTIAL_RESET_THRESHOLD.default,
        jitter_factor: float = options.EXPONENTIAL_JITTER.default,
        attempts_before_reset_backoff: int | None = None,
    ) -> _ExponentialDelay:
        first, longest = (
            to_millis(initial_backoff, "initial_backoff"),
            to_millis(max_backoff, "max_backoff"),
        )
        if first < 1:
            raise InvalidArgumentError.of("initial_backoff", "at least 1 ms", initial_backoff)
        if longest < first:
            raise InvalidArgumentError.of("max_backoff", "at least initial_backoff", max_backoff)
        if not backoff_multiplier >= 1:
            raise InvalidArgumentError.of("backoff_multiplier", "at least 1", backoff_multiplier)
        if not 0 <= jitter_factor <= 1:
            raise InvalidArgumentError.of("jitter_factor", "between 0 and 1", jitter_factor)
        if attempts_before_reset_backoff is not None:
            _count(attempts_before_reset_backoff, "attempts_before_reset_backoff")
        return _ExponentialDelay(
            first,
            longest,
            float(backoff_multiplier),
            to_millis(reset_backoff_threshold, "reset_backoff_threshold"),
            float(jitter_factor),
            attempts_before_reset_backoff,
        )


def restart_strategy_from(config: Configuration) -> RestartStrategyConfiguration:
    """The strategy that the configuration asks for; the fallback if it says nothing."""
    kind = config.get(options.RESTART_STRATEGY)
    if kind is None:
        return RestartStrategies.fall_back_restart()
    if kind == "none":
        return RestartStrategies.no_restart()
    if kind == "fixed-delay":
        return RestartStrategies.fixed_delay_restart(
            config.get(options.FIXED_DELAY_ATTEMPTS), config.get(options.FIXED_DELAY_DELAY)
        )
    if kind == "failure-rate":
        return RestartStrategies.failure_rate_restart(
            config.get(options.FAILURE_RATE_MAX_FAILURES),
            config.get(options.FAILURE_RATE_INTERVAL),
            config.get(options.FAILURE_RATE_DELAY),
        )
    return RestartStrategies.exponential_delay_restart(
        config.get(options.EXPONENTIAL_INITIAL_BACKOFF),
        config.get(options.EXPONENTIAL_MAX_BACKOFF),
        config.get(options.EXPONENTIAL_MULTIPLIER),
        config.get(options.EXPONENTIAL_RESET_THRESHOLD),
        config.get(options.EXPONENTIAL_JITTER),
        config.get(options.EXPONENTIAL_ATTEMPTS),
    )


def set_restart_strategy(config: Configuration, strategy: RestartStrategyConfiguration) -> None:
    """Write a strategy into a configuration, where `restart_strategy_from` finds it."""
    if isinstance(strategy, _FallBack):
        config.set(options.RESTART_STRATEGY, None)
        return
    kinds: dict[type, tuple[str, dict[ConfigOption[Any], str]]] = {
        _NoRestart: ("none", {}),
        _FixedDelay: (
            "fixed-delay",
            {
                options.FIXED_DELAY_ATTEMPTS: "restart_attempts",
                options.FIXED_DELAY_DELAY: "delay_millis",
            },
        ),
        _FailureRate: (
            "failure-rate",
            {
                options.FAILURE_RATE_MAX_FAILURES: "max_failure_rate",
                options.FAILURE_RATE_INTERVAL: "failure_interval_millis",
                options.FAILURE_RATE_DELAY: "delay_millis",
            },
        ),
        _ExponentialDelay: (
            "exponential-delay",
            {
                options.EXPONENTIAL_INITIAL_BACKOFF: "initial_backoff_millis",
                options.EXPONENTIAL_MAX_BACKOFF: "max_backoff_millis",
                options.EXPONENTIAL_MULTIPLIER: "backoff_multiplier",
                options.EXPONENTIAL_RESET_THRESHOLD: "reset_backoff_threshold_millis",
                options.EXPONENTIAL_JITTER: "jitter_factor",
                options.EXPONENTIAL_ATTEMPTS: "attempts",
            },
        ),
    }
    if type(strategy) not in kinds:
        raise InvalidArgumentError.of("a restart strategy", "made with RestartStrategies", strategy)
    kind, fields = kinds[type(strategy)]
    config.set(options.RESTART_STRATEGY, kind)
    for option, field in fields.items():
        config.set(option, getattr(strategy, field))


def _in_millis(strategy: RestartStrategyConfiguration, field: str) -> None:
    """Keep a span as milliseconds, so that equal strategies are equal."""
    object.__setattr__(strategy, field, to_millis(getattr(strategy, field), field))


def _count(value: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgumentError.of(what, "zero or a positive number", value)
    return value
