"""Types against those of Parquet's columns: which fit, and what becomes of the values. Declared
types are the program's; for whole batches it is those of the first file that the others must fit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.types import make_row

Convert = Callable[[Any], Any]
"""For every value of a column but None."""

_LISTS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)
_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICRO = dt.timedelta(microseconds=1)

_is = pa.types


def _integers(widest: int) -> Callable[[Any], bool]:
    return lambda kind: _is.is_integer(kind) and kind.bit_width <= widest


def _is_list(kind: Any) -> bool:
    return bool(_is.is_list(kind) or _is.is_large_list(kind) or _is.is_fixed_size_list(kind))


_FITTING: dict[BasicType, Callable[[Any], bool]] = {
    BasicType.STRING: lambda kind: _is.is_string(kind) or _is.is_large_string(kind),
    BasicType.CHAR: lambda kind: _is.is_string(kind) or _is.is_large_string(kind),
    BasicType.BYTE: _integers(8),
    BasicType.BOOLEAN: _is.is_boolean,
    BasicType.SHORT: _integers(16),
    BasicType.INT: _integers(32),
    BasicType.LONG: _integers(64),
    BasicType.BIG_INT: _integers(64),
    BasicType.FLOAT: lambda kind: _is.is_float16(kind) or _is.is_float32(kind),
    BasicType.DOUBLE: _is.is_floating,
    BasicType.BIG_DEC: _is.is_decimal,
    BasicType.INSTANT: _is.is_timestamp,
}


def fits(declared: TypeInformation, kind: Any) -> bool:
    """Whether the values of a column can be had as the type that is declared."""
    if _is.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(declared, PickledBytesTypeInfo):
        return True
    if isinstance(declared, BasicTypeInfo):
        return bool(_FITTING[declared.basic_type](kind))
    if declared == _BYTES:
        return bool(
            _is.is_binary(kind) or _is.is_large_binary(kind) or _is.is_fixed_size_binary(kind)
        )
    if isinstance(declared, _LISTS):
        return _is_list(kind) and fits(declared.elem_type, kind.value_type)
    if isinstance(declared, MapTypeInfo):
        return bool(
            _is.is_map(kind)
            and fits(declared.key_type, kind.key_type)
            and fits(declared.value_type, kind.item_type)
        )
    if isinstance(declared, RowTypeInfo):
        return _is.is_struct(kind) and all(
            kind.get_field_index(name) >= 0 and fits(each, kind.field(name).type)
            for name, each in _fields(declared)
        )
    return bool(_fits_time(declared, kind))


def _fits_time(declared: TypeInformation, kind: Any) -> bool:
    if isinstance(declared, LocalTimeTypeInfo):
        declared = _UNZONED[declared._time_type]
    if isinstance(declared, TimestampTypeInfo):
        return bool(_is.is_timestamp(kind))
    if isinstance(declared, DateTypeInfo):
        return bool(_is.is_date(kind))
    return isinstance(declared, TimeTypeInfo) and bool(_is.is_time(kind))


_UNZONED: dict[Any, TypeInformation] = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: Types.SQL_DATE(),
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: Types.SQL_TIME(),
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: Types.SQL_TIMESTAMP(),
}


def conversion(declared: TypeInformation, utc: bool) -> Convert | None:
    """What turns Arrow's value into one of the declared type; None, if it is one already.

    A timestamp is a point in time in Parquet and has no zone as a value: it is what a clock shows
    then in UTC, or where this process runs.
    """
    convert = _present(declared, utc)
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _present(declared: TypeInformation, utc: bool) -> Convert | None:
    if isinstance(declared, BasicTypeInfo):
        return _instant if declared.basic_type is BasicType.INSTANT else None
    if isinstance(declared, LocalTimeTypeInfo):
        declared = _UNZONED[declared._time_type]
    if isinstance(declared, TimestampTypeInfo):
        return _utc_clock if utc else _local_clock
    if isinstance(declared, RowTypeInfo):
        return _row_conversion(declared, utc)
    if isinstance(declared, MapTypeInfo):
        return _map_conversion(declared, utc)
    if isinstance(declared, _LISTS) and declared != _BYTES:
        element = conversion(declared.elem_type, utc)
        return None if element is None else lambda values: list(map(element, values))
    return None


def _row_conversion(declared: RowTypeInfo, utc: bool) -> Convert:
    fields = _fields(declared)
    names = tuple(name for name, _ in fields)
    converts = [conversion(each, utc) or _same for _, each in fields]
    steps = list(zip(names, converts, strict=True))
    return lambda value: make_row(names, [convert(value[name]) for name, convert in steps])


def _map_conversion(declared: MapTypeInfo, utc: bool) -> Convert | None:
    key = conversion(declared.key_type, utc) or _same
    value = conversion(declared.value_type, utc) or _same
    if key is _same and value is _same:
        return None
    return lambda found: {key(k): value(v) for k, v in found.items()}


def _fields(declared: RowTypeInfo) -> list[tuple[str, TypeInformation]]:
    return list(zip(declared.get_field_names(), declared.get_field_types(), strict=True))


def _same(value: Any) -> Any:
    return value


def _aware(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value


def _utc_clock(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is None:
        return value
    return value.astimezone(dt.timezone.utc).replace(tzinfo=None)


def _local_clock(value: dt.datetime) -> dt.datetime:
    return _aware(value).astimezone().replace(tzinfo=None)


def _instant(value: dt.datetime) -> Instant:
    seconds, micros = divmod((_aware(value) - _EPOCH) // _MICRO, 1_000_000)
    return Instant(seconds, micros * 1000)


def plain_type(kind: Any) -> Any:
    """A type without what files of equal content may differ in: how text and bytes are kept, and
    whether there may be nothing in a nested value."""
    if _is.is_dictionary(kind):
        return plain_type(kind.value_type)
    if _is.is_large_string(kind) or _is.is_string_view(kind):
        return pa.string()
    if _is.is_binary_view(kind):
        return pa.binary()
    if _is.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if _is.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if _is.is_struct(kind):
        return pa.struct([(field.name, plain_type(field.type)) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def widest(kind: Any) -> Any:
    """The type that all numbers of a kind fit into: files may have wider ones than the first."""
    if _is.is_signed_integer(kind):
        return pa.int64()
    return pa.float64() if _is.is_floating(kind) else kind


def fitted(column: pa.Array, wanted: Any) -> pa.Array | None:
    """A column as one of a plain type, if nothing can be lost by that. Text that is kept apart from
    its numbers stays so."""
    if _is.is_dictionary(column.type):
        if column.type.value_type == wanted == pa.string():
            return _with_int32(column)
        column = column.dictionary_decode()
    if column.type == wanted:
        return column
    plain = plain_type(column.type)
    return column.cast(wanted) if plain == wanted or _widens(plain, wanted) else None


def _with_int32(column: pa.DictionaryArray) -> pa.DictionaryArray:
    if _is.is_int32(column.type.index_type):
        return column
    return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary)


def _widens(found: Any, wanted: Any) -> bool:
    """Whether every number of the one type is one of the other. Where there is nothing anyway, any
    type will do."""
    if _is.is_null(found):
        return True
    if _is.is_floating(found) and _is.is_floating(wanted):
        return bool(found.bit_width < wanted.bit_width)
    if _is.is_integer(found) and _is.is_integer(wanted):
        signs = _is.is_signed_integer(wanted) or _is.is_unsigned_integer(found)
        return bool(signs and found.bit_width < wanted.bit_width)
    return False


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Not by `schema.empty_table`, whose first call imports pandas: half a second in a worker."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema.names)
