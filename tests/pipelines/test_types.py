"""Declared output types: values are what the type says, whatever way they travelled."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from pipeline_records import Point, Reading

from penstock.common import Row, Types
from penstock.datastream import StreamExecutionEnvironment

# Declared type, what the function gives, what comes out.
CONVERSIONS: list[tuple[Any, Any, Any]] = [
    (Types.BYTE(), 300, 44),
    (Types.SHORT(), 43878, -21658),
    (Types.INT(), 9147483648, 557549056),
    (Types.LONG(), 1 << 63, -(1 << 63)),
    (Types.BIG_INT(), 1 << 80, 1 << 80),
    (Types.FLOAT(), 0.1, 0.10000000149011612),
    (Types.DOUBLE(), 1, 1.0),
    (Types.BOOLEAN(), True, True),
    (Types.STRING(), "ü", "ü"),
    (Types.CHAR(), "x", "x"),
    (Types.BIG_DEC(), Decimal("1.5"), Decimal("1.5")),
    (Types.SQL_DATE(), dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    (Types.SQL_TIMESTAMP(), dt.datetime(2024, 2, 29, 1, 2), dt.datetime(2024, 2, 29, 1, 2)),
    (Types.TUPLE([Types.INT(), Types.FLOAT()]), (1 << 32, 0.1), (0, 0.10000000149011612)),
    (Types.ROW([Types.INT(), Types.STRING()]), (7, "a"), Row(f0=7, f1="a")),
    (Types.ROW_NAMED(["n"], [Types.BYTE()]), Row(n=200), Row(n=-56)),
    (Types.LIST(Types.INT()), (1, 2), [1, 2]),
    (Types.MAP(Types.STRING(), Types.SHORT()), {"k": 70000}, {"k": 4464}),
    (Types.BASIC_ARRAY(Types.INT()), [1 << 32], [0]),
    (Types.DATACLASS(Reading), Reading("s", 1, ["t"]), Reading("s", 1.0, ["t"])),
    (Types.NAMED_TUPLE(Point), Point(1, 2), Point(1, 2)),
    (Types.PICKLED_BYTE_ARRAY(), {1: (2, [3])}, {1: (2, [3])}),
    (None, (1, [2]), (1, [2])),
    (Types.INT(), None, None),
]


def test_conversions(env: StreamExecutionEnvironment) -> None:
    """One branch for each type, through an exchange and back to the program."""
    source = env.from_elements(0)
    branches = [
        source.map(lambda _, given=given: given, declared).map(lambda v, i=i: (i, v))
        for i, (declared, given, _) in enumerate(CONVERSIONS)
    ]

    found = dict(branches[0].union(*branches[1:]).execute_and_collect())

    for index, (declared, _, expected) in enumerate(CONVERSIONS):
        assert found[index] == expected, declared
        assert type(found[index]) is type(expected), declared


def test_untyped_records_keep_their_identity(env: StreamExecutionEnvironment) -> None:
    """Without a type, a value is after an exchange what it was before."""
    values: list[Any] = [
        (1, "a"), [1, "a"], {"a": 1}, Point(1, 2), Reading("s", 1.5), Row(1, "a"), Row(n=1),
        b"\x00", 1 << 70, 1.0, True, None, {1, 2}, Decimal("0.10"), dt.timedelta(1), (1, [2], {}),
    ]  # fmt: skip

    found = list(env.from_collection(values).rebalance().map(lambda v: v).execute_and_collect())

    assert sorted(map(repr, found)) == sorted(map(repr, values))
