"""Runs of records as bytes: each record arrives as what it was, type and all."""

from __future__ import annotations

import datetime as dt
import enum
import math
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.types import Row
from penstock.runtime.codec import (
    FROZEN,
    PICKLED,
    constant,
    decode,
    dump,
    encode,
    encode_frozen,
)
from penstock.runtime.payload import (
    ACKNOWLEDGEMENT,
    RECORDS,
    Header,
    decode_body,
    encode_body,
    make_header,
    read_header,
)


class Point(NamedTuple):
    x: int
    y: Any


class Labelled(namedtuple("Labelled", "x")):
    """A tuple to which attributes can be added."""


class Text(str):
    pass


class Color(enum.Enum):
    RED = 1


@dataclass
class Reading:
    sensor: str
    values: list[float]


def same(one: Any, other: Any) -> bool:
    """Equal, of the same type, and so are all parts; NaN is the same as NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, Row):
        return same(list(one), list(other))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


plain = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary()
)
constants = st.recursive(
    plain
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.complex_numbers(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.builds(Point, st.just(1), inner),
    max_leaves=6,
)
changeable = (
    st.lists(plain, max_size=3)
    | st.dictionaries(st.text(max_size=3), plain, max_size=3)
    | st.sets(st.integers(), max_size=3)
    | st.binary().map(bytearray)
    | st.builds(Reading, st.text(max_size=3), st.lists(st.just(1.5)))
    | st.lists(plain, max_size=3).map(lambda values: Row(*values))
)


@given(
    st.lists(plain)
    | st.lists(st.lists(plain, max_size=4).map(tuple))
    | st.lists(constants)
    | st.lists(constants | changeable)
)
def test_round_trip(values):
    data, _ = encode(values)
    for form in (data, memoryview(data)):
        back = decode(form)
        assert same(back, values) or back == values
        assert [type(v) for v in back] == [type(v) for v in values]


@given(st.lists(constants))
def test_constants_cannot_change(values):
    assert constant(values)
    assert encode(values)[1]


@given(st.lists(constants), changeable, st.integers(0, 10), st.integers(0, 3))
def test_one_changeable_value_is_enough(values, value, at, depth):
    for _ in range(depth):
        value = (1, value)
    values.insert(at, value)
    assert not constant(values)
    assert not encode(values)[1]


def shared() -> list[Any]:
    inner = [1]
    return [inner, (inner, inner)]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1, True, 1.0, "1", b"1", None],
        [2**63, 2**64 - 1, -(2**63), 2**64, -(2**63) - 1, 2**300],
        [float("inf"), -0.0],
        ["\ud800", ("\udfff",)],
        [(), (1, True), ("a", None, b"")],
        [(1,), 1, ((1, 2), 3), (1, [2])],
        [[1, 2], [3]],
        [frozenset({1, (2, 3)}), {1, 2}, bytearray(b"x")],
        [Point(1, 2), Point(3, "a"), (1, 2)],
        [np.float64(1.5), np.int32(7), np.str_("a")],
        [1.5, np.float64(1.5), (1, np.float64(1.5))],
        [Text("a"), "a"],
        [Color.RED, dt.date(2020, 1, 1), Decimal("1.50"), UUID(int=1)],
        [{"a": 1}, {1, 2}, Row(a=1), Reading("s", [1.0])],
        shared(),
    ],
)
def test_values_arrive_as_what_they_were(values):
    data, _ = encode(values)
    assert data[:1] == PICKLED
    assert same(decode(data), values)


def test_records_with_cycles_arrive():
    ring: list[Any] = [1]
    ring.append(ring)
    data, unchanging = encode([ring])
    (back,) = decode(data)
    assert back[1] is back
    assert not unchanging


def test_a_class_is_named_once_in_a_run():
    one, many = (len(encode([Point(1, 2)] * count)[0]) for count in (1, 101))
    assert (many - one) / 100 < 12


def test_nan_arrives():
    assert math.isnan(decode(encode([float("nan")])[0])[0])
    assert math.isnan(decode(encode([(1, float("nan"))])[0])[0][1])


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        set(),
        bytearray(),
        object(),
        Row(1),
        Reading("a", []),
        np.zeros(2),
        (1, ("a", [])),
        Point(1, {}),
        Labelled(1),
        (1, Labelled(1)),
        lambda: 0,
    ],
)
def test_what_may_change_is_not_constant(value):
    assert not constant([value])
    assert not constant([1, value])


def test_frozen_records_are_as_they_were_when_frozen():
    record = {"a": [1]}
    frozen = [dump(record)]
    record["a"].append(2)
    frozen.append(dump(record))
    data = encode_frozen(frozen)
    assert data[:1] == FROZEN
    assert decode(data) == [{"a": [1]}, {"a": [1, 2]}]
    assert decode(encode_frozen([])) == []


def test_classes_that_exist_only_here_go_along_by_value():
    @dataclass
    class Local:
        a: int

    (back,) = decode(encode([Local(3)])[0])
    assert back.a == 3


def test_what_cannot_be_pickled_raises():
    with pytest.raises(TypeError, match="generator"):
        encode([(x for x in ())])


@given(
    st.integers(0, 1),
    st.integers(0, 65535),
    st.integers(0, 65535),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=8, max_size=8),
)
def test_headers(kind, edge, vertex, subtask, token):
    header = make_header(kind, edge, vertex, subtask, token)
    assert read_header(header + b"body") == Header(kind, edge, vertex, subtask, token)


def test_kinds_differ():
    assert RECORDS != ACKNOWLEDGEMENT


@given(st.lists(st.tuples(st.none() | st.integers(0, 2**50), plain)), st.data())
def test_bodies(records, data):
    timestamps, values = ([record[part] for record in records] for part in range(2))
    stamped, frozen = (data.draw(st.booleans()) for _ in range(2))
    body, unchanging = encode_body(
        timestamps if stamped else None,
        [dump(value) for value in values] if frozen else values,
        frozen,
    )
    assert unchanging
    found = decode_body(make_header(RECORDS, 1, 2, 3, bytes(8)) + body)
    assert same(found.values, values)
    assert same(found.timestamps, timestamps if stamped else None)
    assert found.events == []


def test_a_body_says_whether_its_values_may_change():
    assert encode_body(None, [1], False)[1]
    assert not encode_body(None, [[1]], False)[1]
    assert encode_body(None, [dump([1])], True)[1]


@pytest.mark.parametrize(
    "timestamp", [dt.datetime(2026, 1, 1), Decimal(5), None, 2**70, np.int64(3), 1.5, True]
)
def test_timestamps_that_nobody_has_checked(timestamp: Any) -> None:
    """Whoever works with one says what is wrong with it."""
    body, _ = encode_body([timestamp], ["a"], False)
    assert same(decode_body(body, 0).timestamps, [timestamp])
