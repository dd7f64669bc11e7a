"""Restart policies: examples on a clock of plain numbers, and what holds for all settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import RestartStrategies
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.driver.restarts import policy_for
from penstock.errors import UnsupportedFeatureError

HOUR = 3_600_000
middle = lambda: 0.5  # no jitter


def delays(policy, times):
    return [policy.on_failure(now) for now in times]


def exponential(pick=middle, **options):
    options = {"jitter_factor": 0, **options}
    return policy_for(RestartStrategies.exponential_delay_restart(**options), True, pick)


def test_none_gives_up_at_once():
    assert policy_for(RestartStrategies.no_restart(), True).on_failure(0) is None


def test_fallback_depends_on_checkpointing():
    fallback = RestartStrategies.fall_back_restart()
    assert policy_for(fallback, checkpointing=False).on_failure(0) is None
    assert policy_for(fallback, checkpointing=True, pick=middle).on_failure(0) == 1000


def test_fixed_delay_counts_over_the_whole_life():
    policy = policy_for(RestartStrategies.fixed_delay_restart(2, 700), True)
    policy.on_success(0)
    assert policy.on_failure(10) == 700
    policy.on_success(10**9)
    assert delays(policy, [2 * 10**9, 3 * 10**9]) == [700, None]


def test_failure_rate():
    policy = policy_for(RestartStrategies.failure_rate_restart(2, 1000, 50), True)
    # The third failure comes 1001 ms after the first, the fourth 1000 ms after the second.
    assert delays(policy, [0, 500, 1001, 1500]) == [50, 50, 50, None]


def test_exponential_grows_to_its_maximum():
    policy = exponential(initial_backoff=100, max_backoff=1000, backoff_multiplier=2)
    assert delays(policy, [0, 200, 500, 1000, 2000, 4000]) == [100, 200, 400, 800, 1000, 1000]


def test_exponential_starts_anew_after_a_stable_time():
    policy = exponential(backoff_multiplier=2, reset_backoff_threshold=5000)
    assert delays(policy, [0, 2000]) == [1000, 2000]  # runs again from 4000 on
    policy.on_success(8999)
    assert policy.on_failure(8999) == 4000  # runs again from 12999 on
    policy.on_success(17999)
    assert policy.on_failure(18000) == 1000


def test_an_idle_job_is_stable_too():
    policy = exponential(backoff_multiplier=2, reset_backoff_threshold=5000)
    assert delays(policy, [0, 6000]) == [1000, 1000]


def test_attempts_are_counted_until_a_reset():
    policy = exponential(attempts_before_reset_backoff=2, reset_backoff_threshold=5000)
    assert delays(policy, [0, 1500, 4000]) == [1000, 1500, None]
    policy = exponential(attempts_before_reset_backoff=2, reset_backoff_threshold=5000)
    assert delays(policy, [0, 1500, 8000, 9500]) == [1000, 1500, 1000, 1500]


@pytest.mark.parametrize(("picked", "delay"), [(0.0, 1000), (0.5, 1500), (1.0, 1650)])
def test_jitter_is_part_of_the_wait_on_both_sides(picked, delay):
    policy = exponential(lambda: picked, jitter_factor=0.1 if picked else 0.5)
    policy.on_failure(0)
    assert policy.on_failure(5000) == delay


def test_unknown_strategies_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="RestartStrategies"):
        policy_for(RestartStrategyConfiguration(), True)


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 2 * HOUR)), max_size=60)


@given(
    initial=st.integers(1, 10_000),
    more=st.integers(0, 100_000),
    multiplier=st.floats(1, 1e6),
    jitter=st.floats(0, 1),
    pick=st.floats(0, 1),
    steps=steps,
)
def test_exponential_stays_within_its_bounds(initial, more, multiplier, jitter, pick, steps):
    config = RestartStrategies.exponential_delay_restart(
        initial, initial + more, multiplier, HOUR, jitter
    )
    policy = policy_for(config, True, lambda: pick)
    now = 0
    for failed, passed in steps:
        now += passed
        if failed:
            delay = policy.on_failure(now)
            assert initial <= delay <= initial + more
        else:
            policy.on_success(now)


@given(st.integers(1, 500))
def test_without_jitter_waits_never_shrink(failures):
    policy = exponential(backoff_multiplier=1e3, max_backoff=HOUR)
    waits = delays(policy, [0] * failures)
    assert waits == sorted(waits)


@given(st.integers(0, 5), st.integers(1, 1000), st.lists(st.integers(0, 500), max_size=40))
def test_failure_rate_gives_up_exactly_when_it_is_exceeded(most, interval, gaps):
    policy = policy_for(RestartStrategies.failure_rate_restart(most, interval, 7), True)
    times: list[int] = []
    for gap in gaps:
        times.append((times[-1] if times else 0) + gap)
        within = sum(times[-1] - time <= interval for time in times)
        assert policy.on_failure(times[-1]) == (None if within > most else 7)


@given(st.integers(0, 20), st.integers(0, 10**6))
def test_fixed_delay_restarts_so_many_times(attempts, delay):
    policy = policy_for(RestartStrategies.fixed_delay_restart(attempts, delay), False)
    assert delays(policy, range(attempts + 3)) == [delay] * attempts + [None] * 3
