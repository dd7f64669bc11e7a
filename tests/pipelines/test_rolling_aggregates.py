"""sum, min, max, min_by, max_by: a result per record, in batch mode one per key.

::

    field 1    5   7   3   3   9   9
    sum        5  12  15  18  27  36
    min        5   5   3   3   3   3     with the other fields of the first record
    min_by     5   5   3   3   3   3     the record itself; of equal ones the earlier
"""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_records import Point, Reading

from penstock.common import Row
from penstock.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

STREAMING, BATCH = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH

FIELDS = [(5, "p"), (7, "q"), (3, "r"), (3, "s"), (9, "t"), (9, "v")]
RECORDS = [*[("a", *fields) for fields in FIELDS], ("b", 1, "u")]
EXPECTED = {
    "sum": [("a", n, "p") for n in (5, 12, 15, 18, 27, 36)],
    "min": [("a", n, "p") for n in (5, 5, 3, 3, 3, 3)],
    "max": [("a", n, "p") for n in (5, 7, 7, 7, 9, 9)],
    "min_by": [("a", 5, "p"), ("a", 5, "p"), *[("a", 3, "r")] * 4],
    "max_by": [("a", 5, "p"), *[("a", 7, "q")] * 3, *[("a", 9, "t")] * 2],
}


def _all_aggregates(env: StreamExecutionEnvironment) -> DataStream:
    """The aggregates in one job, each result with the name of its aggregate."""
    keyed = env.from_collection(RECORDS).key_by(0)
    named = [
        getattr(keyed, name)(1).map(lambda record, name=name: (name, record)) for name in EXPECTED
    ]
    return named[0].union(*named[1:])


@pytest.mark.parametrize("mode", [STREAMING, BATCH])
def test_aggregates(env: StreamExecutionEnvironment, mode: RuntimeExecutionMode) -> None:
    env.set_runtime_mode(mode)

    found: dict[tuple[str, str], list[Any]] = {}
    for name, record in _all_aggregates(env).execute_and_collect():
        found.setdefault((name, record[0]), []).append(record)

    for name, results in EXPECTED.items():
        assert found[name, "a"] == (results if mode is STREAMING else results[-1:])
        assert found[name, "b"] == [("b", 1, "u")]


def test_fields_by_name_and_of_plain_numbers(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(BATCH)
    readings = [Reading("s", 1.5, ["x"]), Reading("s", 2.0), Reading("s", 0.5)]
    sums = [
        env.from_collection(readings).key_by("sensor").sum("celsius"),
        env.from_collection([Point(1, 2), Point(1, 5)]).key_by("x").sum("y"),
        env.from_collection([{"k": 1, "n": 2}, {"k": 1, "n": 3}]).key_by("k").sum("n"),
        env.from_collection([Row(k=1, n=2), Row(k=1, n=5)]).key_by("k").max("n"),
        env.from_collection([3, 4]).key_by(lambda n: 0).sum(),
    ]

    found = list(sums[0].union(*sums[1:]).execute_and_collect())
    expected = [Reading("s", 4.0, ["x"]), Point(1, 7), {"k": 1, "n": 5}, Row(k=1, n=5), 7]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
