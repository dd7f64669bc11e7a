"""How long epochs are under load: decided from what past ones took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.driver.epoch_cost import EpochCost
from penstock.driver.epoch_length import EpochLength, LengthPolicy, next_limit

POLICY = LengthPolicy(fixed_share=0.1, longest_seconds=5.0, most_records=5_000_000)

seconds = st.floats(0.001, 20.0)
shares = st.floats(0.01, 0.9)
costs = st.builds(
    EpochCost,
    seconds=seconds,
    working=seconds,
    records=st.integers(0, 10**7),
    cut_off=st.booleans(),
)


def run(
    length: EpochLength, fixed: float, per_record: float, waiting: int, epochs: int
) -> EpochCost:
    """A job of one subtask that has so many records to read in every epoch."""
    cost = EpochCost(fixed, 0.0, 0, False)
    for _ in range(epochs):
        affordable = int(length.seconds / (per_record / 2))  # half of the work is in the source
        read = min(waiting, length.records, affordable)
        working = read * per_record
        cost = EpochCost(fixed + working, working, read, read < waiting)
        length.learn(cost)
    return cost


@given(fixed=st.floats(0.02, 0.4), per_record=st.floats(2e-6, 1e-3))
def test_under_load_the_fixed_cost_comes_to_be_the_share_that_is_wanted(fixed, per_record):
    cost = run(EpochLength(POLICY), fixed, per_record, waiting=10**9, epochs=30)
    assert cost.seconds <= max(1.0, fixed / 0.1) * 1.3
    assert cost.fixed_share <= 0.15 or cost.seconds >= 1.0 / 1.3


@given(fixed=st.floats(0.01, 10.0), share=shares, longest=st.floats(0.05, 20.0))
def test_no_epoch_is_planned_longer_than_may_be(fixed, share, longest):
    policy = LengthPolicy(share, longest, 10**6)
    work = policy.work_seconds(fixed)
    assert work > 0
    assert work + fixed <= max(longest, fixed * 4 / 3) + 0.01 + 1e-9


@given(limit=st.integers(1, 10**7), cost=costs, work=seconds)
def test_a_limit_is_never_beyond_what_may_be_read_nor_nothing(limit, cost, work):
    found = next_limit(limit, cost, work, POLICY)
    assert 1 <= found <= POLICY.most_records


@given(limit=st.integers(1000, 10**6), working=st.floats(0.0001, 0.5), records=st.integers(0, 999))
def test_an_epoch_that_read_all_there_was_in_time_changes_nothing(limit, working, records):
    cost = EpochCost(working + 0.1, working, records, cut_off=False)
    assert next_limit(limit, cost, 1.0, POLICY) == limit


@given(limit=st.integers(1000, 10**6), working=st.floats(0.0001, 0.7))
def test_one_that_was_cut_off_early_grows_by_steps(limit, working):
    cost = EpochCost(working + 0.1, working, limit, cut_off=True)
    assert limit < next_limit(limit, cost, 1.0, POLICY) <= 4 * limit


@given(limit=st.integers(1000, 10**6), working=st.floats(1.3, 100.0), cut_off=st.booleans())
def test_one_that_took_too_long_shrinks_by_steps(limit, working, cut_off):
    cost = EpochCost(working + 0.1, working, limit, cut_off)
    assert limit // 4 <= next_limit(limit, cost, 1.0, POLICY) < limit


def test_records_that_become_slower_make_epochs_smaller_and_back():
    length = EpochLength(POLICY)
    run(length, 0.15, 2e-6, 10**9, 20)
    quick = length.records
    slow = run(length, 0.15, 1e-3, 10**9, 20)
    assert length.records < quick / 100
    assert 1.0 < slow.seconds < 2.0
    run(length, 0.15, 2e-6, 10**9, 20)
    assert length.records == pytest.approx(quick, rel=0.5)


def test_a_job_that_keeps_up_is_never_held_up():
    length = EpochLength(POLICY)
    before = length.records
    cost = run(length, 0.15, 2e-6, waiting=3_000, epochs=50)
    assert cost.records == 3_000
    assert length.records == before


def test_one_slow_commit_does_not_change_the_length():
    length = EpochLength(POLICY)
    run(length, 0.15, 2e-6, 10**9, 20)
    usual = length.seconds
    length.learn(EpochCost(30.0, 1.3, length.records, cut_off=True))
    assert length.seconds == pytest.approx(usual)


def test_a_limit_of_the_users_holds_from_the_first_epoch():
    length = EpochLength(LengthPolicy(0.1, 5.0, 10))
    assert length.records == 10
    length.learn(EpochCost(0.2, 0.01, 10, cut_off=True))
    assert length.records == 10


def test_attempts_that_fail_read_less_and_less_but_something():
    length = EpochLength(POLICY)
    seen = [length.records]
    for _ in range(10):
        length.lost()
        seen.append(length.records)
    assert seen[:3] == [100_000, 25_000, 6_250]
    assert seen[-1] == 100
