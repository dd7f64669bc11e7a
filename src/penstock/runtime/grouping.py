"""Rows of columns taken together by what they have in some of them: sums, extremes, and which rows
have them.

By numpy, on what Arrow's columns are made of: a row costs some nanoseconds for each thing computed.
(Arrow's own grouping takes several times as long, and imports pandas first.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.datastream.connectors._arrow_columns import column_values

_DENSE = 4
"""Groups are numbered by what could be, if that is at most so many times the rows."""
_MOST_CODES = 1 << 40

Numbers = Any
"""A numpy array of int64 or float64."""


class Groups:
    """Which rows are alike. Groups come in the order of the first column's values as these were
    first met, then of the second's, and so on."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self._code, self._size = _coded(columns)
        sizes = np.bincount(self._code, minlength=self._size)
        self._present = np.flatnonzero(sizes)
        self._sizes = sizes[self._present]

    def sizes(self) -> Any:
        """How many rows each has, as a column."""
        return column_of(self._sizes)

    def first_rows(self) -> Any:
        """A row of each, by which what they were made from is found."""
        rows = np.empty(self._size, np.int64)
        rows[self._code[::-1]] = np.arange(len(self._code) - 1, -1, -1)
        return column_of(rows[self._present])

    def count(self, column: Any) -> Any:
        """How many values each has, nulls aside."""
        valid = _valid(column)
        if valid is None:
            return self.sizes()
        return column_of(np.bincount(self._code[valid], minlength=self._size)[self._present])

    def reduced(self, way: str, values: Numbers, column: Any) -> Any:
        """The sum, the lowest or the highest value of each group; null, where it has none.

        `values` has the numbers, `column` tells which of them are null. NaN is above all others.
        """
        valid, code = _valid(column), self._code
        if valid is None:
            return column_of(_WAYS[way](code, values, self._size)[self._present])
        code = code[valid]
        found = _WAYS[way](code, values[valid], self._size)[self._present]
        some = np.bincount(code, minlength=self._size)[self._present] > 0
        return column_of(found, some)

    def rows_with(self, way: str, column: Any) -> tuple[Any, Any]:
        """The rows that have the lowest or the highest value of their group, and of each the number
        of the group: first those of the first group, and so on. Values need only have an order."""
        ranks = _ranks(column)
        valid = _valid(column)
        rows = np.arange(len(ranks)) if valid is None else np.flatnonzero(valid)
        code, ranks = self._code[rows], ranks[rows]
        extreme = _WAYS[way](code, ranks, self._size)[code]
        chosen = ranks == extreme
        if ranks.dtype == np.float64:
            chosen |= np.isnan(ranks) & np.isnan(extreme)
        return self._in_order(rows[chosen])

    def different(self, column: Any) -> tuple[Any, Any]:
        """A row for each different value of each group, nulls aside; told as in `rows_with`."""
        rows = numbers_in(Groups([column_of(self._code), column]).first_rows())
        valid = _valid(column)
        return self._in_order(rows if valid is None else rows[valid[rows]])

    def _in_order(self, rows: Any) -> tuple[Any, Any]:
        code = self._code[rows]
        order = np.argsort(code, kind="stable")
        return rows[order], np.searchsorted(self._present, code[order])

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self._present)


def taken(column: Any, rows: Any) -> Any:
    """Some rows of a column, without its dictionary, which would be sent with every few of them."""
    found = column.take(rows)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def numbers_in(column: Any) -> Numbers:
    """The numbers of a column; what stands for null is any."""
    kind = column.type.to_pandas_dtype()
    found = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]
    return found.astype(np.float64 if pa.types.is_floating(column.type) else np.int64, copy=False)


def is_number(kind: Any) -> bool:
    """Whether columns of a type can be reduced."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_floating(kind))


def column_of(values: Numbers, valid: Any = None) -> Any:
    """A column of Arrow's. (Not by `pa.array`, whose first call imports pandas.)"""
    values = np.ascontiguousarray(values)
    kind = pa.float64() if values.dtype == np.float64 else pa.int64()
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values)])


def _ranks(column: Any) -> Numbers:
    """Numbers in the order of a column's values; what stands for null is any."""
    if is_number(column.type):
        return numbers_in(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column_values(column.dictionary)
    rank = {value: at for at, value in enumerate(sorted(set(values) - {None}))}
    # There may be none, and what stands for null is any.
    ranks = np.array([rank.get(value, 0) for value in values] or [0], np.int64)
    indices = column.indices
    return ranks[numbers_in(indices.fill_null(0) if indices.null_count else indices)]


def _valid(column: Any) -> Any:
    """Which values there are; None, if all."""
    if not column.null_count:
        return None
    bits = np.frombuffer(column.buffers()[0], np.uint8)
    whole = np.unpackbits(bits, count=column.offset + len(column), bitorder="little")
    return whole[column.offset :].astype(bool)


# Groups as numbers


def _coded(columns: Sequence[Any]) -> tuple[Any, int]:
    """The number of each row's group, and how many numbers there may be."""
    code, size = _numbered(columns[0])
    for column in columns[1:]:
        inner, number = _numbered(column)
        if size * number > _MOST_CODES:
            code, size = _numbered(column_of(code))
        code, size = code * number + inner, size * number
    if size > _DENSE * len(code) + 1024:
        # In the order of their numbers still.
        found, code = np.unique(code, return_inverse=True)
        size = len(found)
    return code, size


def _numbered(column: Any) -> tuple[Any, int]:
    """For each value its number among the different ones, null among them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    indices, size = column.indices, len(column.dictionary)
    if indices.null_count:
        indices, size = indices.fill_null(size), size + 1
    return numbers_in(indices), size


# What becomes of the numbers of a group


def _sum(code: Any, values: Numbers, size: int) -> Numbers:
    if values.dtype == np.float64:
        # Of no values at all it gives ints.
        return np.bincount(code, values, size).astype(np.float64, copy=False)
    found = np.zeros(size, np.int64)
    np.add.at(found, code, values)
    return found


def _min(code: Any, values: Numbers, size: int) -> Numbers:
    if values.dtype == np.float64:
        found = np.full(size, np.nan)
        np.fmin.at(found, code, values)  # of NaN and a number that is the number
        return found
    found = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(found, code, values)
    return found


def _max(code: Any, values: Numbers, size: int) -> Numbers:
    least = -np.inf if values.dtype == np.float64 else np.iinfo(np.int64).min
    found = np.full(size, least, values.dtype)
    with np.errstate(invalid="ignore"):  # of NaN and a number it is NaN, as wanted
        np.maximum.at(found, code, values)
    return found


_WAYS: dict[str, Callable[[Any, Numbers, int], Numbers]] = {"sum": _sum, "min": _min, "max": _max}
