"""Key groups: a job that goes on with another parallelism finds the state of every key."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.errors import CheckpointMismatchError

KEYS = 30


def _counts(env: StreamExecutionEnvironment, limit: int) -> DataStream:
    """Gives (key, how many so far)."""

    def pair(n: int) -> tuple[str, int]:
        if n >= limit:
            raise RuntimeError("half-way")
        return f"key {n % KEYS}", 1

    return env.from_sequence(0, 299).uid("numbers").map(pair).key_by(0).sum(1).uid("counts")


@pytest.mark.parametrize(("before", "after"), [("2", "3"), ("3", "1")])
def test_other_parallelism(
    restartable_env: Any, collect_until_error: Any, before: str, after: str
) -> None:
    settings = {"penstock.source.max-records-per-epoch": "25"}
    first_env = restartable_env({**settings, "parallelism.default": before})
    second_env = restartable_env({**settings, "parallelism.default": after})

    first, _ = collect_until_error(_counts(first_env, limit=280))
    second = list(_counts(second_env, limit=1000).execute_and_collect())

    assert len(first) >= 50
    assert second
    each = range(1, 300 // KEYS + 1)
    expected = sorted((f"key {key}", count) for key in range(KEYS) for count in each)
    assert sorted(first + second) == expected


def test_max_parallelism_stays(restartable_env: Any, collect_until_error: Any) -> None:
    """It is the number of key groups, by which state is stored."""
    collect_until_error(_counts(restartable_env(), limit=280))
    env = restartable_env().set_max_parallelism(64)

    with pytest.raises(CheckpointMismatchError, match=r"set_max_parallelism\(128\)"):
        list(_counts(env, limit=1000).execute_and_collect())
