"""What an epoch took: work on records, and the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.driver.epoch_cost import EpochCost, at_their_limit, cost_of, working_seconds
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.physical import PhysicalPlan


def answers(*seconds: float, **of_the_first: Any) -> list[Acknowledgement]:
    """Two tasks of the source, then two of what follows."""
    where = [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = [
        Acknowledgement(vertex, subtask, "t", seconds=took)
        for (vertex, subtask), took in zip(where, seconds, strict=True)
    ]
    for name, value in of_the_first.items():
        setattr(found[0], name, value)
    return found


def test_tasks_of_a_level_run_side_by_side_as_far_as_there_are_slots():
    levels = [[1.0, 2.0], [3.0], []]
    assert working_seconds(levels, slots=2) == 5.0
    assert working_seconds(levels, slots=1) == 6.0


@pytest.mark.parametrize(("slots", "working"), [(1, 10.0), (2, 6.0)])
def test_levels_are_worked_on_one_after_the_other(plan_of, slots, working):
    cost = cost_of(plan_of(), answers(1.0, 2.0, 4.0, 3.0), 12.0, slots)
    assert cost == EpochCost(12.0, working, 0, cut_off=False)
    assert cost.fixed == 12.0 - working


def test_work_takes_no_longer_than_the_epoch(plan_of):
    cost = cost_of(plan_of(), answers(1.0, 2.0, 4.0, 3.0), 5.0, 2)
    assert (cost.working, cost.fixed) == (5.0, 0.0)


def test_the_source_that_read_most_counts(plan_of):
    found = answers(1.0, 1.0, 1.0, 1.0, records_in={"source": 7}, cut_off=True)
    found[1].records_in = {"source": 3}
    found[2].records_in = {"count": 10}
    cost = cost_of(plan_of(), found, 2.0, 2)
    assert (cost.records, cost.cut_off) == (7, True)


def test_the_uid_of_a_source_may_be_any_text(plan_of):
    """Files are called by what is made of it, and records are counted under that."""
    plan = plan_of()
    source, then = plan.vertices
    plan = replace(plan, vertices=(replace(source, uid="orders-src-1a2b3c"), then))
    found = answers(1.0, 1.0, 1.0, 1.0, records_in={"orders-src-1a2b3c": 7})
    assert cost_of(plan, found, 2.0, 2).records == 7


def test_sources_that_are_held_back_are_not_at_their_limit(plan_of):
    found = answers(1.0, 1.0, 1.0, 1.0, cut_off=True)
    assert at_their_limit(plan_of(), found, {})
    assert not at_their_limit(plan_of(), found, {"source"})
    assert not at_their_limit(plan_of(), answers(1.0, 1.0, 1.0, 1.0), {})


def test_vertices_of_a_level_share_tasks_unless_one_is_a_spark_source(plan_of, spark_source):
    def working(plan: PhysicalPlan) -> float:
        first, second = plan.vertices
        beside = replace(plan, vertices=(first, replace(second, level=first.level)))
        return cost_of(beside, answers(1.0, 2.0, 4.0, 3.0), 99.0, slots=1).working

    assert working(plan_of()) == 4.0 + 3.0
    assert working(plan_of(source=spark_source)) == 1.0 + 2.0 + 4.0 + 3.0


def test_rows_of_spark_sources_do_not_count(plan_of, spark_source):
    found = answers(1.0, 1.0, 1.0, 1.0, records_in={"source": 7})
    assert cost_of(plan_of(source=spark_source), found, 2.0, 2).records == 0
