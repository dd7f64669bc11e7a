"""When an epoch may be committed: acknowledgements in, verdict out."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.driver.acceptance import Verdict, judge
from penstock.errors import UserFunctionError
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.physical import PhysicalPlan

PlanOf = Callable[..., PhysicalPlan]


@pytest.fixture
def plan(plan_of: PlanOf) -> PhysicalPlan:
    return plan_of(parallelism=2)


def answers() -> list[Acknowledgement]:
    """Two source subtasks and two consumers that read both."""
    sources = [Acknowledgement(0, i, f"s{i}", sent={"1/0": 3, "1/1": 4}) for i in range(2)]
    read = {"0/0": "s0", "0/1": "s1"}
    return sources + [
        Acknowledgement(1, i, f"c{i}", dict(read), received=dict.fromkeys(read, 3 + i))
        for i in range(2)
    ]


def test_all_answered_once(plan):
    assert judge(plan, answers()) == Verdict()
    assert judge(plan, answers()).accepted


def test_the_order_of_answers_does_not_matter(plan):
    for order in itertools.permutations(answers()):
        assert judge(plan, list(order)).accepted


def test_who_received_nothing_consumed_nothing(plan):
    found = answers()
    nothing_read(found[2], "0/0", "0/1")
    nothing_read(found[3], "0/1")
    found[0].sent = {"1/1": 4}
    found[1].sent = {}
    assert judge(plan, found).accepted


def nothing_read(consumer: Acknowledgement, *producers: str) -> None:
    for producer in producers:
        del consumer.consumed[producer], consumer.received[producer]


def test_who_read_nothing_of_what_was_sent_read_another_attempt(plan):
    found = answers()
    nothing_read(found[3], "0/1")
    assert judge(plan, found).conflict == ("subtask 0/1 sent 4 payloads to 1/1, which received 0")


@pytest.mark.parametrize("read", [2, 4])
def test_a_payload_is_missing_or_came_twice(plan, read):
    found = answers()
    found[2].received["0/0"] = read
    assert "sent 3 payloads to 1/0" in judge(plan, found).conflict


@pytest.mark.parametrize("silent", range(4))
def test_a_subtask_is_missing(plan, silent):
    found = answers()
    gone = found.pop(silent)
    verdict = judge(plan, found)
    assert not verdict.accepted
    assert verdict.error is None
    assert f"subtask {gone.vertex}/{gone.subtask}" in verdict.conflict


def test_nobody_answered(plan):
    assert "did not answer" in judge(plan, []).conflict


@pytest.mark.parametrize("twice", range(4))
def test_two_attempts_answered(plan, twice):
    found = answers()
    found.append(replace(found[twice], token="other"))
    assert "two attempts" in judge(plan, found).conflict


def test_one_attempt_answered_twice(plan):
    found = answers()
    assert judge(plan, [*found, found[0]]).conflict == "a subtask answered twice"


def test_a_consumer_read_another_attempt(plan):
    found = answers()
    found[3].consumed["0/1"] = "dead"
    conflict = judge(plan, found).conflict
    assert conflict == "subtask 1/1 read another attempt of 0/1 than answered"


def test_a_consumer_read_two_attempts(plan):
    """As a task reports it: the second token under a name that no subtask has."""
    found = answers()
    found[2].consumed["0/0?"] = "dead"
    assert "read another attempt" in judge(plan, found).conflict


def test_an_error_comes_before_all_else(plan):
    error = UserFunctionError.of("map (job.py:3)", ValueError("bad"))
    found = answers()[:2]
    found[1].error = pickle.dumps(error)
    found[0].freeze_edges = [0]
    verdict = judge(plan, found)
    assert not verdict.accepted
    assert isinstance(verdict.error, UserFunctionError)
    assert str(verdict.error) == str(error)
    assert verdict.freeze_edges == ()


def test_edges_to_freeze_are_gathered(plan):
    """A task that found changeable records did not finish: who is missing does not matter."""
    found = answers()[:3]
    found[0].freeze_edges = [2]
    found[2].freeze_edges = [1, 2]
    assert judge(plan, found) == Verdict(freeze_edges=(1, 2))


def test_spark_decides_how_many_tasks_its_source_has(plan_of, spark_source):
    plan = plan_of(source=spark_source)
    found = answers()
    del found[1]
    for consumer in found[1:]:
        nothing_read(consumer, "0/1")
    assert judge(plan, found).accepted
    assert not judge(plan, [a for a in found if a.vertex == 0]).accepted


def test_a_silent_spark_source_that_was_read(plan_of, spark_source):
    found = answers()
    del found[1]
    assert "0/1" in judge(plan_of(source=spark_source), found).conflict
