"""Records of known shapes on their way."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream._records import RecordMaker, record_class
from penstock.runtime.codec import PICKLED, SHAPED, decode, encode_as
from penstock.runtime.shapes import marked_shape

_TYPES = {
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.none() | st.integers(0, 2**64 - 1),
    pa.float64(): st.none() | st.floats(allow_nan=False),
    pa.bool_(): st.none() | st.booleans(),
    pa.string(): st.none() | st.text(st.characters(exclude_categories=["Cs"])),
}


@st.composite
def _columns(draw: Any) -> tuple[list[Any], list[list[Any]]]:
    types = draw(st.lists(st.sampled_from(list(_TYPES)), min_size=1, max_size=5))
    rows = draw(st.integers(1, 5))
    return types, [draw(st.lists(_TYPES[t], min_size=rows, max_size=rows)) for t in types]


@given(_columns(), st.booleans())
def test_records_come_as_what_they_were(found: Any, named: bool) -> None:
    types, columns = found
    names = tuple(f"feld {n} ü" for n in range(len(types)))
    maker = RecordMaker(names, None if named else tuple)
    records = list(maker(columns))

    encoded, constant = encode_as(maker.shape(types), records)

    assert constant
    assert encoded[:1] == SHAPED
    arrived = decode(memoryview(encoded))
    assert list(map(repr, arrived)) == list(map(repr, records))
    assert {type(record) for record in arrived} == {record_class(names) if named else tuple}


@pytest.mark.parametrize("kind", [None, tuple])
def test_marks_do_not_travel_with_each_record(kind: Any) -> None:
    maker = RecordMaker(("a", "b"), kind)
    records = list(maker([[5, None], ["x", "y"]]))
    marked = [(1, record) for record in records]
    shape = maker.shape([pa.int64(), pa.string()])
    encoded, constant = encode_as(marked_shape(1, shape), marked)
    assert constant
    assert encoded[:1] == SHAPED
    assert len(encoded) == len(encode_as(shape, records)[0]) + len("1|")
    arrived = decode(encoded)
    assert list(map(repr, arrived)) == list(map(repr, marked))
    assert {type(each) for each in arrived} == {tuple}


def test_marked_records_that_are_not_as_promised_are_pickled() -> None:
    marked = [(0, (2**70,))]
    encoded, _ = encode_as(marked_shape(0, "(i)"), marked)
    assert encoded[:1] == PICKLED
    assert decode(encoded) == marked


@pytest.mark.parametrize("sign", ["\x1d", "\x1e", "\x1f"])
def test_names_with_signs_of_shapes_have_none(sign: str) -> None:
    assert RecordMaker((f"a{sign}b", "c")).shape([pa.int64(), pa.int64()]) is None


def test_nan_is_nan() -> None:
    (arrived,) = decode(memoryview(encode_as("(d)", [(math.nan,)])[0]))
    assert math.isnan(arrived[0])


def test_names_that_are_too_long_are_pickled() -> None:
    maker = RecordMaker(tuple(f"{n}" * 1000 for n in range(5)))
    record = next(iter(maker([[1]] * 5)))
    encoded, _ = encode_as(maker.shape([pa.int64()] * 5), [record])
    assert encoded[:1] == PICKLED
    assert decode(encoded) == [record]
