"""union: the records of several streams, equal ones included."""

from __future__ import annotations

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError


def test_union(env: StreamExecutionEnvironment) -> None:
    """Two or more, one of them twice, keyed ones too."""
    numbers = env.from_elements(1, 2)
    sequence = env.from_sequence(2, 4)
    keyed = env.from_elements(5, 6).key_by(lambda n: n)

    stream = numbers.union(sequence, numbers.map(lambda n: n), keyed).map(lambda n: n * 10)

    assert sorted(stream.execute_and_collect()) == [10, 10, 20, 20, 20, 30, 40, 50, 60]


def test_state_after_a_union_is_shared(env: StreamExecutionEnvironment) -> None:
    left = env.from_elements(("a", 1), ("b", 10))
    right = env.from_elements(("a", 2))

    totals = left.union(right).key_by(0).sum(1)

    last = {}
    for key, total in totals.execute_and_collect():
        last[key] = max(total, last.get(key, 0))
    assert last == {"a": 3, "b": 10}


def test_unlike_types_are_refused(env: StreamExecutionEnvironment) -> None:
    texts = env.from_collection(["a"], Types.STRING())

    with pytest.raises(InvalidArgumentError, match="union needs streams of one type"):
        texts.union(env.from_collection([1], Types.INT()))
    untyped = env.from_elements("b")
    with pytest.raises(InvalidArgumentError, match=r"got String and Integer; map one"):
        untyped.union(texts, env.from_collection([1], Types.INT()))
