"""What is made of rows of partial results."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidArgumentError
from penstock.runtime.aggregates import Aggregate
from penstock.runtime.partials import (
    COUNT,
    HIGH,
    LOW,
    NUMBER_OF_RECORDS,
    SUM,
    Combined,
    Partial,
    partials_of,
)

_TYPES = ["string", "bigint", "double"]
_COLUMNS = {"id": 0, "n": 1, "x": 2}


def test_rows_become_accumulators() -> None:
    """Totals of long columns come in two parts, which are put together; so does the mean."""
    read = Combined(
        keys=(0,),
        several=False,
        slide=1000,
        offset=0,
        partials=(Partial(HIGH, (1,)), Partial(LOW, (1,)), Partial(COUNT, (1,))),
        parts=(("sum", (0, 1)), ("avg", (0, 1, 2)), ("count", (NUMBER_OF_RECORDS,))),
    )
    columns = [["a", "b"], [0, 1000], [17, 1400], [3, 2], [-1, None], [5, None], [3, 0]]

    number, newest, partials = read(columns)

    assert number == 5
    assert newest == [17, 1400]
    total = (-1 << 32) + 5
    assert list(partials) == [
        ("a", 0, 3, (total, (total, 3), 3)),
        ("b", 1000, 2, (None, (0, 0), 2)),
    ]


def test_keys_of_several_columns() -> None:
    read = Combined((0, 1), True, 1000, 0, (), (("count", (NUMBER_OF_RECORDS,)),))

    _, _, partials = read([["a"], [7], [0], [17], [3]])

    assert list(partials) == [(("a", 7), 0, 3, (3,))]


def test_null_timestamps() -> None:
    read = Combined((0,), False, 1000, 0, (), ())
    with pytest.raises(InvalidArgumentError, match="a record has no timestamp"):
        read([["a"], [None], [None], [3]])


def test_what_spark_has_to_compute() -> None:
    assert partials_of(Aggregate("avg", "x"), _COLUMNS, _TYPES) == [
        Partial(SUM, (2,)),
        Partial(COUNT, (2,)),
    ]
    assert [p.kind for p in partials_of(Aggregate("sum", "n"), _COLUMNS, _TYPES)] == [HIGH, LOW]
    with pytest.raises(ValueError, match=r"sum\('id'\) over a column of type string"):
        partials_of(Aggregate("sum", "id"), _COLUMNS, _TYPES)
