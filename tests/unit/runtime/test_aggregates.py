"""Built-in aggregates: one by one against Python's own, and merging against adding."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import aggregates as agg
from penstock.errors import InvalidArgumentError

NAN = float("nan")
_ALL = agg.of(
    n=agg.count(),
    known=agg.count(1),
    total=agg.sum(1),
    mean=agg.avg(1),
    low=agg.min(1),
    high=agg.max(1),
    low_by=agg.min_by(2, 1),
    high_by=agg.max_by(2, 1),
    all_low=agg.all_min_by(2, 1),
    all_high=agg.all_max_by((2, 0), 1),
    distinct=agg.count_distinct(1),
)


def _folded(function: Any, *records: Any) -> Any:
    accumulator = function.create_accumulator()
    for record in records:
        accumulator = function.add(record, accumulator)
    return accumulator


def _result(function: Any, *records: Any) -> Any:
    return function.get_result(_folded(function, *records))


def test_all_of_them() -> None:
    records = [("a", 4, "x"), ("a", None, "y"), ("a", 1, "z"), ("a", 4, "w")]

    found = _result(_ALL, *records)

    assert repr(found) == (
        "Record(n=4, known=3, total=9, mean=3.0, low=1, high=4, "
        "low_by='z', high_by='x', all_low=['z'], all_high=[('w', 'a'), ('x', 'a')], distinct=2)"
    )


def test_results_of_many_at_once() -> None:
    accumulators = [_folded(_ALL, ("a", n, "x"), ("a", None, "y")) for n in range(3)]

    found = list(_ALL.get_results(accumulators))

    assert list(map(repr, found)) == [repr(_ALL.get_result(held)) for held in accumulators]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("more", [1, -1])
def test_accumulators_of_other_aggregates(number: int, more: int) -> None:
    """From a checkpoint of the program as it was before: no results rather than wrong ones."""
    function = agg.of(**{name: agg.count() for name in "abc"[:number]})
    stored, own = (1,) * (number + more), (1,) * number

    with pytest.raises(ValueError):
        function.get_result(stored)
    with pytest.raises(ValueError):
        list(function.get_results([stored]))
    with pytest.raises(ValueError):
        function.merge(stored, own)


def test_nothing_but_nulls() -> None:
    assert _result(_ALL, ("a", None, "y")) == (1, 0, *[None] * 6, [], [], 0)


def test_records_with_names() -> None:
    function = agg.of(mean=agg.avg("temp"), first=agg.min_by("id", "temp"))
    records = [{"id": "b", "temp": 1.0}, {"id": "a", "temp": 1.0}, {"id": "c", "temp": 4.0}]

    assert _result(function, *records) == (2.0, "a")


def test_nan_and_zeros() -> None:
    """NaN is above all numbers and one value; so are both zeros."""
    records = [(0, value, None) for value in (NAN, 0.0, -0.0, float("nan"), 7.0)]

    found = _result(_ALL, *records)

    assert found.low == 0
    assert math.isnan(found.high)
    assert found.distinct == 3
    assert math.isnan(found.mean)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [(["q", "p"], "p", "q"), ([None, "p"], None, "p"), ([1.0, NAN], 1.0, NAN)],
)
def test_equal_ranks(values: list[Any], low: Any, high: Any) -> None:
    function = agg.of(low=agg.min_by(1, 0), high=agg.max_by(1, 0))
    for order in (values, values[::-1]):
        found = _result(function, *[(5, value) for value in order])
        assert repr(tuple(found)) == repr((low, high))


def test_ints_of_any_size() -> None:
    found = _result(agg.of(total=agg.sum(0), mean=agg.avg(0)), 2**63 - 1, 2**63 - 1, 2)
    assert found == (2**64, 2**64 / 3)


def test_a_sum_of_booleans_is_a_number_even_of_one() -> None:
    assert repr(_result(agg.of(total=agg.sum(0)), (True,))) == "Record(total=1)"


def test_survives_pickling() -> None:
    copied = pickle.loads(pickle.dumps(_ALL))
    assert _result(copied, ("a", 4, "x")) == _result(_ALL, ("a", 4, "x"))


_RECORDS = st.lists(
    st.tuples(st.just("k"), st.none() | st.integers(-5, 5), st.none() | st.sampled_from("abc"))
)


@given(_RECORDS, _RECORDS)
def test_merging_is_adding(first: list[Any], second: list[Any]) -> None:
    merged = _ALL.merge(_folded(_ALL, *first), _folded(_ALL, *second))
    assert merged == _folded(_ALL, *first, *second)


@given(_RECORDS, _RECORDS)
@pytest.mark.parametrize("parts", [1, 2])
def test_merging_of_few_parts(parts: int, first: list[Any], second: list[Any]) -> None:
    aggregates = {"distinct": agg.count_distinct(1), "high": agg.max(1)}
    few = agg.of(**{name: aggregates[name] for name in list(aggregates)[:parts]})
    merged = few.merge(_folded(few, *first), _folded(few, *second))
    assert merged == _folded(few, *first, *second)


@given(_RECORDS)
def test_against_python(records: list[Any]) -> None:
    found = _result(_ALL, *records)
    known = [value for _, value, _ in records if value is not None]
    ranked = sorted(
        ((value, name is not None, name or "", name) for _, value, name in records
         if value is not None),
        key=lambda pair: pair[:3],
    )  # fmt: skip

    assert found == (
        len(records),
        len(known),
        sum(known) if known else None,
        sum(known) / len(known) if known else None,
        min(known, default=None),
        max(known, default=None),
        ranked[0][3] if ranked else None,
        ranked[-1][3] if ranked else None,
        [name for value, _, _, name in ranked if value == min(known)],
        [(name, "k") for value, _, _, name in ranked if value == max(known)],
        len(set(known)),
    )


def test_several_values() -> None:
    """They are compared one after the other, None the lowest and NaN the highest of each."""
    records = [(1, "b", 7.0), (1, "b", NAN), (1, None, 9.0), (0, "z", 0.0), (None, "a", 0.0)]
    function = agg.of(
        low=agg.min_by([1, 2], 0), high=agg.max_by((1, 2), 0), all_high=agg.all_max_by((1, 2), 0)
    )
    assert repr(tuple(_result(function, *records))) == repr(
        (("z", 0.0), ("b", NAN), [(None, 9.0), ("b", 7.0), ("b", NAN)])
    )
    assert _result(function) == (None, None, [])


def test_values_of_equal_rank_that_are_tuples_or_nothing() -> None:
    values = [(1, (2, 3)), None, (1, None), NAN]
    records = [(7, value) for value in values]
    function = agg.of(low=agg.min_by(1, 0), high=agg.max_by(1, 0), all_low=agg.all_min_by(1, 0))
    found = (None, NAN, [None, (1, None), (1, (2, 3)), NAN])
    assert repr(tuple(_result(function, *records))) == repr(found)
    assert repr(tuple(_result(function, *records[::-1]))) == repr(found)


def test_refusals() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one aggregate"):
        agg.of()
    with pytest.raises(InvalidArgumentError, match="'n' of of"):
        agg.of(n=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a result's name"):
        agg.of(_n=agg.count())
    with pytest.raises(InvalidArgumentError, match="a field must be"):
        agg.sum(-1)
    for one in ([], ("a",)):
        with pytest.raises(InvalidArgumentError, match="a field, or several in a tuple"):
            agg.max_by(one, "n")
    with pytest.raises(InvalidArgumentError, match="what count is over must be one field"):
        agg.count(("a", "b"))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a field must be"):
        agg.all_max_by(("a", -1), "n")
