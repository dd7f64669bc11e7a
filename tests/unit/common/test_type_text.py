"""Values as Flink prints them. All texts were printed by PyFlink 2.3, but where noted."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Encoder, Instant, Row, RowKind, TypeInformation, Types
from penstock.common._type_text import java_text, printed_text
from penstock.common.serialization import LineEncoder

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
ROW = Types.ROW([Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (None, ("a", 1, None, 1.5, True), "('a', 1, None, 1.5, True)"),
        (Types.PICKLED_BYTE_ARRAY(), ("x", 1), "('x', 1)"),
        (Types.STRING(), "it's", "it's"),
        (Types.LONG(), 3, "3"),
        (Types.BOOLEAN(), True, "true"),
        (Types.FLOAT(), 0.10000000149011612, "0.1"),
        (Types.FLOAT(), 110.0999984741211, "110.1"),
        (Types.FLOAT(), 1e10, "1.0E10"),
        (Types.DOUBLE(), 0.1, "0.1"),
        (Types.DOUBLE(), 1e10, "1.0E10"),
        (Types.DOUBLE(), 12345678.9, "1.23456789E7"),
        (Types.DOUBLE(), 1e7, "1.0E7"),
        (Types.DOUBLE(), 9999999.0, "9999999.0"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 0.0001, "1.0E-4"),
        (Types.DOUBLE(), 100.0, "100.0"),
        (Types.DOUBLE(), math.nan, "NaN"),
        (Types.DOUBLE(), math.inf, "Infinity"),
        (Types.DOUBLE(), -math.inf, "-Infinity"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.DOUBLE(), -1.25e-9, "-1.25E-9"),
        (Types.BIG_INT(), 10**30, "1" + "0" * 30),
        (Types.BIG_DEC(), decimal.Decimal("1.50"), "1.50"),
        (Types.TUPLE([Types.BOOLEAN(), Types.DOUBLE()]), (True, 2.0), "(true,2.0)"),
        (Types.TUPLE([PAIR, Types.LIST(Types.INT())]), (("a", 1), [1, 2]), "((a,1),[1, 2])"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", None), "(a,null)"),
        (ROW, Row("a", 1), "+I[a,1]"),
        (ROW, Row("a", None), "+I[a,None]"),
        (Types.ROW([Types.STRING(), PAIR]), Row("a", (1, 2)), "+I[a,(1, 2)]"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, "b": 2}, "{a=1, b=2}"),
        (Types.LIST(Types.STRING()), ["a", "b"], "[a, b]"),
        (Types.SQL_DATE(), dt.date(2020, 1, 2), "2020-01-02"),
        (Types.SQL_TIME(), dt.time(1, 2, 3, 4000), "01:02:03"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 2, 3, 4, 5, 6000), "2020-01-02 03:04:05.006"),
        (Types.INSTANT(), Instant(5, 1_000_000), "1970-01-01T00:00:05.001Z"),
        # Java prints where an array lies in memory, which helps nobody.
        (Types.BASIC_ARRAY(Types.INT()), [1, 2], "[1, 2]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab", "b'ab'"),
    ],
)  # fmt: skip
def test_printed(type_info: TypeInformation | None, value: Any, text: str) -> None:
    assert printed_text(type_info)(value) == text


def test_a_row_shows_its_kind() -> None:
    row = Row("a", 1)
    row.set_row_kind(RowKind.DELETE)
    assert printed_text(ROW)(row) == "-D[a,1]"
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (ROW, Row("a", None), "+I[a, null]"),
        (Types.TUPLE([ROW]), (Row("a", 1),), "(+I[a, 1])"),
        (PAIR, ("a", 1), "(a,1)"),
    ],
)
def test_in_java_s_own_text_rows_have_spaces(
    type_info: TypeInformation, value: Any, text: str
) -> None:
    assert java_text(type_info)(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_s_text_is_the_same_number(value: float) -> None:
    assert float(java_text(Types.DOUBLE())(value)) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_s_text_is_short(value: float) -> None:
    text = java_text(Types.FLOAT())(value)
    assert Types.FLOAT().converter()(float(text)) == value
    assert len(text) <= len("-1.17549435E-38")


def test_lines_of_a_file() -> None:
    encoder = Encoder.simple_string_encoder()
    assert isinstance(encoder, LineEncoder)
    assert encoder.encode(("a", 1)) == b"('a', 1)\n"
    typed = encoder.of_type(PAIR)
    assert typed.encode(("a", 1)) == b"(a,1)\n"
    assert pickle.loads(pickle.dumps(typed)).encode(("ä", None)) == "(ä,null)\n".encode()
