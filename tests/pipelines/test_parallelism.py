"""Parallelism of the environment and of operators: explain shows it, functions see it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError


class Seen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
        )

    def map(self, value: Any) -> Any:
        return self._seen


def test_parallelism_seen(env: StreamExecutionEnvironment) -> None:
    source = env.from_sequence(1, 60)
    three = source.rebalance().map(Seen()).set_parallelism(3).set_max_parallelism(9)
    default = source.rebalance().map(Seen())
    one = source.rebalance().map(Seen()).force_non_parallel()

    assert set(three.union(default, one).execute_and_collect()) == {
        *[(index, 3, 9) for index in range(3)],
        *[(index, 2, 128) for index in range(2)],
        (0, 1, 1),
    }


def test_parallelism_shown(env: StreamExecutionEnvironment) -> None:
    env.set_max_parallelism(10)
    env.from_sequence(1, 6).map(str).set_parallelism(4).map(str).name("last").print()

    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["parallelism"] for node in nodes] == [2, 4, 2, 2]
    assert {node["max_parallelism"] for node in nodes} == {10}
    assert "(parallelism 4, max 10)" in env.explain()


def test_minus_one_leaves_it_open(make_env: Any) -> None:
    env = make_env({"parallelism.default": "-1", "pipeline.max-parallelism": "-1"})
    assert env.get_parallelism() >= 1
    assert env.get_max_parallelism() == -1
    assert sorted(env.from_sequence(1, 1000).execute_and_collect()) == list(range(1, 1001))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("parallelism.default", "0", "a positive int, got int 0"),
        ("parallelism.default", "-2", "a positive int, got int -2"),
        ("pipeline.max-parallelism", "0", "a positive int, got int 0"),
        ("pipeline.max-parallelism", "100000", "at most 32768, got int 100000"),
    ],
)
def test_numbers_that_cannot_be(make_env: Any, key: str, value: str, expected: str) -> None:
    env = make_env({key: value})
    env.from_sequence(1, 1000).print()
    with pytest.raises(InvalidArgumentError) as caught:
        env.execute()
    assert str(caught.value) == f"{key} must be {expected}"


def test_too_large_a_max_parallelism(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidArgumentError, match="max parallelism must be at most 32768"):
        env.set_max_parallelism(100_000)
    assert env.set_max_parallelism(32768).get_max_parallelism() == 32768
