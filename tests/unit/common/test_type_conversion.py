"""What converters accept, what they make of it, and how they refuse."""

import array
import dataclasses
import datetime as dt
import decimal
import enum
import math
import struct
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind, Types
from penstock.common.time import Instant
from penstock.errors import TypeMismatchError

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


class Colour(str, enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 9


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Reading:
    sensor: str
    temp: float


@dataclasses.dataclass
class Special(Reading):
    extra: int = 0


def convert(type_info, value):
    return type_info.converter()(value)


@pytest.mark.parametrize(
    ("type_info", "value", "expected"),
    [
        (Types.SHORT(), 43878, -21658),
        (Types.INT(), 9147483648, 557549056),
        (Types.BYTE(), 200, -56),
        (Types.LONG(), 2**63, -(2**63)),
        (Types.LONG(), -(2**63), -(2**63)),
        (Types.INT(), np.int64(5), 5),
        (Types.INT(), Size.BIG, 9),
        (Types.BIG_INT(), 10**50, 10**50),
        (Types.DOUBLE(), 3, 3.0),
        (Types.DOUBLE(), np.float32(0.5), 0.5),
        (Types.FLOAT(), 3.14, struct.unpack("f", struct.pack("f", 3.14))[0]),
        (Types.FLOAT(), 1e300, math.inf),
        (Types.FLOAT(), 2, 2.0),
        (Types.STRING(), "é", "é"),
        (Types.STRING(), Colour.RED, "red"),
        (Types.CHAR(), "x", "x"),
        (Types.BOOLEAN(), True, True),
        (Types.BIG_DEC(), 5, decimal.Decimal(5)),
        (Types.BIG_DEC(), decimal.Decimal("1.10"), decimal.Decimal("1.10")),
        (Types.SQL_DATE(), dt.date(2020, 1, 2), dt.date(2020, 1, 2)),
        (Types.SQL_DATE(), dt.datetime(2020, 1, 2, 3), dt.date(2020, 1, 2)),
        (Types.SQL_TIME(), dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4)),
        (Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2)),
        (
            Types.SQL_TIMESTAMP(),
            dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            dt.datetime(2020, 1, 1, 23),
        ),
        (Types.INSTANT(), Instant(1, 2), Instant(1, 2)),
        (BYTES, b"ab", b"ab"),
        (BYTES, bytearray(b"ab"), b"ab"),
        (BYTES, [1, -1], b"\x01\xff"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), array.array("i", [1, 2]), [1, 2]),
        (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), np.array([1.5]), [1.5]),
        (Types.BASIC_ARRAY(Types.STRING()), ("a", None), ["a", None]),
        (Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()])), [[1]], [(1,)]),
        (Types.LIST(Types.INT()), (1, 2**31), [1, -(2**31)]),
        (Types.LIST(Types.PICKLED_BYTE_ARRAY()), (1, "a"), [1, "a"]),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1}, {"a": 1.0}),
        (Types.TUPLE([Types.INT(), Types.STRING()]), [1, "a"], (1, "a")),
        (Types.TUPLE([Types.INT()]), Row(1), (1,)),
        (Types.NAMED_TUPLE(Point), Point(1, 2.0), Point(1.0, 2.0)),
        (Types.DATACLASS(Reading), Reading("a", 1), Reading("a", 1.0)),
    ],
)
def test_converts(type_info, value, expected):
    got = convert(type_info, value)
    assert got == expected
    assert type(got) is type(expected)


ROW = Types.ROW_NAMED(["id", "n"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    "value",
    [
        Row("a", 1),
        Row(id="a", n=1),
        Row(n=1, id="a"),
        ("a", 1),
        ["a", 1],
        {"n": 1, "id": "a"},
    ],
)
def test_row_from(value):
    assert convert(ROW, value) == Row(id="a", n=1)


def test_row_of_unnamed_fields_gets_flinks_names():
    row = convert(Types.ROW([Types.INT(), Types.STRING()]), Row(1, "hi"))
    assert repr(row) == "Row(f0=1, f1='hi')"


def test_row_keeps_its_kind_and_is_a_new_row():
    given_row = Row.of_kind(RowKind.DELETE, "a", 1)
    row = convert(ROW, given_row)
    assert row.get_row_kind() is RowKind.DELETE
    row.n = 5
    assert given_row[1] == 1


def test_row_from_dict_fills_missing_fields_with_none():
    assert convert(ROW, {"id": "a"}) == Row(id="a", n=None)


def test_unchanged_object_is_passed_through():
    reading = Reading("a", 1.0)
    assert convert(Types.DATACLASS(Reading), reading) is reading


ALL = [
    Types.STRING(),
    Types.BYTE(),
    Types.BOOLEAN(),
    Types.FLOAT(),
    Types.DOUBLE(),
    Types.CHAR(),
    Types.BIG_INT(),
    Types.BIG_DEC(),
    Types.INSTANT(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
    BYTES,
    Types.LIST(Types.INT()),
    Types.MAP(Types.INT(), Types.INT()),
    Types.TUPLE([Types.INT()]),
    ROW,
    Types.DATACLASS(Reading),
    Types.NAMED_TUPLE(Point),
]


@pytest.mark.parametrize("type_info", ALL, ids=repr)
def test_none_always_fits(type_info):
    assert convert(type_info, None) is None
    assert convert(Types.LIST(type_info), [None]) == [None]


@pytest.mark.parametrize("type_info", ALL, ids=repr)
def test_a_stranger_never_fits(type_info):
    with pytest.raises(TypeMismatchError, match="got object <object"):
        convert(type_info, object())


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.INT(), True),
        (Types.INT(), 1.0),
        (Types.INT(), "1"),
        (Types.BIG_INT(), False),
        (Types.DOUBLE(), True),
        (Types.DOUBLE(), "1"),
        (Types.DOUBLE(), 10**400),
        (Types.FLOAT(), decimal.Decimal(1)),
        (Types.STRING(), b"a"),
        (Types.CHAR(), "ab"),
        (Types.BOOLEAN(), 1),
        (Types.BIG_DEC(), 1.5),
        (Types.SQL_DATE(), "2020-01-01"),
        (Types.SQL_TIME(), dt.time(1, tzinfo=dt.timezone.utc)),
        (Types.SQL_TIMESTAMP(), dt.date(2020, 1, 1)),
        (BYTES, "ab"),
        (Types.LIST(Types.INT()), {1}),
        (Types.LIST(Types.STRING()), "abc"),
        (Types.TUPLE([Types.INT()]), (1, 2)),
        (ROW, ("a",)),
        (ROW, {"id": "a", "m": 1}),
        (ROW, Row(id="a", m=1)),
        (Types.DATACLASS(Reading), Special("a", 1.0)),
        (Types.NAMED_TUPLE(Point), (1.0, 2.0)),
    ],
)
def test_refuses(type_info, value):
    with pytest.raises(TypeMismatchError):
        convert(type_info, value)


def test_message_says_expected_got_and_where():
    nested = Types.ROW_NAMED(["temp"], [Types.LIST(Types.MAP(Types.STRING(), Types.INT()))])
    with pytest.raises(TypeMismatchError) as caught:
        convert(nested, Row(temp=[{}, {"k": 1}, {"k": "warm"}]))
    error = caught.value
    assert error.path == ("field 'temp'", "[2]", "value of key 'k'")
    assert (error.expected, error.got_type, error.got_repr) == ("Integer (int)", "str", "'warm'")
    assert str(error) == (
        "expected Integer (int) at field 'temp' [2] value of key 'k', got str 'warm'; "
        "convert the value or declare another type"
    )


def test_path_into_dataclass_tuple_and_key():
    with pytest.raises(TypeMismatchError) as caught:
        convert(Types.DATACLASS(Reading), Reading("a", "hot"))
    assert caught.value.path == ("field 'temp'",)
    with pytest.raises(TypeMismatchError) as caught:
        convert(Types.TUPLE([Types.INT(), Types.INT()]), (1, "x"))
    assert caught.value.path == ("[1]",)
    with pytest.raises(TypeMismatchError) as caught:
        convert(Types.MAP(Types.INT(), Types.INT()), {"x": 1})
    assert caught.value.path == ("key 'x'",)


def test_pickled_needs_no_conversion():
    assert Types.PICKLED_BYTE_ARRAY().converter() is None


FORMATS = [(Types.BYTE(), "b"), (Types.SHORT(), "h"), (Types.INT(), "i"), (Types.LONG(), "q")]


@pytest.mark.parametrize(("type_info", "code"), FORMATS)
@given(value=st.integers())
def test_wrapping_keeps_the_low_bits(type_info, code, value):
    size = struct.calcsize(code)
    low = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    assert convert(type_info, value) == struct.unpack("<" + code, low)[0]


@given(st.floats(width=32))
def test_float32_values_are_kept(value):
    got = convert(Types.FLOAT(), value)
    assert got == value or (math.isnan(got) and math.isnan(value))


class Pair(NamedTuple):
    name: str
    number: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (("a", 2**63, (1.5, True)), ("a", -(2**63), (1.5, True))),
        ((None, 1, (1.5, False)), (None, 1, (1.5, False))),
        (("a", 1, (1, None)), ("a", 1, (1.0, None))),
        (["a", 1, [1.5, True]], ("a", 1, (1.5, True))),
        (("a", np.int64(7), (np.float64(1.5), True)), ("a", 7, (1.5, True))),
    ],
)
def test_a_tuple_of_which_one_part_does_not_fit(value: Any, expected: Any) -> None:
    nested = Types.TUPLE([Types.DOUBLE(), Types.BOOLEAN()])
    found = Types.TUPLE([Types.STRING(), Types.LONG(), nested]).converter()(value)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    assert list(map(type, found[2])) == list(map(type, expected[2]))


def test_a_tuple_that_fits_stays_the_same() -> None:
    nested = Types.TUPLE([Types.DOUBLE(), Types.PICKLED_BYTE_ARRAY()])
    convert = Types.TUPLE([Types.STRING(), Types.LONG(), Types.BIG_INT(), nested]).converter()
    assert convert is not None
    value = ("a", 1, 2**70, (1.5, [object()]))
    assert convert(value) is value
    assert type(Types.TUPLE([Types.STRING(), Types.LONG()]).converter()(Pair("a", 1))) is tuple
    assert Types.TUPLE([]).converter()(()) == ()


@pytest.mark.parametrize(
    "wrong", [("a", True, (1.5, True)), ("a", 1, (1.5,)), (1, 1, (1.5, True)), 7]
)
def test_a_tuple_that_does_not_fit_at_all(wrong: Any) -> None:
    nested = Types.TUPLE([Types.DOUBLE(), Types.BOOLEAN()])
    with pytest.raises(TypeMismatchError):
        Types.TUPLE([Types.STRING(), Types.LONG(), nested]).converter()(wrong)
