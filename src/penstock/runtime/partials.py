"""Partial results that Spark has computed on its side: what it is to compute, and what is made of
its rows. Knows columns by position, and no Spark.

A row stands for all records of one key and slice of time in one task. It has the key's columns, the
start of the slice, the newest timestamp, the number of records, and then the partial results. Rows
stay in Arrow's columns until they have been merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.datastream.connectors._arrow_columns import column_values
from penstock.errors import InvalidArgumentError
from penstock.runtime.aggregates import Aggregate, distinct_values

COUNT, SUM, HIGH, LOW, MIN, MAX, MIN_PAIR, MAX_PAIR, VALUES = (
    "count", "sum", "sum of high parts", "sum of low parts", "min", "max", "min pair", "max pair",
    "different values",
)  # fmt: skip
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
_TYPES = {
    "sum": _SUMMED,
    "avg": _SUMMED,
    "count_distinct": _ORDERED,
    **dict.fromkeys(("min", "max", "min_by", "max_by"), _ORDERED),
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


@dataclass(frozen=True)
class Combined:
    """Records are combined by key and slice of time before they leave Spark."""

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

    def records_in(self, batch: Any) -> int:
        """How many records the rows of a batch stand for."""
        if batch.column(len(self.keys)).null_count:
            raise InvalidArgumentError(
                "a record has no timestamp: the column given to with_timestamp_assigner is null; "
                "filter such records out before, or put a value in its place (coalesce)"
            )
        return sum(column_values(batch.column(len(self.keys) + 2)))

    def merged(self, batches: list[Any]) -> Iterator[Merged]:
        """What the rows of some batches come to.

        One for each key and slice, if Arrow can merge all that was computed; else one for each row.
        """
        rows = self._by_arrow(batches) or batches
        count = len(self.keys)
        for batch in _in_parts(rows):
            starts, _, records, *found = map(column_values, batch.columns[count:])
            found.append(records)
            parts = [_ACCUMULATED[kind](*[found[i] for i in used]) for kind, used in self.parts]
            accumulators = zip(*parts, strict=True)
            yield from zip(self.select(batch), starts, records, accumulators, strict=True)

    def _by_arrow(self, batches: list[Any]) -> list[Any] | None:
        """The rows of each key and slice made one, or None if that is not possible."""
        count = len(self.keys)
        ways = ["max", "sum", *[_MERGES.get(partial.kind) for partial in self.partials]]
        table = pa.Table.from_batches(batches)
        for way, column in zip(ways, table.columns[count + 1 :], strict=True):
            if way is None or (way != "sum" and not _is_ordered(column)):
                return None
        names = [str(at) for at in range(table.num_columns)]
        groups = table.rename_columns(names).group_by(names[: count + 1], use_threads=False)
        merged = groups.aggregate(list(zip(names[count + 1 :], ways, strict=True)))
        made = [f"{name}_{way}" for name, way in zip(names[count + 1 :], ways, strict=True)]
        chosen = merged.select([*names[: count + 1], *made]).combine_chunks()
        return list(chosen.to_batches())


def partials_of(aggregate: Aggregate, columns: dict[Any, int], types: list[str]) -> list[Partial]:
    """What Spark has to compute for an aggregate. Raises ValueError with the reason if it cannot.

    `columns` leads from a field to its position, `types` are those of the columns.
    """
    kind = aggregate.kind
    assert aggregate.field is not None
    at = columns[aggregate.field]
    used = (at,) if aggregate.by is None else (columns[aggregate.by], at)
    for position in used:
        allowed = _TYPES.get(kind)
        if allowed is not None and types[position] not in allowed:
            raise ValueError(f"{aggregate!r} over a column of type {types[position]}")
    if kind in ("sum", "avg"):
        if types[at] in BIG_INTEGERS:
            sums = [Partial(HIGH, used), Partial(LOW, used)]
        else:
            sums = [Partial(SUM, used)]
        return [*sums, Partial(COUNT, used)] if kind == "avg" else sums
    return [Partial(_PARTIAL[kind], used)]


def _in_parts(batches: list[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, _AT_ONCE):
            yield batch.slice(start, _AT_ONCE)


_MERGES = {COUNT: "sum", SUM: "sum", HIGH: "sum", LOW: "sum", MIN: "min", MAX: "max"}
"""By which function of Arrow's partial results are merged."""


def _is_ordered(column: Any) -> bool:
    """Whether Arrow finds the same extremes as we do: of numbers, if all of them are some."""
    if pa.types.is_floating(column.type):
        return not any(np.isnan(_numbers(chunk)).any() for chunk in column.chunks)
    return bool(pa.types.is_integer(column.type))


def _numbers(column: Any) -> Any:
    kind = column.type.to_pandas_dtype()
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


_PARTIAL = {
    "count": COUNT,
    "min": MIN,
    "max": MAX,
    "min_by": MIN_PAIR,
    "max_by": MAX_PAIR,
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
    return [None if pair is None else tuple(pair.values()) for pair in column]


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
    "count_distinct": _sets,
}
