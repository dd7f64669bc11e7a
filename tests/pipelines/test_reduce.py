"""reduce: each record combined with the result so far of its key."""

from __future__ import annotations

import pytest

from penstock.common import Types
from penstock.datastream import ReduceFunction, RuntimeExecutionMode, StreamExecutionEnvironment

STREAMING, BATCH = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH


class Join(ReduceFunction):
    def reduce(self, value1: tuple[str, str], value2: tuple[str, str]) -> tuple[str, str]:
        return value1[0], value1[1] + value2[1]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (STREAMING, [("a", "1"), ("a", "13"), ("a", "134"), ("b", "2")]),
        (BATCH, [("a", "134"), ("b", "2")]),
    ],
)
def test_reduce(
    env: StreamExecutionEnvironment, mode: RuntimeExecutionMode, expected: list[tuple[str, str]]
) -> None:
    env.set_runtime_mode(mode)
    records = [("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")]

    stream = env.from_collection(records).key_by(0).reduce(Join())

    assert sorted(stream.execute_and_collect()) == expected


def test_reduce_of_typed_records_over_many_epochs(restartable_env) -> None:
    env = restartable_env()
    records = [(f"k{i % 3}", 1) for i in range(60)]
    typed = env.from_collection(records, Types.TUPLE([Types.STRING(), Types.INT()]))

    counts = typed.key_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))

    expected = [(f"k{key}", n) for key in range(3) for n in range(1, 21)]
    assert sorted(counts.execute_and_collect()) == expected
