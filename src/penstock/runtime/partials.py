"""Partial results: what is computed of records before they go to their windows, by Spark or of
whole batches, and what is made of the rows. Knows columns by position, and no Spark.

A row stands for all records of one key and slice of time in one task. It has the key's columns, the
start of the slice, the newest timestamp, the number of records, and then the partial results. Rows
stay in Arrow's columns until they have been merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.datastream.connectors._arrow_columns import column_values
from penstock.errors import InvalidArgumentError
from penstock.runtime.aggregates import Aggregate, distinct_values
from penstock.runtime.extremes import all_with, different_values, extreme_values, pairs_with
from penstock.runtime.grouping import Groups, column_of, is_number, numbers_in, taken
from penstock.state.windows import check_span

COUNT, SUM, HIGH, LOW, MIN, MAX, MIN_PAIR, MAX_PAIR, ALL_MIN, ALL_MAX, VALUES = (
    "count", "sum", "sum of high parts", "sum of low parts", "min", "max", "min pair", "max pair",
    "all with min", "all with max", "different values",
)  # fmt: skip
NOT_OF_SPARK = (ALL_MIN, ALL_MAX)
"""Partial results that Spark has no aggregate for."""
LOW_BITS = 32
"""Of a 64-bit integer, in the low part: sums of parts do not overflow."""

NUMBER_OF_RECORDS = -1
"""In place of a partial result's index."""

BIG_INTEGERS = ("bigint",)
_INTEGERS = ("tinyint", "smallint", "int", *BIG_INTEGERS)
_FLOATS = ("float", "double")
_SUMMED = (*_INTEGERS, *_FLOATS)
_ORDERED = (*_SUMMED, "string", "binary", "boolean", "date")
KEY_TYPES = (*_INTEGERS, "string", "boolean", "date")
"""Of columns whose values are equal in Spark exactly if they are in Python."""
TIME_TYPES = _INTEGERS
"""Of columns that may be timestamps in milliseconds."""
_TYPES = {
    "sum": _SUMMED,
    "avg": _SUMMED,
    "count_distinct": _ORDERED,
    **dict.fromkeys(("min", "max", "min_by", "max_by", "all_min_by", "all_max_by"), _ORDERED),
}


class Partial(NamedTuple):
    """One column of partial results, over columns of the input by position."""

    kind: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class KeyColumns:
    """The first columns of a batch are the keys of its rows. A key selector for whole batches."""

    number: int
    several: bool
    """Whether the key is a tuple, even of one."""

    def __call__(self, batch: Any) -> list[Any]:
        columns = [column_values(batch.column(at)) for at in range(self.number)]
        return list(zip(*columns, strict=True)) if self.several else columns[0]


_AT_ONCE = 8192
"""So many rows become Python values at a time: those of a million take 0.3 GB."""

Merged = tuple[Any, int, int, tuple[Any, ...]]
"""Key, start of the slice, number of records, accumulator."""


Columns = list[list[Any]]
"""Python values, by column."""


@dataclass(frozen=True)
class Combined:
    """Records are combined by key and slice of time before they leave their source's task."""

    keys: tuple[int, ...]
    """Positions of the key's columns."""
    several: bool
    """Whether the key is a tuple, even of one."""
    slide: int
    offset: int
    partials: tuple[Partial, ...]
    """Each once."""
    parts: tuple[tuple[str, tuple[int, ...]], ...]
    """Of the accumulator: kind of aggregate, and which partial results it is made from, or the
    number of records, which comes along anyway."""

    @property
    def select(self) -> KeyColumns:
        return KeyColumns(len(self.keys), self.several)

    @property
    def newest(self) -> int:
        """Which column has the newest timestamp of each row."""
        return len(self.keys) + 1

    def over(self, columns: Sequence[int]) -> Combined:
        """The same where there are only these columns, in this order."""
        place = {column: at for at, column in enumerate(columns)}
        return replace(
            self,
            keys=tuple(place[key] for key in self.keys),
            partials=tuple(
                Partial(kind, tuple(place[column] for column in used))
                for kind, used in self.partials
            ),
        )

    def records_in(self, batch: Any) -> int:
        """How many records the rows of a batch stand for."""
        _check_times(batch.column(len(self.keys)))
        return int(numbers_in(batch.column(len(self.keys) + 2)).sum())

    def combine(self, batch: Any, time: int) -> Any:
        """The rows of partial results of a batch of records, whose timestamps are in column `time`;
        those of one slice one after the other."""
        times = batch.column(time)
        _check_times(times)
        millis = numbers_in(times)
        start = column_of(_starts(millis, self.slide, self.offset))
        keys = [batch.column(at) for at in self.keys]
        groups = Groups([start, *keys])
        rows = groups.first_rows()
        partials = [
            _COMPUTED[partial.kind](groups, *[batch.column(at) for at in partial.columns])
            for partial in self.partials
        ]
        columns = [
            *[taken(key, rows) for key in keys],
            start.take(rows),
            groups.reduced("max", millis, times),
            groups.sizes(),
            *partials,
        ]
        return pa.RecordBatch.from_arrays(columns, _names(len(columns)))

    def merged(self, batches: list[Any]) -> Iterator[Merged]:
        """What the rows of some batches come to.

        One for each key and slice, if all that was computed are numbers; else one for each row.
        """
        grouped = self.grouped(batches)
        for batch in batches if grouped is None else [grouped]:
            for keys, starts, partials in self._read(batch):
                accumulators = zip(*self._made(_ACCUMULATED, partials), strict=True)
                records = partials[NUMBER_OF_RECORDS]
                yield from zip(keys, starts, records, accumulators, strict=True)

    def results(self, batch: Any) -> Iterator[tuple[list[Any], Columns]]:
        """Keys, and the results of all that is in their rows, by aggregate; some at a time. Of a
        batch that was `grouped`, which has results of numbers only."""
        for keys, _, partials in self._read(batch):
            yield keys, self._made(_RESULTS, partials)

    def _read(self, batch: Any) -> Iterator[tuple[list[Any], list[int], Columns]]:
        """Keys, starts, and partial results, the last of which are numbers of records."""
        count = len(self.keys)
        for at in range(0, batch.num_rows, _AT_ONCE):
            rows = batch.slice(at, _AT_ONCE)
            starts, _, records, *partials = map(column_values, rows.columns[count:])
            yield self.select(rows), starts, [*partials, records]

    def _made(self, ways: dict[str, Callable[..., list[Any]]], partials: Columns) -> Columns:
        return [ways[kind](*[partials[i] for i in used]) for kind, used in self.parts]

    def starts_in(self, batch: Any) -> Any:
        """The starts of the slices that the rows of a batch belong to, as numbers of numpy's."""
        return numbers_in(batch.column(len(self.keys)))

    def grouped(self, batches: list[Any]) -> Any:
        """The rows of each key and slice made one, or None if that is not possible."""
        count = len(self.keys)
        ways = ["max", "sum", *[_MERGES.get(partial.kind) for partial in self.partials]]
        kinds = batches[0].schema.types[count + 1 :]
        if not all(way and is_number(kind) for way, kind in zip(ways, kinds, strict=True)):
            return None
        whole = pa.concat_batches(batches)
        groups = Groups([whole.column(count), *whole.columns[:count]])
        rows = groups.first_rows()
        merged = [column.take(rows) for column in whole.columns[: count + 1]]
        for way, column in zip(ways, whole.columns[count + 1 :], strict=True):
            assert way is not None
            merged.append(groups.reduced(way, numbers_in(column), column))
        return pa.RecordBatch.from_arrays(merged, _names(len(merged)))


def _check_times(times: Any) -> None:
    if times.null_count:
        raise InvalidArgumentError(
            "a record has no timestamp: the column given to with_timestamp_assigner is null; "
            "leave such records out before (filter, where), or put a value in its place (coalesce)"
        )


def _starts(times: Any, slide: int, offset: int) -> Any:
    """Where the slices of timestamps begin."""
    if len(times) and (times.min() < -_FAR or times.max() > _FAR):
        # Near the ends of time numbers of 64 bits do not do.
        found = [time - (time - offset) % slide for time in times.tolist()]
        for start in found:
            check_span(start, start + slide)
        return np.array(found, np.int64)
    return times - (times - offset) % slide


_FAR = 1 << 62


def _names(number: int) -> list[str]:
    return [str(at) for at in range(number)]


def partials_of(aggregate: Aggregate, columns: dict[Any, int], types: list[str]) -> list[Partial]:
    """What has to be computed for an aggregate. Raises ValueError with the reason if it cannot be.

    `columns` leads from a field to its position, `types` are those of the columns.
    """
    kind = aggregate.kind
    used = tuple(columns[field] for field in aggregate.fields)
    for position in used:
        allowed = _TYPES.get(kind)
        if allowed is not None and types[position] not in allowed:
            raise ValueError(f"{aggregate!r} over a column of type {types[position]}")
    if kind in ("sum", "avg"):
        if types[used[0]] in BIG_INTEGERS:
            sums = [Partial(HIGH, used), Partial(LOW, used)]
        else:
            sums = [Partial(SUM, used)]
        return [*sums, Partial(COUNT, used)] if kind == "avg" else sums
    return [Partial(_PARTIAL[kind], used)]


_MERGES = {COUNT: "sum", SUM: "sum", HIGH: "sum", LOW: "sum", MIN: "min", MAX: "max"}
"""How partial results are merged, of numbers."""


def _reducing(way: str, part_of: Callable[[Any], Any] = lambda numbers: numbers) -> Any:
    return lambda groups, column: groups.reduced(way, part_of(numbers_in(column)), column)


_COMPUTED: dict[str, Callable[[Groups, Any], Any]] = {
    COUNT: Groups.count,
    SUM: _reducing("sum"),
    HIGH: _reducing("sum", lambda numbers: numbers >> LOW_BITS),
    LOW: _reducing("sum", lambda numbers: numbers & ((1 << LOW_BITS) - 1)),
    MIN: extreme_values("min"),
    MAX: extreme_values("max"),
    MIN_PAIR: pairs_with("min"),
    MAX_PAIR: pairs_with("max"),
    ALL_MIN: all_with("min"),
    ALL_MAX: all_with("max"),
    VALUES: different_values,
}
"""Partial results of whole batches."""


_PARTIAL = {
    "count": COUNT,
    "min": MIN,
    "max": MAX,
    "min_by": MIN_PAIR,
    "max_by": MAX_PAIR,
    "all_min_by": ALL_MIN,
    "all_max_by": ALL_MAX,
    "count_distinct": VALUES,
}


# From columns of partial results to a column of parts of accumulators


def _same(column: list[Any]) -> list[Any]:
    return column


def _total(*sums: list[Any]) -> list[Any]:
    if len(sums) == 1:
        return sums[0]
    return [
        None if high is None else (high << LOW_BITS) + low for high, low in zip(*sums, strict=True)
    ]


def _total_and_count(*columns: list[Any]) -> list[Any]:
    totals = _total(*columns[:-1])
    return [(total or 0, count) for total, count in zip(totals, columns[-1], strict=True)]


def _pairs(column: list[Any]) -> list[Any]:
    return [None if pair is None else (pair["by"], _value(pair["value"])) for pair in column]


def _lists(column: list[Any]) -> list[Any]:
    return [
        None if found is None else (found["by"], list(map(_value, found["values"])))
        for found in column
    ]


def _value(value: Any) -> Any:
    """Several values come as a struct."""
    return tuple(value.values()) if isinstance(value, dict) else value


def _sets(column: list[Any]) -> list[Any]:
    return [distinct_values(values or ()) for values in column]


_ACCUMULATED: dict[str, Callable[..., list[Any]]] = {
    "count": _same,
    "sum": _total,
    "avg": _total_and_count,
    "min": _same,
    "max": _same,
    "min_by": _pairs,
    "max_by": _pairs,
    "all_min_by": _lists,
    "all_max_by": _lists,
    "count_distinct": _sets,
}


def _mean(*columns: list[Any]) -> list[Any]:
    totals, counts = _total(*columns[:-1]), columns[-1]
    return [total / count if count else None for total, count in zip(totals, counts, strict=True)]


_RESULTS: dict[str, Callable[..., list[Any]]] = {
    "count": _same,
    "sum": _total,
    "avg": _mean,
    "min": _same,
    "max": _same,
}
"""From columns of partial results to a column of results, of what is `grouped`."""
