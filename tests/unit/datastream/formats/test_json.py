"""Rows as JSON, by a type or by a JSON schema."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, Types
from penstock.datastream.formats.json import (
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from penstock.errors import InvalidArgumentError, MalformedRecordError, UnsupportedFeatureError

PERSON = Types.ROW_NAMED(
    ["name", "age", "tags", "home"],
    [
        Types.STRING(),
        Types.INT(),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.ROW_NAMED(["city"], [Types.STRING()]),
    ],
)
ANN = b'{"name": "Ann", "age": 7, "tags": ["a", null], "home": {"city": "Rom"}, "more": 1}'


def reader(type_info: Any = PERSON) -> JsonRowDeserializationSchema.Builder:
    return JsonRowDeserializationSchema.builder().type_info(type_info)


def writer(type_info: Any) -> JsonRowSerializationSchema:
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


def test_rows_both_ways() -> None:
    schema = pickle.loads(pickle.dumps(reader().build()))
    ann = schema.deserialize(ANN)
    assert ann == Row(name="Ann", age=7, tags=["a", None], home=Row(city="Rom"))
    assert (ann.name, ann.home.city) == ("Ann", "Rom")
    assert schema.get_produced_type() == PERSON

    text = pickle.loads(pickle.dumps(writer(PERSON))).serialize(ann)
    assert text == b'{"name":"Ann","age":7,"tags":["a",null],"home":{"city":"Rom"}}'
    assert schema.deserialize(text) == ann


@pytest.mark.parametrize(
    ("type_info", "text", "value"),
    [
        (Types.BOOLEAN(), "true", True),
        (Types.LONG(), '"12"', 12),
        (Types.DOUBLE(), "1.5", 1.5),
        (Types.BIG_DEC(), "0.10000000000000000001", Decimal("0.10000000000000000001")),
        (Types.STRING(), "7", "7"),
        (Types.SQL_DATE(), '"2024-02-29"', dt.date(2024, 2, 29)),
        (Types.SQL_TIME(), '"12:30:01Z"', dt.time(12, 30, 1)),
        (Types.SQL_TIMESTAMP(), '"2024-02-29T12:30:01Z"', dt.datetime(2024, 2, 29, 12, 30, 1)),
        (Types.INSTANT(), '"1970-01-01T00:00:01.5Z"', Instant(1, 500_000_000)),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), '"AAE="', b"\x00\x01"),
        (Types.MAP(Types.STRING(), Types.INT()), '{"a": 1}', {"a": 1}),
        (Types.LIST(Types.INT()), "[1, 2]", [1, 2]),
    ],
)
def test_types(type_info: Any, text: str, value: Any) -> None:
    row = Types.ROW_NAMED(["x"], [type_info])
    found = reader(row).build().deserialize(f'{{"x": {text}}}'.encode())
    assert found.x == value
    assert type(found.x) is type(value)
    if not isinstance(value, Decimal):  # JSON's numbers cannot hold it
        again = reader(row).build().deserialize(writer(row).serialize(found))
        assert again.x == value


@given(st.lists(st.one_of(st.none(), st.text(), st.integers(-(2**31), 2**31 - 1)), min_size=1))
def test_what_is_written_is_read(values: list[Any]) -> None:
    row = Types.ROW([Types.INT() if isinstance(v, int) else Types.STRING() for v in values])
    text = writer(row).serialize(Row(*values))
    assert list(json.loads(text).values()) == values
    assert list(reader(row).build().deserialize(text)) == values


def test_missing_fields() -> None:
    assert list(reader().build().deserialize(b"{}")) == [None] * 4
    strict = reader().fail_on_missing_field().build()
    with pytest.raises(MalformedRecordError, match="field 'age' is missing"):
        strict.deserialize(b'{"name": "Ann"}')
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        reader().fail_on_missing_field().ignore_parse_errors().build()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b'{"name"', "as JSON: Expecting ':'"),
        (b"[1]", "is no object"),
        (b'{"age": "x"}', "invalid literal for int"),
        (b'{"age": true}', "True is no number"),
        (b'{"tags": 5}', "5 is no array"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_bad_messages(message: bytes, reason: str) -> None:
    with pytest.raises(MalformedRecordError, match=reason):
        reader().build().deserialize(message)
    assert reader().ignore_parse_errors().build().deserialize(message) is None


def test_a_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "at": {"type": "string", "format": "date-time"},
            "data": {"type": "string", "contentEncoding": "base64"},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}},
            "pair": {"type": "array", "items": [{"type": "boolean"}, {"type": "string"}]},
        },
    }
    built = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    assert built.get_produced_type() == Types.ROW_NAMED(
        list(schema["properties"]),
        [
            Types.BIG_INT(),
            Types.BIG_DEC(),
            Types.SQL_TIMESTAMP(),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.OBJECT_ARRAY(Types.STRING()),
            Types.ROW([Types.BOOLEAN(), Types.STRING()]),
        ],
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "cannot read the JSON schema"),
        ('{"type": "object"}', "needs properties"),
        ('{"type": "object", "properties": {"a": {"$ref": "#/x"}}}', "are not followed"),
        ('{"type": "object", "properties": {"a": {"type": "any"}}}', "'any' is no type"),
        ('{"type": "object", "properties": {"a": {"type": "array"}}}', "an array needs items"),
        ('{"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}', "several"),
        ('{"type": "string"}', "Types.ROW"),
    ],
)
def test_bad_schemas(schema: str, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason):
        JsonRowDeserializationSchema.builder().json_schema(schema)


def test_bad_types() -> None:
    with pytest.raises(InvalidArgumentError, match=r"call type_info\(...\) or json_schema"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(InvalidArgumentError, match=r"call with_type_info\(...\)"):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(InvalidArgumentError, match="the type of a JSON row must be"):
        reader(Types.INT())
    odd = Types.ROW([Types.TUPLE([Types.INT()])])
    with pytest.raises(UnsupportedFeatureError, match=r"Tuple\(Integer\) in JSON"):
        writer(odd)
