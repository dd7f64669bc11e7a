"""Fields of every kind of record, and the rolling aggregates built on them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row
from penstock.errors import InvalidArgumentError
from penstock.runtime.fields import getter, replacer, rolling_function, tuple_getter


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


@dataclass(frozen=True, slots=True)
class Slim:
    sensor: str
    value: float


class Plain:
    def __init__(self, sensor: str, value: float) -> None:
        self.sensor = sensor
        self.value = value

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


# record, field, what is there, the record with 9 in its place
RECORDS: list[tuple[Any, int | str, Any, Any]] = [
    (("a", 1), 1, 1, ("a", 9)),
    (("a", 1), "f1", 1, ("a", 9)),
    (["a", 1], 1, 1, ["a", 9]),
    (Point(3, 4), 1, 4, Point(3, 9)),
    (Point(3, 4), "y", 4, Point(3, 9)),
    (Row("a", 1), 1, 1, Row("a", 9)),
    (Row("a", 1), "f1", 1, Row("a", 9)),
    (Row(name="a", age=1), 1, 1, Row(name="a", age=9)),
    (Row(name="a", age=1), "age", 1, Row(name="a", age=9)),
    ({"name": "a", "age": 1}, "age", 1, {"name": "a", "age": 9}),
    ({5: "a"}, 5, "a", {5: 9}),
    (Reading("s", 1.5), "value", 1.5, Reading("s", 9)),
    (Reading("s", 1.5), 1, 1.5, Reading("s", 9)),
    (Slim("s", 1.5), "value", 1.5, Slim("s", 9)),
    (Plain("s", 1.5), "value", 1.5, Plain("s", 9)),
    (7, 0, 7, 9),
    (2.5, 0, 2.5, 9),
    ("text", 0, "text", 9),
    (Decimal("1.5"), 0, Decimal("1.5"), 9),
    (None, 0, None, 9),
]


@pytest.mark.parametrize(("record", "field", "value", "replaced"), RECORDS)
def test_a_field_is_read_and_replaced(
    record: Any, field: int | str, value: Any, replaced: Any
) -> None:
    before = pickle.dumps(record)
    get, put = pickle.loads(pickle.dumps((getter(field), replacer(field))))
    for _ in range(2):  # the second time by the remembered way
        assert get(record) == value
        result = put(record, 9)
        assert result == replaced
        assert type(result) is type(replaced)
    assert pickle.dumps(record) == before


def test_one_getter_serves_records_of_several_classes() -> None:
    get = getter("value")
    records = [Reading("s", 1.0), {"value": 2.0}, Plain("s", 3.0), Row(value=4.0)]
    assert [get(record) for record in records * 2] == [1.0, 2.0, 3.0, 4.0] * 2


@pytest.mark.parametrize(
    ("record", "field", "sentence"),
    [
        (("a", 1), 2, "position 2 in a record of type tuple .* 2 fields without names"),
        (("a", 1), "age", "field 'age' in a record of type tuple"),
        (("a", 1), "count", "field 'count'"),
        (Point(1, 2), "z", "its fields are 'x', 'y'"),
        (Row("a"), "age", "type Row .* 1 fields without names"),
        (Row(name="a"), "age", "its fields are 'name'"),
        ({"name": "a"}, "age", "type dict .* its fields are 'name'"),
        ({"name": "a"}, 0, "position 0 in a record of type dict"),
        (Reading("s", 1.0), "valeu", "type Reading .* its fields are 'sensor', 'value'"),
        (Reading("s", 1.0), 2, "position 2 in a record of type Reading"),
        (Plain("s", 1.0), "age", "its fields are 'sensor', 'value'"),
        (Plain("s", 1.0), 0, "position 0 in a record of type Plain"),
        (7, 1, "position 1 in a record of type int .* itself, at position 0"),
        ("text", "name", "type str"),
        (object(), "name", "it has no fields"),
    ],
)
def test_an_unknown_field_is_named(record: Any, field: int | str, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        getter(field)(record)
    with pytest.raises(InvalidArgumentError, match=sentence):
        replacer(field)(record, 9)


def test_a_field_missing_from_a_later_record_is_named() -> None:
    get = getter("age")
    assert get({"age": 1}) == 1
    with pytest.raises(InvalidArgumentError, match="its fields are 'name'"):
        get({"name": "a"})


@pytest.mark.parametrize("field", [-1, True, "", None, 1.5, (0,)])
def test_what_cannot_be_a_field_is_refused_at_once(field: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a field must be"):
        getter(field)


def test_several_selectors_make_a_tuple() -> None:
    select = pickle.loads(pickle.dumps(tuple_getter([getter(1), getter(0), len])))
    assert select(("a", "b", "c")) == ("b", "a", 3)


def roll(kind: str, field: int | str, records: list[Any]) -> Any:
    function: Callable[[Any, Any], Any] = pickle.loads(pickle.dumps(rolling_function(kind, field)))
    return reduce(function, records)


READINGS = [("first", 5, 1), ("low", 2, 2), ("high", 8, 3), ("low again", 2, 4), ("top", 8, 5)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", ("first", 25, 1)),
        ("min", ("first", 2, 1)),
        ("max", ("first", 8, 1)),
        ("min_by", ("low", 2, 2)),
        ("max_by", ("high", 8, 3)),
    ],
)
def test_rolling_keeps_the_fields_that_flink_keeps(kind: str, expected: Any) -> None:
    assert roll(kind, 1, READINGS) == expected


@given(st.lists(st.integers(), min_size=1))
def test_rolling_over_scalars(numbers: list[int]) -> None:
    assert roll("sum", 0, numbers) == sum(numbers)
    assert roll("min", 0, numbers) == roll("min_by", 0, numbers) == min(numbers)
    assert roll("max", 0, numbers) == roll("max_by", 0, numbers) == max(numbers)


@given(st.permutations([1.0, 2.0, math.nan]))
def test_nan_is_above_all(numbers: list[float]) -> None:
    assert roll("min", 0, numbers) == 1.0
    assert math.isnan(roll("max", 0, numbers))


def test_rolling_leaves_records_as_they_are() -> None:
    first, second = {"n": 1, "who": "a"}, {"n": 2, "who": "b"}
    assert roll("sum", "n", [first, second]) == {"n": 3, "who": "a"}
    assert (first, second) == ({"n": 1, "who": "a"}, {"n": 2, "who": "b"})


def test_an_unknown_aggregate_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="min_by"):
        rolling_function("median", 0)
