"""How rates become ratios, and ratios are held against goals."""

import pytest
from bench.peers.program import Wanted
from bench.peers.ratios import compared, goals


def test_a_ratio_is_the_median_of_those_within_a_round() -> None:
    # The machine was slow in the second round, for both alike.
    found = compared("ours", {"ours": [100, 10, 120], "theirs": [50, 5, 30]})
    assert found.by == {"theirs": 2}
    assert found.spread == {"theirs": (2, 4)}


def test_who_missed_a_round_is_compared_by_medians() -> None:
    found = compared("ours", {"ours": [100, 120, 140], "theirs": [60]})
    assert found.by == {"theirs": 2}


@pytest.mark.parametrize("rates", [{"ours": [], "theirs": [1.0]}, {"ours": [1.0], "theirs": []}])
def test_who_failed_has_no_ratio(rates: dict[str, list[float]]) -> None:
    assert compared("ours", rates).by == {}


def test_goals_are_met_from_their_limit_on() -> None:
    wanted = (Wanted("slow", 10, of="ours"), Wanted("quick", 1, of="ours"))
    rates = {"ours": [100.0], "slow": [10.0], "quick": [101.0]}
    assert [goal.met for goal in goals("count", wanted, rates)] == [True, False]


def test_a_goal_about_somebody_who_did_not_run_is_left_out() -> None:
    wanted = (Wanted("absent", 10, of="ours"), Wanted("slow", 10, of="absent"))
    assert goals("count", wanted, {"ours": [1.0], "slow": [1.0]}) == []
