"""Stored keys and values, read and laid out in columns by their recorded types alone."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.state.arrow_values import arrow_type, column, from_arrow
from penstock.state.keys import encode_key
from penstock.state.stored_keys import (
    MIXED,
    NOTHING,
    EnumMember,
    KeyObject,
    common_type_of,
    is_whole,
    read_key,
)
from penstock.state.stored_values import Pickled, stored_type, type_text
from penstock.state_processor.encoding import key_adapter


@dataclass
class Point:
    x: int
    label: str
    more: Any = None


class Pair(NamedTuple):
    a: int
    b: float


@dataclass(frozen=True)
class Frozen:
    x: int


class Colour(enum.Enum):
    RED = 1


TYPES = [
    (Types.STRING(), "é"),
    (Types.LONG(), -5),
    (Types.BOOLEAN(), True),
    (Types.FLOAT(), 0.1),
    (Types.BIG_INT(), 10**30),
    (Types.BIG_DEC(), decimal.Decimal("1.25")),
    (Types.BIG_DEC(), decimal.Decimal("12345678901234567890.123456789012345678")),
    (Types.BIG_DEC(), decimal.Decimal("1200")),
    (Types.SQL_DATE(), dt.date(2026, 2, 3)),
    (Types.SQL_TIME(), dt.time(1, 2, 3, 4)),
    (Types.SQL_TIMESTAMP(), dt.datetime(2026, 2, 3, 4, 5, 6, 7)),
    (Types.INSTANT(), Instant(5, 6000)),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x00\xff"),
    (Types.LIST(Types.TUPLE([Types.LONG(), Types.STRING()])), [(1, "a"), (2, "b")]),
    (Types.MAP(Types.STRING(), Types.LIST(Types.LONG())), {"a": [1], "b": []}),
    (Types.MAP(Types.SQL_DATE(), Types.LONG()), {dt.date(2026, 2, 3): 1}),
    (Types.ROW_NAMED(["n", "s"], [Types.LONG(), Types.STRING()]), Row(n=1, s="a")),
]

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED"]}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "more", "type": {"type": "map", "values": "double"}},
    ],
}  # fmt: skip
ORDER = {
    "id": uuid.UUID(int=7),
    "at": dt.datetime(2026, 2, 3, tzinfo=dt.timezone.utc),
    "colour": "RED",
    "lines": [{"n": 1}, {"n": 2}],
    "note": None,
    "more": {"a": 0.5},
}
TYPES.append((GenericRecordAvroTypeInfo(AvroSchema(SCHEMA)), ORDER))


@pytest.mark.parametrize(("type_info", "value"), TYPES, ids=lambda p: repr(p)[:40])
def test_a_value_comes_back_from_a_column(type_info: Any, value: Any) -> None:
    described = type_info.describe()
    dumps, loads = stored_type(described).serializer()
    read = loads(type_info.serializer()[0](value))
    assert read == value
    laid_out = column([read, None], described)
    assert laid_out.type == arrow_type(described)
    adapt = from_arrow(described)
    again, nothing = map(adapt, laid_out.to_pylist())
    convert = stored_type(described).as_kept().converter()
    assert nothing is None
    assert dumps(convert(again) if convert else again) == type_info.serializer()[0](value)


def test_classes_are_not_needed() -> None:
    described = Types.DATACLASS(Point).describe()
    raw = Types.DATACLASS(Point).serializer()[0](Point(1, "a", {"any": 1}))
    described["class"] = "nowhere:Lost"
    dumps, loads = stored_type(described).serializer()
    read = loads(raw)
    assert (read["x"], read["label"]) == (1, "a")
    assert isinstance(read["more"], Pickled)
    assert read["more"].open() == {"any": 1}
    assert dumps(read) == raw
    assert stored_type(described, open_pickles=True).serializer()[1](raw)["more"] == {"any": 1}
    assert type_text(described) == "Lost(x: Long, label: String, more: PickledByteArray)"


def test_a_named_tuple_is_a_dict() -> None:
    raw = Types.NAMED_TUPLE(Pair).serializer()[0](Pair(1, 2.5))
    assert stored_type(Types.NAMED_TUPLE(Pair).describe()).serializer()[1](raw) == {
        "a": 1,
        "b": 2.5,
    }


def test_what_is_pickled_is_not_opened() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return exec, ("raise SystemExit('opened')",)

    raw = Types.PICKLED_BYTE_ARRAY().serializer()[0](Bomb())
    closed = stored_type({"kind": "pickled"}).serializer()[1](raw)
    assert repr(closed) == f"<pickled, {len(raw)} bytes>"
    assert column([closed], {"kind": "pickled"}).to_pylist() == [raw]
    with pytest.raises(SystemExit):
        closed.open()


plain_keys = st.one_of(
    st.text(),
    st.integers(),
    st.floats(allow_nan=False),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.uuids(),
)


@given(st.recursive(plain_keys, lambda inner: st.tuples(inner, inner), max_leaves=4))
def test_a_plain_key_is_read_as_it_was(key: Any) -> None:
    assert read_key(encode_key(key)) == key


@given(st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_whole_keys_come_back_from_a_column(keys: list[Any]) -> None:
    stored = [encode_key(key) for key in keys]
    described = common_type_of(stored)
    assert described == {"kind": "tuple", "elements": [{"kind": "string"}, {"kind": "long"}]}
    laid_out = column([read_key(data) for data in stored], described)
    adapt = key_adapter(described)
    assert [encode_key(adapt(value)) for value in laid_out.to_pylist()] == stored


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ([], "nothing"),
        (["a", "b"], "string"),
        ([1, True, 2.0], "long"),
        ([1, 2.5], "double"),
        ([1, 2**80], "big_int"),
        ([1, "a"], "mixed"),
        ([(1, 2), (1, 2, 3)], "mixed"),
        ([dt.datetime(2026, 1, 1)], "sql_timestamp"),
        ([dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)], "instant"),
        ([Colour.RED], "mixed"),
        ([uuid.UUID(int=3)], "mixed"),
        ([Row(a=1), Row(a=2)], "row"),
    ],
)
def test_the_type_that_keys_have_in_common(keys: list[Any], kind: str) -> None:
    described = common_type_of(map(encode_key, keys))
    assert described["kind"] == kind
    assert is_whole(described) is (kind != "mixed")
    assert len(column([read_key(encode_key(key)) for key in keys], described)) == len(keys)


def test_a_part_of_a_key_may_have_no_type_in_common() -> None:
    described = common_type_of(map(encode_key, [("a", 1), ("a", None), ("a", "b")]))
    assert described == {"kind": "tuple", "elements": [{"kind": "string"}, MIXED]}
    assert not is_whole(described)
    assert common_type_of([encode_key(("a", None))])["elements"][1] == NOTHING


def test_objects_are_shown_without_their_class() -> None:
    assert str(read_key(encode_key(Colour.RED))) == "Colour.RED"
    assert isinstance(read_key(encode_key(Colour.RED)), EnumMember)
    shown = read_key(encode_key(Frozen(3)))
    assert shown == KeyObject(f"{Frozen.__module__}.Frozen", (("x", 3),))
    assert repr(shown) == "Frozen(x=3)"
