"""Built-in aggregates for windows: `windowed.aggregate(aggregates.of(n=count(), mean=avg("t")))`.

Fields are given by name or position. None counts for nothing, NaN is above all numbers and equal to
itself. Results are the same wherever they are computed, but for the rounding of sums of floats,
which depends on the order in which they are added.
"""

from __future__ import annotations

from penstock.runtime.aggregates import Aggregate, BuiltInAggregate, checked_names
from penstock.runtime.fields import Field

__all__ = [
    "all_max_by",
    "all_min_by",
    "avg",
    "count",
    "count_distinct",
    "max",
    "max_by",
    "min",
    "min_by",
    "of",
    "sum",
]

Fields = Field | tuple[Field, ...] | list[Field]
"""A field, or several for a tuple of their values."""


def of(**aggregates: Aggregate) -> BuiltInAggregate:
    """One AggregateFunction for all of them; its result is a record with these names."""
    return BuiltInAggregate(checked_names(aggregates))


def count(field: Field | None = None) -> Aggregate:
    """How many records there are; with a field, in how many it is not None."""
    return Aggregate("count", field)


def sum(field: Field) -> Aggregate:
    """The total; None if there is no value. Ints of any size."""
    return Aggregate("sum", field)


def avg(field: Field) -> Aggregate:
    """The mean, a float for ints too; None if there is no value."""
    return Aggregate("avg", field)


def min(field: Field) -> Aggregate:
    """The lowest value; None if there is none."""
    return Aggregate("min", field)


def max(field: Field) -> Aggregate:
    """The highest value; None if there is none."""
    return Aggregate("max", field)


def min_by(value: Fields, by: Field) -> Aggregate:
    """`value` of the record whose `by` is lowest; the lowest such if there are several."""
    return Aggregate("min_by", _fields(value), by)


def max_by(value: Fields, by: Field) -> Aggregate:
    """`value` of the record whose `by` is highest; the highest such if there are several."""
    return Aggregate("max_by", _fields(value), by)


def all_min_by(value: Fields, by: Field) -> Aggregate:
    """The list of `value` of all records whose `by` is lowest, in ascending order."""
    return Aggregate("all_min_by", _fields(value), by)


def all_max_by(value: Fields, by: Field) -> Aggregate:
    """The list of `value` of all records whose `by` is highest, in ascending order."""
    return Aggregate("all_max_by", _fields(value), by)


def count_distinct(field: Field) -> Aggregate:
    """How many different values there are. A window keeps all of them."""
    return Aggregate("count_distinct", field)


def _fields(value: Fields) -> Field | tuple[Field, ...]:
    return tuple(value) if isinstance(value, list) else value
