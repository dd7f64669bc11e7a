"""map_with_state, flat_map_with_state, filter_with_state: functions of a value and a state."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError


def _running_total(value: tuple[str, int], total: int | None) -> tuple[Any, int | None]:
    total = (total or 0) + value[1]
    return (value[0], total), None if total >= 10 else total


def test_with_state(env: StreamExecutionEnvironment) -> None:
    """A state of None starts anew: the total of 'a' after it reached 10."""
    keyed = env.from_elements(("a", 4), ("a", 6), ("b", 1), ("a", 1), ("a", 1)).key_by(0)

    mapped = keyed.map_with_state(_running_total, state_type=Types.LONG())
    repeated = keyed.flat_map_with_state(
        lambda value, seen: ([value] * (seen or 0), (seen or 0) + 1)
    )
    firsts = keyed.filter_with_state(lambda value, seen: (seen is None, True))

    streams = {"map": mapped, "flat_map": repeated, "filter": firsts}
    named = [s.map(lambda value, name=name: (name, value)) for name, s in streams.items()]
    found: dict[str, list[Any]] = {}
    for name, value in named[0].union(*named[1:]).execute_and_collect():
        found.setdefault(name, []).append(value)

    assert [v for v in found["map"] if v[0] == "a"] == [("a", 4), ("a", 10), ("a", 1), ("a", 2)]
    assert ("b", 1) in found["map"]
    assert found["flat_map"] == [("a", 6), *[("a", 1)] * 5]
    assert sorted(found["filter"]) == [("a", 4), ("b", 1)]


def test_wrong_answer(env: StreamExecutionEnvironment) -> None:
    stream = env.from_elements(1).key_by(lambda n: n).map_with_state(lambda value, state: value)

    with pytest.raises(InvalidArgumentError, match=r"\(result, new state\), got int 1") as caught:
        list(stream.execute_and_collect())
    assert "test_with_state.py:" in str(caught.value)
