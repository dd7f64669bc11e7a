"""Built-in aggregates: what they make of records, one by one. Pure Python, no engine.

Every aggregate has rules that any engine can keep, so that a result does not depend on where it was
computed: None counts for nothing, NaN is above all numbers and equal to itself, -0.0 is 0.0, and of
values with equal ranks the lower (or higher) one is taken.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from penstock.common.watermark_strategy import is_column
from penstock.datastream._records import record_class
from penstock.datastream.functions import AggregateFunction
from penstock.errors import InvalidArgumentError
from penstock.runtime.fields import Field, getter, tuple_getter

Step = Callable[[Any, Any], Any]
"""From a part of an accumulator and a record to the part with the record in it."""

# Stands for NaN in sets, where it must be found again. Nothing of a record's can be this.
_NAN = ...


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over a field of the records, or several; `by` is what those go by that take
    the value of a record for another one's sake."""

    kind: str
    field: Field | tuple[Field, ...] | None = None
    by: Field | None = None

    @property
    def values(self) -> tuple[Field, ...]:
        """The fields that it is over."""
        if self.field is None:
            return ()
        return self.field if isinstance(self.field, tuple) else (self.field,)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All that it reads, what it goes by first."""
        return self.values if self.by is None else (self.by, *self.values)

    def __post_init__(self) -> None:
        if isinstance(self.field, tuple) and (self.by is None or len(self.field) < 2):
            wanted = "one field" if self.by is None else "a field, or several in a tuple"
            raise InvalidArgumentError.of(f"what {self.kind} is over", wanted, self.field)
        for field in (*self.values, self.by):
            if is_column(field):
                raise InvalidArgumentError(
                    f"{self.kind} takes a field by its name or position, got a Column; compute it "
                    "in a map before, as in map([..., column.alias('x')]), and name it: "
                    f"{self.kind}('x')"
                )
            if field is not None:
                getter(field)  # refuses what is no field

    def __repr__(self) -> str:
        fields = [repr(field) for field in (self.field, self.by) if field is not None]
        return f"{self.kind}({', '.join(fields)})"


class BuiltInAggregate(AggregateFunction):
    """Several aggregates in one function. Its results are records with a field for each.

    The accumulator is a tuple with a part for each aggregate.
    """

    def __init__(self, aggregates: dict[str, Aggregate]) -> None:
        self.aggregates = aggregates
        parts = [_PARTS[aggregate.kind](aggregate) for aggregate in aggregates.values()]
        self._parts = parts
        self._steps = [part.step() for part in parts]
        self._merge = _merging([part.merge for part in parts])
        self._results = [part.result for part in parts]
        self._record = record_class(tuple(aggregates))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.aggregates,)

    def __repr__(self) -> str:
        return ", ".join(f"{name}={one!r}" for name, one in self.aggregates.items())

    def create_accumulator(self) -> tuple[Any, ...]:
        return tuple([part.create() for part in self._parts])

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            [step(part, value) for step, part in zip(self._steps, accumulator, strict=True)]
        )

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._merge(acc_a, acc_b)

    def get_result(self, accumulator: tuple[Any, ...]) -> Any:
        return self._record._make(
            [result(part) for result, part in zip(self._results, accumulator, strict=True)]
        )

    def get_results(self, accumulators: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of many, at least one, at once: a third of the time."""
        parts = zip(*accumulators, strict=True)
        # Accumulators may be those of a program that had more aggregates, or fewer.
        return self.records(
            [map(result, part) for result, part in zip(self._results, parts, strict=True)]
        )

    def records(self, results: Sequence[Iterable[Any]]) -> Iterator[Any]:
        """Records of results, given aggregate by aggregate."""
        return map(tuple.__new__, repeat(self._record), zip(*results, strict=True))


def _merging(
    merges: list[Callable[[Any, Any], Any]],
) -> Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]:
    """Merges accumulators part by part. Of few parts without a loop: half the time.

    Accumulators with more parts, or fewer, are refused: some other program's.
    """
    if len(merges) == 1:
        (only,) = merges

        def one(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
            (x,), (y,) = a, b
            return (only(x, y),)

        return one
    if len(merges) == 2:
        first, second = merges

        def both(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
            a_first, a_second = a
            b_first, b_second = b
            return first(a_first, b_first), second(a_second, b_second)

        return both
    return lambda a, b: tuple([merge(x, y) for merge, x, y in zip(merges, a, b, strict=True)])


def checked_names(aggregates: dict[str, Any]) -> dict[str, Aggregate]:
    """The aggregates, if all are some, under names that a record's fields can have."""
    if not aggregates:
        raise InvalidArgumentError(
            "of() needs at least one aggregate with a name, as in of(n=count()); got none"
        )
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            wanted = "an aggregate such as count() or avg('temperature')"
            raise InvalidArgumentError.of(f"{name!r} of of()", wanted, aggregate)
        if name.startswith("_") or keyword.iskeyword(name):
            wanted = "one that a field can have, without an underscore in front"
            raise InvalidArgumentError.of("a result's name", wanted, name)
    return aggregates


# One class for each kind: a part of the accumulator


class _Part:
    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate

    def create(self) -> Any:
        return None

    def step(self) -> Step:
        raise NotImplementedError

    def merge(self, one: Any, other: Any) -> Any:
        raise NotImplementedError

    def result(self, part: Any) -> Any:
        return part

    def _get(self) -> Callable[[Any], Any]:
        field = self._aggregate.field
        assert field is not None
        return tuple_getter(map(getter, field)) if isinstance(field, tuple) else getter(field)


class _Count(_Part):
    def create(self) -> int:
        return 0

    def step(self) -> Step:
        if self._aggregate.field is None:
            return lambda part, record: part + 1
        call = self._get()
        return lambda part, record: part if call(record) is None else part + 1

    def merge(self, one: int, other: int) -> int:
        return one + other


class _Sum(_Part):
    def step(self) -> Step:
        call = self._get()

        def step(part: Any, record: Any) -> Any:
            value = call(record)
            if value is None:
                return part
            return +value if part is None else part + value

        return step

    def merge(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return one + other


class _Avg(_Part):
    """Total and number."""

    def create(self) -> tuple[Any, int]:
        return 0, 0

    def step(self) -> Step:
        call = self._get()

        def step(part: tuple[Any, int], record: Any) -> tuple[Any, int]:
            value = call(record)
            return part if value is None else (part[0] + value, part[1] + 1)

        return step

    def merge(self, one: tuple[Any, int], other: tuple[Any, int]) -> tuple[Any, int]:
        return one[0] + other[0], one[1] + other[1]

    def result(self, part: tuple[Any, int]) -> Any:
        return part[0] / part[1] if part[1] else None


class _Extreme(_Part):
    """The lowest or the highest value."""

    def step(self) -> Step:
        call, merge = self._get(), self.merge
        return lambda part, record: merge(part, call(record))

    def merge(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return self._better(one, other)

    def _better(self, one: Any, other: Any) -> Any:
        raise NotImplementedError


class _Min(_Extreme):
    def _better(self, one: Any, other: Any) -> Any:
        return other if _below(other, one) else one


class _Max(_Extreme):
    def _better(self, one: Any, other: Any) -> Any:
        return other if _below(one, other) else one


class _By(_Extreme):
    """Pairs of rank and value."""

    def step(self) -> Step:
        assert self._aggregate.by is not None
        call, rank_of, merge = self._get(), getter(self._aggregate.by), self.merge

        def step(part: Any, record: Any) -> Any:
            rank = rank_of(record)
            return part if rank is None else merge(part, (rank, call(record)))

        return step

    def result(self, part: Any) -> Any:
        return None if part is None else part[1]


class _MinBy(_By):
    def _better(self, one: Any, other: Any) -> Any:
        return other if _pair_below(other, one) else one


class _MaxBy(_By):
    def _better(self, one: Any, other: Any) -> Any:
        return other if _pair_below(one, other) else one


class _AllBy(_Part):
    """A rank, and the values of all records that have it."""

    def step(self) -> Step:
        assert self._aggregate.by is not None
        call, rank_of = self._get(), getter(self._aggregate.by)

        def step(part: Any, record: Any) -> Any:
            rank = rank_of(record)
            if rank is None or (part is not None and self._better(part[0], rank)):
                return part
            if part is None or self._better(rank, part[0]):
                return rank, [call(record)]
            part[1].append(call(record))
            return part

        return step

    def merge(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        if self._better(one[0], other[0]):
            return one
        if self._better(other[0], one[0]):
            return other
        return one[0], one[1] + other[1]

    def result(self, part: Any) -> list[Any]:
        return [] if part is None else sorted(part[1], key=place_of)

    def _better(self, one: Any, other: Any) -> bool:
        raise NotImplementedError


class _AllMinBy(_AllBy):
    def _better(self, one: Any, other: Any) -> bool:
        return _below(one, other)


class _AllMaxBy(_AllBy):
    def _better(self, one: Any, other: Any) -> bool:
        return _below(other, one)


class _CountDistinct(_Part):
    """A set of the values."""

    def create(self) -> set[Any]:
        return set()

    def step(self) -> Step:
        call = self._get()

        def step(part: set[Any], record: Any) -> set[Any]:
            value = call(record)
            if value is not None:
                part.add(_NAN if value != value else value)
            return part

        return step

    def merge(self, one: set[Any], other: set[Any]) -> set[Any]:
        return one | other

    def result(self, part: set[Any]) -> int:
        return len(part)


def distinct_values(values: Any) -> set[Any]:
    """The part of an accumulator for values that are all different."""
    return {_NAN if value != value else value for value in values}


def _below(one: Any, other: Any) -> bool:
    if one != one or other != other:
        return bool(one == one)  # NaN is above all, and not above itself
    return bool(one < other)


def _pair_below(one: Any, other: Any) -> bool:
    """By rank, then by value."""
    if _below(one[0], other[0]):
        return True
    if _below(other[0], one[0]):
        return False
    return bool(place_of(one[1]) < place_of(other[1]))


def place_of(value: Any) -> Any:
    """By which values are put in order: None is the lowest, NaN the highest; several one by one."""
    if isinstance(value, tuple):
        return 1, tuple(map(place_of, value))
    if value is None:
        return (0,)
    return (1, value) if value == value else (2,)


_PARTS: dict[str, Callable[[Aggregate], _Part]] = {
    "count": _Count,
    "sum": _Sum,
    "avg": _Avg,
    "min": _Min,
    "max": _Max,
    "min_by": _MinBy,
    "max_by": _MaxBy,
    "all_min_by": _AllMinBy,
    "all_max_by": _AllMaxBy,
    "count_distinct": _CountDistinct,
}
