"""Rows as lines of comma-separated values."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from penstock.errors import InvalidArgumentError, MalformedRecordError, UnsupportedFeatureError

VISIT = Types.ROW_NAMED(
    ["who", "age", "paid", "day", "rooms"],
    [
        Types.STRING(),
        Types.INT(),
        Types.BOOLEAN(),
        Types.SQL_DATE(),
        Types.OBJECT_ARRAY(Types.INT()),
    ],
)
ANN = Row(who='A, "n"', age=7, paid=True, day=dt.date(2024, 2, 29), rooms=[1, 2])


def reader() -> CsvRowDeserializationSchema.Builder:
    return CsvRowDeserializationSchema.Builder(VISIT)


def writer() -> CsvRowSerializationSchema.Builder:
    return CsvRowSerializationSchema.Builder(VISIT)


def test_rows_both_ways() -> None:
    text = pickle.loads(pickle.dumps(writer().build())).serialize(ANN)
    assert text == b'"A, ""n""",7,true,2024-02-29,1;2\n'
    found = pickle.loads(pickle.dumps(reader().build())).deserialize(text)
    assert found == ANN
    assert found.rooms == [1, 2]


def test_every_setting() -> None:
    written = (
        writer()
        .set_field_delimiter("|")
        .set_line_delimiter("")
        .set_array_element_delimiter("/")
        .set_quote_character("'")
        .set_escape_character("\\")
        .set_null_literal("n/a")
        .build()
        .serialize(Row("it's|", None, False, None, [1, 2]))
    )
    assert written == b"'it\\'s|'|n/a|false|n/a|1/2"
    read = (
        reader()
        .set_field_delimiter("|")
        .set_array_element_delimiter("/")
        .set_quote_character("'")
        .set_escape_character("\\")
        .set_null_literal("n/a")
        .set_allow_comments(True)
        .build()
    )
    assert list(read.deserialize(written)) == ["it's|", None, False, None, [1, 2]]
    assert read.deserialize(b"# a comment") is None
    plain = writer().disable_quote_character().set_escape_character("\\").build()
    assert plain.serialize(Row("a,b", 1, True, None, [])) == b"a\\,b,1,true,,\n"


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_text_comes_back(texts: list[str]) -> None:
    row = Types.ROW([Types.STRING() for _ in range(len(texts) + 1)])
    line = CsvRowSerializationSchema.Builder(row).build().serialize(Row("first", *texts))
    found = CsvRowDeserializationSchema.Builder(row).build().deserialize(line)
    assert list(found) == ["first", *texts]


@pytest.mark.parametrize(
    ("line", "reason", "ignored"),
    [
        (b"a,1", "2 values for the 5 fields", ["a", 1, None, None, None]),
        (b"a,x,true,2024-01-01,1", "invalid literal", ["a", None, True, dt.date(2024, 1, 1), [1]]),
        (b"a,1,maybe,,", "neither true nor false", ["a", 1, None, None, None]),
        (b"", "it has 0 lines", None),
        (b'"a', "unexpected end", None),
        (b"\xff", "codec can't decode", None),
    ],
)
def test_bad_lines(line: bytes, reason: str, ignored: Any) -> None:
    with pytest.raises(MalformedRecordError, match=reason):
        reader().build().deserialize(line)
    found = reader().set_ignore_parse_errors(True).build().deserialize(line)
    assert (found if found is None else list(found)) == ignored


def test_bad_settings() -> None:
    with pytest.raises(InvalidArgumentError, match="the field delimiter must be one character"):
        reader().set_field_delimiter("||")
    with pytest.raises(InvalidArgumentError, match="the null literal must be a string"):
        writer().set_null_literal(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the type of a CSV row"):
        CsvRowSerializationSchema.Builder(Types.STRING())
    nested = Types.ROW([Types.ROW([Types.INT()])])
    with pytest.raises(UnsupportedFeatureError, match="in CSV is not supported"):
        CsvRowDeserializationSchema.Builder(nested).build()
