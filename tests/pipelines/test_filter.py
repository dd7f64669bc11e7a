"""filter: the records for which the function is true."""

from __future__ import annotations

from penstock.datastream import FilterFunction, StreamExecutionEnvironment


class Above(FilterFunction):
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def filter(self, value: int) -> bool:
        return value > self.limit


def test_filter(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(range(10)).filter(lambda value: value % 2 == 0).filter(Above(3))

    assert sorted(stream.execute_and_collect()) == [4, 6, 8]


def test_filter_by_truth(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection(["a", "", "b", None]).filter(lambda value: value)

    assert sorted(stream.execute_and_collect()) == ["a", "b"]
