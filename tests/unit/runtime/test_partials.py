"""What is made of rows of partial results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.datastream import aggregates as agg
from penstock.errors import InvalidArgumentError
from penstock.runtime.aggregates import Aggregate
from penstock.runtime.partials import (
    COUNT,
    HIGH,
    LOW,
    MAX,
    MAX_PAIR,
    MIN,
    MIN_PAIR,
    NUMBER_OF_RECORDS,
    SUM,
    VALUES,
    Combined,
    Partial,
    partials_of,
)

_TYPES = ["string", "bigint", "double"]
_COLUMNS = {"id": 0, "n": 1, "x": 2}


def _batch(columns: list[Any]) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns], [str(c) for c in columns])


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
    batch = _batch([["a", "b"], [0, 1000], [17, 1400], [3, 2], [-1, None], [5, None], [3, 0]])

    assert read.records_in(batch) == 5
    assert batch.column(read.newest).to_pylist() == [17, 1400]
    total = (-1 << 32) + 5
    assert list(read.merged([batch])) == [
        ("a", 0, 3, (total, (total, 3), 3)),
        ("b", 1000, 2, (None, (0, 0), 2)),
    ]


def test_keys_of_several_columns() -> None:
    read = Combined((0, 1), True, 1000, 0, (), (("count", (NUMBER_OF_RECORDS,)),))

    batch = _batch([["a"], [7], [0], [17], [3]])

    assert read.select(batch) == [("a", 7)]
    assert list(read.merged([batch])) == [(("a", 7), 0, 3, (3,))]


def test_null_timestamps() -> None:
    read = Combined((0,), False, 1000, 0, (), ())
    with pytest.raises(InvalidArgumentError, match="a record has no timestamp"):
        read.records_in(_batch([["a"], [None], [None], [3]]))


def test_different_values_of_two_tasks() -> None:
    """NaN is one value, however often it comes; no values at all are an empty set."""
    read = Combined((0,), False, 1000, 0, (Partial(VALUES, (2,)),), (("count_distinct", (0,)),))
    values = [[float("nan"), 1.0], [float("nan"), 2.0], None]

    rows = list(read.merged([_batch([["a"] * 3, [0] * 3, [0] * 3, [2] * 3, values])]))

    function = agg.of(n=agg.count_distinct("x"))
    merged = function.create_accumulator()
    for *_, accumulator in rows:
        merged = function.merge(merged, accumulator)
    assert function.get_result(merged) == (3,)


def test_what_spark_has_to_compute() -> None:
    assert partials_of(Aggregate("avg", "x"), _COLUMNS, _TYPES) == [
        Partial(SUM, (2,)),
        Partial(COUNT, (2,)),
    ]
    assert [p.kind for p in partials_of(Aggregate("sum", "n"), _COLUMNS, _TYPES)] == [HIGH, LOW]
    by_map = Aggregate("min_by", "id", "by")
    with pytest.raises(ValueError, match=r"min_by\('id', 'by'\) over a column of type map"):
        partials_of(by_map, {"id": 0, "by": 1}, ["string", "map<string,int>"])
    with pytest.raises(ValueError, match=r"sum\('id'\) over a column of type string"):
        partials_of(Aggregate("sum", "id"), _COLUMNS, _TYPES)


# As Spark would compute them, of columns without nulls in them
_COMPUTED: dict[str, Callable[..., Any]] = {
    COUNT: len,
    SUM: lambda values: sum(values) if values else None,
    HIGH: lambda values: sum(v >> 32 for v in values) if values else None,
    LOW: lambda values: sum(v & 0xFFFFFFFF for v in values) if values else None,
    MIN: lambda values: min(values, default=None),
    MAX: lambda values: max(values, default=None),
    VALUES: lambda values: sorted(set(values)),
    MIN_PAIR: lambda pairs: _as_struct(min(pairs, default=None)),
    MAX_PAIR: lambda pairs: _as_struct(max(pairs, default=None)),
}


def _as_struct(pair: Any) -> Any:
    return None if pair is None else {"by": pair[0], "value": pair[1]}


def _known(rows: list[Any], columns: tuple[int, ...]) -> list[Any]:
    picked = [tuple(row[at] for at in columns) for row in rows]
    known = [values for values in picked if values[0] is not None]
    return known if len(columns) > 1 else [values[0] for values in known]


_ROWS = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-9, 9).map(lambda n: n / 4),
    ),
    min_size=1,
)
_ALL = agg.of(
    rows=agg.count(),
    known=agg.count("n"),
    big=agg.sum("n"),
    total=agg.sum("x"),
    mean=agg.avg("n"),
    mean_of_floats=agg.avg("x"),
    low=agg.min("x"),
    high=agg.max("n"),
    low_by=agg.min_by("id", "x"),
    high_by=agg.max_by("id", "n"),
    distinct=agg.count_distinct("x"),
)


@given(_ROWS, _ROWS)
def test_merged_partial_results_are_as_if_records_were_added(
    first: list[Any], second: list[Any]
) -> None:
    partials: list[Partial] = []
    parts: list[tuple[str, tuple[int, ...]]] = []
    for one in _ALL.aggregates.values():
        if one.field is None:
            parts.append((one.kind, (NUMBER_OF_RECORDS,)))
            continue
        wanted = partials_of(one, _COLUMNS, _TYPES)
        parts.append((one.kind, tuple(range(len(partials), len(partials) + len(wanted)))))
        partials += wanted
    read = Combined((0,), False, 1000, 0, tuple(partials), tuple(parts))
    columns: list[list[Any]] = [["key"] * 2, [0, 0], [0, 0], [len(first), len(second)]]
    columns += [
        [_COMPUTED[partial.kind](_known(rows, partial.columns)) for rows in (first, second)]
        for partial in partials
    ]

    merged = _ALL.create_accumulator()
    for _, _, _, accumulator in read.merged([_batch(columns)]):
        merged = _ALL.merge(merged, accumulator)

    added = _ALL.create_accumulator()
    for row in (*first, *second):
        added = _ALL.add(dict(zip(_COLUMNS, row, strict=True)), added)
    assert merged == added


# Rows of several tasks, merged by Arrow and one by one

_PARTIAL_ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from("pqr"),
        st.sampled_from([-1000, 0, 1000]),
        st.integers(-1000, 2000),
        st.integers(1, 5),
        st.none() | st.integers(-(2**62), 2**62),
        st.none() | st.integers(-9, 9).map(lambda n: n / 4) | st.just(float("nan")),
    ),
    min_size=1,
)
_TYPES_OF_ROWS = [pa.string(), *[pa.int64()] * 4, pa.float64()]


@given(_PARTIAL_ROWS, _PARTIAL_ROWS)
@example([("p", 0, 0, 1, None, None)], [("p", 0, 0, 1, None, None)])
@example([("p", 0, 0, 1, 1, 2.0)], [("p", 0, 0, 1, 1, float("nan"))])
def test_merged_by_arrow_as_one_by_one(first: list[Any], second: list[Any]) -> None:
    function = agg.of(
        rows=agg.count(), high=agg.max("n"), low=agg.min("x"), top=agg.max("x"), total=agg.sum("x")
    )
    read = Combined(
        keys=(0,),
        several=False,
        slide=1000,
        offset=0,
        partials=(Partial(MAX, (1,)), Partial(MIN, (2,)), Partial(MAX, (2,)), Partial(SUM, (2,))),
        parts=(
            ("count", (NUMBER_OF_RECORDS,)),
            *[("max", (0,)), ("min", (1,)), ("max", (2,)), ("sum", (3,))],
        ),
    )
    types = [*_TYPES_OF_ROWS, pa.float64(), pa.float64()]
    batches = [
        pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind, from_pandas=False)
                for column, kind in zip(
                    zip(*[(*row, row[5], row[5]) for row in rows], strict=True), types, strict=True
                )
            ],
            names=[str(at) for at in range(len(types))],
        )
        for rows in (first, second)
    ]

    found: dict[Any, Any] = {}
    for key, start, records, part in read.merged(batches):
        before = found.get((key, start))
        found[key, start] = part if before is None else function.merge(before, part)
        assert records >= part[0]

    wanted: dict[Any, Any] = {}
    for key, start, _, records, n, x in (*first, *second):
        before = wanted.get((key, start), function.create_accumulator())
        wanted[key, start] = function.merge(before, (records, n, x, x, x))
    assert {at: repr(part) for at, part in found.items()} == {
        at: repr(part) for at, part in wanted.items()
    }


def test_one_result_of_a_key_and_slice() -> None:
    """Unless there is something that is no number."""
    count = (("count", (NUMBER_OF_RECORDS,)),)
    columns = [["a", "a", "b"], [0, 0, 0], [1, 2, 3], [1, 4, 1]]
    plain = Combined((0,), False, 1000, 0, (), count)
    low = Combined((0,), False, 1000, 0, (Partial(MIN, (1,)),), (("min", (0,)),))

    assert list(plain.merged([_batch(columns)])) == [("a", 0, 5, (5,)), ("b", 0, 1, (1,))]
    for lowest, rows in (([1.5, 0.5, 1.0], 2), ([1.5, float("nan"), 1.0], 2), (["x", "y", "z"], 3)):
        assert len(list(low.merged([_batch([*columns, lowest])]))) == rows
