"""Partial results of whole batches that are values of some rows rather than sums: extremes, what
other columns have beside them, different values. A column of them has a place for each group.

No column is made by `pa.array`, whose first call imports pandas: half a second in every worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.datastream.connectors._arrow_columns import column_values
from penstock.runtime.aggregates import place_of
from penstock.runtime.grouping import Groups, column_of, is_number, numbers_in, taken

_NONE = np.int64(-1)
"""In place of a row."""


def extreme_values(way: str) -> Callable[[Groups, Any], Any]:
    """The lowest or the highest value of each group."""

    def computed(groups: Groups, column: Any) -> Any:
        if is_number(column.type):
            return groups.reduced(way, numbers_in(column), column)
        rows, of_group = groups.rows_with(way, column)
        return taken(column, _one_each(groups, rows, of_group))

    return computed


def pairs_with(way: str) -> Callable[..., Any]:
    """A rank, the lowest or the highest of each group, and what the record has beside it; of
    several records the one whose value is lowest, or highest."""
    choose: Any = min if way == "min" else max

    def computed(groups: Groups, by: Any, *values: Any) -> Any:
        rows, of_group = groups.rows_with(way, by)
        if len(np.unique(of_group)) < len(rows):
            places = list(map(place_of, _tuples(_of_rows(values, column_of(rows)))))
            together = groupby(range(len(rows)), of_group.__getitem__)
            chosen = [choose(alike, key=places.__getitem__) for _, alike in together]
            rows, of_group = rows[chosen], of_group[chosen]
        which = _one_each(groups, rows, of_group)
        pairs = _struct(by=taken(by, which), value=_as_one(_of_rows(values, which)))
        return pairs.take(_places(groups, of_group))

    return computed


def all_with(way: str) -> Callable[..., Any]:
    """A rank, the lowest or the highest of each group, and what all records have beside it."""

    def computed(groups: Groups, by: Any, *values: Any) -> Any:
        rows, of_group = groups.rows_with(way, by)
        lists = _lists(groups, of_group, _as_one(_of_rows(values, column_of(rows))))
        which = _one_each(groups, rows, of_group)
        return _struct(by=taken(by, which), values=lists).take(_places(groups, of_group))

    return computed


def different_values(groups: Groups, column: Any) -> Any:
    """The list of those of each group."""
    rows, of_group = groups.different(column)
    return _lists(groups, of_group, taken(column, column_of(rows)))


def _one_each(groups: Groups, rows: Any, of_group: Any) -> Any:
    """A row of each group, null for those that have none."""
    which = np.full(groups.number, _NONE)
    which[of_group] = rows
    return column_of(np.maximum(which, 0), which != _NONE)


def _places(groups: Groups, of_group: Any) -> Any:
    """The place of each group, null for those that have nothing."""
    there = np.zeros(groups.number, bool)
    there[of_group] = True
    return column_of(np.arange(groups.number), there)


def _lists(groups: Groups, of_group: Any, values: Any) -> Any:
    """What each group has, as a list."""
    ends = np.searchsorted(of_group, np.arange(groups.number + 1)).astype(np.int32)
    offsets = pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)])
    return pa.ListArray.from_arrays(offsets, values)


def _of_rows(columns: Iterable[Any], rows: Any) -> list[Any]:
    return [taken(column, rows) for column in columns]


def _as_one(columns: list[Any]) -> Any:
    """A column as it is, several as a struct."""
    if len(columns) == 1:
        return columns[0]
    return _struct(**{f"v{at}": column for at, column in enumerate(columns)})


def _struct(**columns: Any) -> Any:
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _tuples(columns: list[Any]) -> list[Any]:
    rows = list(zip(*map(column_values, columns), strict=True))
    return rows if len(columns) > 1 else list(map(itemgetter(0), rows))
