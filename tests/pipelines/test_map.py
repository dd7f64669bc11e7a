"""map: one record out for each one in."""

from __future__ import annotations

from functools import partial
from operator import add
from typing import Any

from penstock.datastream import MapFunction, StreamExecutionEnvironment


class Times(MapFunction):
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def map(self, value: int) -> int:
        return value * self.factor


class Plus:
    """Any callable will do."""

    def __call__(self, value: int) -> int:
        return value + 1


def test_map(env: StreamExecutionEnvironment) -> None:
    seven = 7
    stream = (
        env.from_collection([1, 2, 3])
        .map(lambda value: value + seven)
        .map(Times(10))
        .map(Plus())
        .map(partial(add, 1000))
        .map(str)
    )

    assert sorted(stream.execute_and_collect()) == ["1081", "1091", "1101"]


def test_map_keeps_what_is_mutable_apart(env: StreamExecutionEnvironment) -> None:
    """Two branches of one stream do not see each other's changes."""

    def mark(name: str, record: dict[str, Any]) -> dict[str, Any]:
        record["marks"].append(name)
        return record

    source = env.from_collection([{"marks": []}])
    left = source.map(partial(mark, "left"))
    right = source.map(partial(mark, "right"))

    marks = [record["marks"] for record in left.union(right).execute_and_collect()]
    assert sorted(marks) == [["left"], ["right"]]
