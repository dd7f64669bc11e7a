"""Values to bytes and back."""

import dataclasses
import datetime as dt
import decimal
import math
import struct
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind, Types
from penstock.common.time import Instant
from penstock.common.typeinfo import DataclassTypeInfo
from penstock.errors import CheckpointMismatchError

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


class Point(NamedTuple):
    x: float
    label: str = "none"


@dataclasses.dataclass(frozen=True)
class Order:
    id: str
    points: list[Point]
    total: decimal.Decimal | None = None
    tags: frozenset[str] = frozenset()


@dataclasses.dataclass
class Slim:
    __slots__ = ("n",)
    n: int


@dataclasses.dataclass
class Checked:
    n: int
    made: list[int] = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.made.append(self.n)


def round_trip(type_info, value):
    write, read = type_info.serializer()
    data = write(value)
    assert type(data) is bytes
    return read(data)


def same(a, b):
    """Equal in value and type all the way down; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, Row):
        return (a._fields, a._row_kind) == (b._fields, b._row_kind) and same(list(a), list(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, decimal.Decimal):
        return a.as_tuple() == b.as_tuple()
    return a == b


dates = st.dates()
leaves = st.sampled_from(
    [
        (Types.STRING(), st.text()),
        (Types.CHAR(), st.characters(exclude_categories=["Cs"])),
        (Types.BOOLEAN(), st.booleans()),
        (Types.BYTE(), st.integers(-128, 127)),
        (Types.SHORT(), st.integers(-(2**15), 2**15 - 1)),
        (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
        (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
        (Types.FLOAT(), st.floats(width=32)),
        (Types.DOUBLE(), st.floats()),
        (Types.BIG_INT(), st.integers(-(10**90), 10**90)),
        (Types.BIG_DEC(), st.decimals()),
        (Types.INSTANT(), st.builds(Instant, st.integers(-(2**50), 2**50), st.integers(0, 10**9))),
        (Types.SQL_DATE(), dates),
        (Types.SQL_TIME(), st.times()),
        (Types.SQL_TIMESTAMP(), st.datetimes()),
        (BYTES, st.binary()),
        (Types.PICKLED_BYTE_ARRAY(), st.sets(st.integers()) | st.fractions()),
    ]
)
keys = st.sampled_from(
    [
        (Types.STRING(), st.text()),
        (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
        (Types.BIG_INT(), st.integers()),
        (Types.BOOLEAN(), st.booleans()),
        (BYTES, st.binary()),
        (Types.SQL_DATE(), dates),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), st.tuples(st.text(), st.integers(0, 9))),
    ]
)


def nullable(pair):
    return pair[0], st.none() | pair[1]


def composites(inner):
    inner = inner.map(nullable)
    several = st.lists(inner, max_size=3)
    return st.one_of(
        inner.map(lambda p: (Types.LIST(p[0]), st.lists(p[1], max_size=4))),
        inner.map(lambda p: (Types.OBJECT_ARRAY(p[0]), st.lists(p[1], max_size=4))),
        several.map(lambda ps: (Types.TUPLE([p[0] for p in ps]), st.tuples(*[p[1] for p in ps]))),
        several.map(row_pair),
        st.tuples(keys, inner).map(
            lambda kv: (
                Types.MAP(kv[0][0], kv[1][0]),
                st.dictionaries(st.none() | kv[0][1], kv[1][1], max_size=4),
            )
        ),
    )


def row_pair(pairs):
    type_info = Types.ROW_NAMED([f"n{i}" for i in range(len(pairs))], [p[0] for p in pairs])
    convert = type_info.converter()
    values = st.tuples(st.sampled_from(RowKind), *[p[1] for p in pairs])
    return type_info, values.map(lambda v: convert(Row.of_kind(v[0], *v[1:])))


typed_values = (
    st.recursive(leaves, composites, max_leaves=4)
    .map(nullable)
    .flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1]))
)


@given(typed_values)
def test_round_trip_is_exact(typed):
    type_info, value = typed
    assert same(round_trip(type_info, value), value)


@given(typed_values)
def test_a_fitting_value_is_not_changed_by_the_converter(typed):
    type_info, value = typed
    convert = type_info.converter()
    assert convert is None or same(convert(value), value)


def test_edges():
    assert math.isnan(round_trip(Types.DOUBLE(), math.nan))
    assert round_trip(Types.BIG_INT(), -(2**5000)) == -(2**5000)
    assert round_trip(Types.BIG_INT(), 10**6000) == 10**6000
    assert round_trip(Types.BIG_INT(), 2**64) == 2**64
    assert round_trip(Types.MAP(Types.STRING(), Types.INT()), {}) == {}
    assert round_trip(Types.ROW([]), Types.ROW([]).converter()(Row())) == Types.ROW([]).converter()(
        ()
    )
    assert round_trip(Types.TUPLE([]), ()) == ()


def test_classes():
    order = Order("a", [Point(1.5), Point(2.0, "é")], decimal.Decimal("9.90"), frozenset({"x"}))
    assert round_trip(Types.DATACLASS(Order), order) == order
    assert round_trip(Types.DATACLASS(Slim), Slim(3)) == Slim(3)
    assert round_trip(Types.NAMED_TUPLE(Point), Point(1.0)) == Point(1.0)
    assert round_trip(Types.LIST(Types.DATACLASS(Slim)), [Slim(1), None]) == [Slim(1), None]


def test_restoring_does_not_run_the_constructor_again():
    checked = Checked(1)
    assert round_trip(Types.DATACLASS(Checked), checked) == checked
    assert checked.made == [1]


def test_named_fields_are_stored_by_name():
    write, _ = Types.DATACLASS(Checked).serializer()
    assert msgspec.msgpack.decode(write(Checked(1))) == {"n": 1, "made": [1]}
    row_type = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.SQL_DATE()])
    write, _ = row_type.serializer()
    assert msgspec.msgpack.decode(write(Row(a=1, b=dt.date(1970, 1, 3)))) == {"a": 1, "b": 2}


def test_fields_may_come_and_go():
    older = DataclassTypeInfo(Checked, [("n", Types.LONG())])
    stored = older.serializer()[0](Checked(1))
    restored = Types.DATACLASS(Checked).serializer()[1](stored)
    assert (restored.n, restored.made) == (1, [])
    stored = Types.ROW_NAMED(["a", "gone"], [Types.INT(), Types.INT()]).serializer()[0](Row(1, 2))
    newer = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()])
    assert newer.serializer()[1](stored) == Row(a=1, b=None)


def test_a_new_field_without_default_is_an_error():
    stored = msgspec.msgpack.encode({"made": []})
    with pytest.raises(CheckpointMismatchError, match=r"no field 'n'.*no default"):
        Types.DATACLASS(Checked).serializer()[1](stored)


def test_pickled_falls_back_to_cloudpickle():
    assert round_trip(Types.PICKLED_BYTE_ARRAY(), lambda x: x + 1)(1) == 2
