"""Whether, and after how long, a failed job is started again. Pure: the caller has the clock."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from penstock.common.restart_strategy import (
    RestartStrategies,
    RestartStrategyConfiguration,
    _ExponentialDelay,
    _FailureRate,
    _FallBack,
    _FixedDelay,
    _NoRestart,
)
from penstock.errors import UnsupportedFeatureError


class RestartPolicy:
    """Never restarts; the other policies differ in what they answer to a failure."""

    def on_failure(self, now_ms: int) -> int | None:
        """How many milliseconds to wait before the job starts again; None: give up."""
        return None

    def on_success(self, now_ms: int) -> None:
        """An epoch was completed."""


class _FixedDelayPolicy(RestartPolicy):
    """The same wait each time, so many times in the job's life."""

    def __init__(self, config: _FixedDelay) -> None:
        self._config = config
        self._failures = 0

    def on_failure(self, now_ms: int) -> int | None:
        self._failures += 1
        if self._failures > self._config.restart_attempts:
            return None
        return self._config.delay_millis


class _FailureRatePolicy(RestartPolicy):
    """The same wait each time, unless too many failures fall into one interval."""

    def __init__(self, config: _FailureRate) -> None:
        self._config = config
        self._failures: deque[int] = deque(maxlen=config.max_failure_rate + 1)

    def on_failure(self, now_ms: int) -> int | None:
        failures = self._failures
        failures.append(now_ms)
        too_many = len(failures) == failures.maxlen
        if too_many and now_ms - failures[0] <= self._config.failure_interval_millis:
            return None
        return self._config.delay_millis


class _ExponentialDelayPolicy(RestartPolicy):
    """Waits that grow, until the job has run for some time since its last restart."""

    def __init__(self, config: _ExponentialDelay, pick: Callable[[], float]) -> None:
        self._config = config
        self._pick = pick
        self._attempts = 0
        self._started: int | None = None
        """When the wait for the last restart was over."""

    def on_failure(self, now_ms: int) -> int | None:
        self.on_success(now_ms)
        attempts = self._config.attempts
        if attempts is not None and self._attempts >= attempts:
            return None
        delay = self._delay()
        self._attempts += 1
        self._started = now_ms + delay
        return delay

    def on_success(self, now_ms: int) -> None:
        threshold = self._config.reset_backoff_threshold_millis
        if self._started is not None and now_ms - self._started >= threshold:
            self._attempts = 0
            self._started = None

    def _delay(self) -> int:
        config = self._config
        first, most = config.initial_backoff_millis, config.max_backoff_millis
        try:
            wanted = min(first * config.backoff_multiplier**self._attempts, most)
        except OverflowError:  # a float ends after some hundreds of doublings
            wanted = most
        jitter = (2 * self._pick() - 1) * config.jitter_factor * wanted
        return max(first, min(round(wanted + jitter), most))


def policy_for(
    config: RestartStrategyConfiguration,
    checkpointing: bool,
    pick: Callable[[], float] = random.random,
) -> RestartPolicy:
    """The policy of a strategy, with no failure behind it. `pick` gives the jitter's 0 to 1."""
    if isinstance(config, _FallBack):
        config = (
            RestartStrategies.exponential_delay_restart()
            if checkpointing
            else RestartStrategies.no_restart()
        )
    if isinstance(config, _ExponentialDelay):
        return _ExponentialDelayPolicy(config, pick)
    if isinstance(config, _FixedDelay):
        return _FixedDelayPolicy(config)
    if isinstance(config, _FailureRate):
        return _FailureRatePolicy(config)
    if isinstance(config, _NoRestart):
        return RestartPolicy()
    raise UnsupportedFeatureError.of(
        f"restart strategy {type(config).__name__}", "make one with RestartStrategies"
    )
