"""Declared output types: values are what the type says, whatever way they travelled."""

from __future__ import annotations

import datetime as dt
from array import array
from decimal import Decimal
from typing import Any

from pipeline_records import Point, Reading

from penstock.common import Instant, Row, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo

READING = AvroSchema.parse_string(
    '{"type": "record", "name": "Reading", "fields": [{"name": "level", "type": "long"}, '
    '{"name": "unit", "type": "string", "default": "m"}]}'
)

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
    (Types.SQL_TIME(), dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4)),
    (Types.SQL_TIMESTAMP(), dt.datetime(2024, 2, 29, 1, 2), dt.datetime(2024, 2, 29, 1, 2)),
    (Types.INSTANT(), Instant(-1, 999_999_999), Instant(-1, 999_999_999)),
    (Types.TUPLE([Types.INT(), Types.FLOAT()]), (1 << 32, 0.1), (0, 0.10000000149011612)),
    (Types.ROW([Types.INT(), Types.STRING()]), (7, "a"), Row(f0=7, f1="a")),
    (Types.ROW_NAMED(["n"], [Types.BYTE()]), Row(n=200), Row(n=-56)),
    (Types.LIST(Types.INT()), (1, 2), [1, 2]),
    (GenericRecordAvroTypeInfo(READING), {"level": 3}, {"level": 3, "unit": "m"}),
    (Types.MAP(Types.STRING(), Types.SHORT()), {"k": 70000}, {"k": 4464}),
    (Types.BASIC_ARRAY(Types.INT()), [1 << 32], [0]),
    (Types.PRIMITIVE_ARRAY(Types.SHORT()), array("l", [1, 70000]), [1, 4464]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"\x00\xff"), b"\x00\xff"),
    (Types.OBJECT_ARRAY(Types.TUPLE([Types.BYTE()])), [[200], None], [(-56,), None]),
    (Types.DATACLASS(Reading), Reading("s", 1, ["t"]), Reading("s", 1.0, ["t"])),
    (Types.NAMED_TUPLE(Point), Point(1, 2), Point(1, 2)),
    (Types.PICKLED_BYTE_ARRAY(), {1: (2, [3])}, {1: (2, [3])}),
    (None, (1, [2]), (1, [2])),
    (Types.INT(), None, None),
]


def test_conversions(env: StreamExecutionEnvironment) -> None:
    """One branch for each type; the records cross an exchange as they were declared."""
    source = env.from_elements(0)
    branches = [
        source.map(lambda _, given=given: given, declared).rebalance().map(lambda v, i=i: (i, v))
        for i, (declared, given, _) in enumerate(CONVERSIONS)
    ]

    found = dict(branches[0].union(*branches[1:]).execute_and_collect())

    assert len(found) == len(CONVERSIONS)
    for index, (declared, _, expected) in enumerate(CONVERSIONS):
        assert found[index] == expected, declared
        # Values that are equal may differ inside: 1 and 1.0, True and 1.
        assert repr(found[index]) == repr(expected), declared
        assert type(found[index]) is type(expected), declared


def test_conversions_without_an_exchange(env: StreamExecutionEnvironment) -> None:
    """A chained function gets the same as one behind an exchange."""
    source = env.from_elements(0)
    branches = [
        source.map(lambda _, given=given: given, declared).map(lambda v, i=i: (i, repr(v)))
        for i, (declared, given, _) in enumerate(CONVERSIONS)
    ]

    found = dict(branches[0].union(*branches[1:]).execute_and_collect())

    assert found == {i: repr(expected) for i, (*_, expected) in enumerate(CONVERSIONS)}


def test_untyped_records_keep_their_identity(env: StreamExecutionEnvironment) -> None:
    """Without a type, a value is after an exchange what it was before."""
    values: list[Any] = [
        (1, "a"), [1, "a"], {"a": 1}, Point(1, 2), Reading("s", 1.5), Row(1, "a"), Row(n=1),
        b"\x00", 1 << 70, 1.0, True, None, {1, 2}, Decimal("0.10"), dt.timedelta(1), (1, [2], {}),
    ]  # fmt: skip

    found = list(env.from_collection(values).rebalance().map(lambda v: v).execute_and_collect())

    assert sorted(map(repr, found)) == sorted(map(repr, values))
