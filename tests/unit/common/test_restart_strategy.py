"""Restart strategies, by factory and by configuration."""

import datetime as dt

import pytest

from penstock.common import Configuration, Duration, RestartStrategies
from penstock.common.restart_strategy import restart_strategy_from
from penstock.errors import InvalidArgumentError


def test_fixed_delay():
    strategy = RestartStrategies.fixed_delay_restart(3, 10_000)
    assert isinstance(strategy, RestartStrategies.FixedDelayRestartStrategyConfiguration)
    assert strategy.get_restart_attempts() == 3
    assert strategy.get_delay_between_attempts_interval() == dt.timedelta(seconds=10)
    assert strategy == RestartStrategies.fixed_delay_restart(3, Duration.of_seconds(10))
    assert strategy.get_description() == (
        "Restart with fixed delay (10000 ms), #3 restart attempts."
    )


def test_failure_rate():
    strategy = RestartStrategies.failure_rate_restart(2, dt.timedelta(minutes=1), 500)
    assert strategy.get_max_failure_rate() == 2
    assert strategy.get_failure_interval() == dt.timedelta(minutes=1)
    assert strategy.get_delay_between_attempts_interval() == dt.timedelta(milliseconds=500)


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, RestartStrategies.fall_back_restart()),
        ({"restart-strategy.type": "none"}, RestartStrategies.no_restart()),
        ({"restart-strategy": "fixed-delay"}, RestartStrategies.fixed_delay_restart(1, 1000)),
        (
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "5",
                "restart-strategy.fixed-delay.delay": "2 s",
            },
            RestartStrategies.fixed_delay_restart(5, 2000),
        ),
        (
            {"restart-strategy.type": "failure-rate"},
            RestartStrategies.failure_rate_restart(1, 60_000, 1000),
        ),
        (
            {"restart-strategy.type": "exponential-delay"},
            RestartStrategies.exponential_delay_restart(1000, 60_000, 1.5, 3_600_000, 0.1),
        ),
    ],
)
def test_from_configuration(config, strategy):
    assert restart_strategy_from(Configuration.from_dict(config)) == strategy


@pytest.mark.parametrize(
    "arguments",
    [
        {"initial_backoff": 0},
        {"initial_backoff": 100, "max_backoff": 50},
        {"backoff_multiplier": 0.5},
        {"jitter_factor": 2},
        {"attempts_before_reset_backoff": -1},
    ],
)
def test_exponential_delay_refuses(arguments):
    with pytest.raises(InvalidArgumentError):
        RestartStrategies.exponential_delay_restart(**arguments)


def test_counts_are_checked():
    with pytest.raises(InvalidArgumentError, match="restart_attempts must be zero or a positive"):
        RestartStrategies.fixed_delay_restart(-1, 0)
