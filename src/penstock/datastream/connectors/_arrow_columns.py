"""Columns of Arrow's as Python values, each kind by its quickest way."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

_FIRST_DAY, _LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")


def column_values(column: Any) -> list[Any]:
    """A column as Python values; numbers and dates without gaps by the short way over numpy."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return dictionary_values(column, object_array(column.dictionary))
    if column.null_count == 0:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return cast(list[Any], _buffer(column, kind.to_pandas_dtype()).tolist())
        if pa.types.is_date32(kind):
            return _dates(column, _buffer(column, np.int32).astype("datetime64[D]"))
        if pa.types.is_timestamp(kind) and kind.tz is None:
            return _dates(column, _buffer(column, np.int64).view(f"datetime64[{kind.unit}]"))
    if not pa.types.is_nested(kind):
        return cast(list[Any], _in_micros(column).to_pylist())
    return cast(list[Any], _in_micros(column).to_pylist(maps_as_pydicts="lossy"))


def _buffer(column: Any, dtype: Any) -> Any:
    """What is in a column of numbers. Not by `to_numpy`, whose first call imports pandas: half a
    second in every worker."""
    begin = column.offset
    return np.frombuffer(column.buffers()[1], dtype)[begin : begin + len(column)]


def _dates(column: Any, found: Any) -> list[Any]:
    if found.dtype == "datetime64[ns]":
        found = found.astype("datetime64[us]")
    if len(found) and (found.min() < _FIRST_DAY or found.max() > _LAST_DAY):
        return cast(list[Any], column.to_pylist())  # which says what is wrong
    return cast(list[Any], found.tolist())


def _in_micros(column: Any) -> Any:
    wanted = in_micros(column.type)
    return column if wanted == column.type else column.cast(wanted, safe=False)


def object_array(dictionary: Any) -> Any:
    """The values that a dictionary-encoded column refers to by their number."""
    values = np.empty(len(dictionary), dtype=object)
    values[:] = column_values(dictionary)
    return values


def dictionary_values(column: Any, values: Any) -> list[Any]:
    """A dictionary-encoded column: equal values are one object, made once."""
    indices = column.indices
    if indices.null_count:
        return [None if number is None else values[number] for number in indices.to_pylist()]
    return cast(list[Any], values[_buffer(indices, indices.type.to_pandas_dtype())].tolist())


@lru_cache(maxsize=1024)
def in_micros(kind: Any) -> Any:
    """The type with microseconds for nanoseconds, which Python's times do not have."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if pa.types.is_list(kind):
        return pa.list_(_field_in_micros(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_field_in_micros(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_field_in_micros(kind.key_field), _field_in_micros(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_field_in_micros(kind.field(i)) for i in range(kind.num_fields)])
    return kind


def _field_in_micros(field: Any) -> Any:
    return field.with_type(in_micros(field.type))
