"""Records made of columns, whatever the columns are called."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from penstock.common.types import Row
from penstock.datastream._records import RecordMaker, ValueMaker, names_in, record_class
from penstock.runtime.fields import getter

NAMES = ("_1", "_2", "class", "my col", "count", "_fields", "ok")


def test_every_column_is_found_by_its_name() -> None:
    (record,) = RecordMaker(NAMES)([[at] for at in range(len(NAMES))])
    assert [getter(name)(record) for name in NAMES] == list(range(len(NAMES)))
    assert (record._1, record._2, getattr(record, "class"), record.count, record.ok) == (
        0, 1, 2, 4, 6,
    )  # fmt: skip
    assert record._fields == NAMES
    assert repr(record).startswith("Record(_1=0, _2=1, class=2, my col=3, count=4")
    assert pickle.loads(pickle.dumps(record)) == record
    assert record._asdict() == dict(zip(NAMES, range(len(NAMES)), strict=True))


def test_usual_names_make_a_plain_named_tuple() -> None:
    record = record_class(("id", "n"))("a", 1)
    assert repr(record) == "Record(id='a', n=1)"
    assert record._replace(n=2) == ("a", 2)


def test_columns_of_the_same_name_are_told_apart_by_position() -> None:
    record = record_class(("a", "a"))._make((1, 2))
    assert record.a == 1
    assert record == (1, 2)


@pytest.mark.parametrize(("kind", "field"), [(None, "b"), (dict, "b"), (tuple, 1)])
def test_the_field_of_a_column(kind: type | None, field: object) -> None:
    assert RecordMaker(("a", "b"), kind).field_of(1) == field


@pytest.mark.parametrize(
    ("kind", "letter"),
    [
        *[(pa.int8(), "i"), (pa.uint64(), "i"), (pa.float32(), "d"), (pa.float64(), "d")],
        *[(pa.bool_(), "b"), (pa.string(), "s"), (pa.large_string(), "s")],
        (pa.dictionary(pa.int32(), pa.string()), "s"),
        *[(pa.timestamp("ms"), None), (pa.date32(), None), (pa.list_(pa.int64()), None)],
        *[(pa.decimal128(9, 2), None), (pa.null(), None), (pa.float64(), "d")],
    ],
)
def test_the_shape_of_records(kind: Any, letter: str | None) -> None:
    """Known of what columns of plain values have in them."""
    shape = RecordMaker(("a", "b"), tuple).shape([pa.int64(), kind])
    assert shape == (None if letter is None else f"(i{letter})")
    assert ValueMaker().shape([kind]) == letter
    for other in (dict, Row):
        assert RecordMaker(("a", "b"), other).shape([pa.int64(), kind]) is None


def test_the_shape_of_named_records() -> None:
    types = [pa.int64(), pa.string()]
    shape = RecordMaker(("my col", "größe")).shape(types)
    assert shape is not None
    assert names_in(shape) == (("my col", "größe"), "(is)")
    assert names_in("(is)") == (None, "(is)")
    for awkward in ("\x1f", "a\x1eb"):
        assert RecordMaker(("a", awkward)).shape(types) is None
    assert RecordMaker(()).shape([]) is None
