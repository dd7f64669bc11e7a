"""Big records, empty streams, skew, and values that often go wrong."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from penstock.common import Types
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

MEGABYTE = 1 << 20


def test_record_of_50_megabytes(env: StreamExecutionEnvironment) -> None:
    """Through a shuffle, into state, and in part back to the program; small ones around it."""
    big = b"x" * (50 * MEGABYTE)
    sized = env.from_elements(1, 50 * MEGABYTE, 2).map(lambda n: (n, b"x" * n))

    stored = sized.key_by(0).map_with_state(lambda record, before: (record[1], record[1]))

    found = {len(data): data for data in stored.execute_and_collect()}
    assert sorted(found) == [1, 2, 50 * MEGABYTE]
    assert found[50 * MEGABYTE] == big


def test_empty_streams(env: StreamExecutionEnvironment) -> None:
    empty = env.from_collection([])
    filtered = env.from_sequence(1, 10).filter(lambda n: n > 10)

    stream = empty.union(filtered).key_by(lambda n: n).sum().rebalance().map(str)

    assert list(stream.execute_and_collect()) == []


def test_empty_stream_in_batch_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    assert list(env.from_collection([]).key_by(lambda n: n).sum().execute_and_collect()) == []


def test_empty_partitions_and_one_key_with_all_the_data(env: StreamExecutionEnvironment) -> None:
    """Eight subtasks, and only one of them has work."""
    env.set_parallelism(8)
    ones = env.from_sequence(1, 5000).map(lambda n: 1).key_by(lambda n: "hot").sum()

    totals = list(ones.execute_and_collect())

    assert totals == list(range(1, 5001))


def test_none_unicode_and_nan(env: StreamExecutionEnvironment) -> None:
    """As records, as keys where they can be, in state, and as field values."""
    keys = [(None,), "", "ключ", "鍵", "🔑", "e\u0301", "\u00e9", "\x00", "\udc80", "a" * 5000]
    records = [(key, value) for key in keys for value in (None, float("nan"), math.inf)]
    keyed = env.from_collection(records).key_by(0)

    seen = keyed.map_with_state(
        lambda record, before: ((before, record), [*(before or []), record])
    )

    found = list(seen.execute_and_collect())
    assert Counter(record[0] for _, record in found) == dict.fromkeys(keys, 3)
    for key in keys:
        mine = [(before, record[1]) for before, record in found if record[0] == key]
        assert [len(before or []) for before, _ in mine] == [0, 1, 2]
        assert mine[0][1] is None
        assert math.isnan(mine[1][1])
        assert mine[2][1] == math.inf
        assert math.isnan(mine[2][0][1][1])


def test_none_in_typed_streams_and_nan_in_aggregates(env: StreamExecutionEnvironment) -> None:
    """None passes every type; NaN is above all numbers, as in Flink, and makes sums NaN."""
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    nones = env.from_collection([None, 1], Types.INT()).map(lambda n: n, Types.INT())
    nans = env.from_elements(1.0, float("nan"), 2.0).key_by(lambda n: "k")
    named: list[Any] = [
        nones.map(lambda n: ("none", n)),
        nans.min().map(lambda n: ("min", n)),
        nans.max().map(lambda n: ("max", n)),
        nans.sum().map(lambda n: ("sum", n)),
    ]

    found = [(name, str(n)) for name, n in named[0].union(*named[1:]).execute_and_collect()]

    assert sorted(found) == [
        ("max", "nan"),
        ("min", "1.0"),
        ("none", "1"),
        ("none", "None"),
        ("sum", "nan"),
    ]
