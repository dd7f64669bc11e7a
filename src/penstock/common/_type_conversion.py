"""Closures that check a value against a type and convert it the way PyFlink's coders do.

Each `*_converter` returns one function value → value, called once per record, so the common case
comes first. None always passes. Knows nothing of TypeInformation; the type classes compose these.
"""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import operator
from collections.abc import Callable, Sequence
from ctypes import c_float
from typing import Any

from penstock.common import _type_unroll as unroll
from penstock.common._type_unroll import Fits, map_values
from penstock.common.time import Instant
from penstock.common.types import Row, make_row
from penstock.errors import TypeMismatchError

Converter = Callable[[Any], Any]

_misfit = TypeMismatchError.of


def _leaving(fits: Fits, convert: Converter) -> Converter:
    """The converter, which says what it leaves as it is: then it need not be called."""
    convert.fits = fits  # type: ignore[attr-defined]
    return convert


def _exactly(cls: type) -> Fits:
    return lambda value: f"{value}.__class__ is {cls.__name__}"


def _fits_of(converters: Sequence[Converter]) -> list[Fits] | None:
    """None, if one of them does not say."""
    found = [getattr(convert, "fits", None) for convert in converters]
    return None if None in found else found  # type: ignore[return-value]


def instead_of(convert: Converter, by: Converter) -> Converter:
    """`by`, which does what a converter does and more, spared where there is nothing to do."""
    fits = _fits_of([convert])
    return by if fits is None else unroll.unless(fits[0], by)


def fitting(convert: Converter, value: str) -> str | None:
    """The source of the question whether a converter would leave a value as it is. None, if it
    must be called to know."""
    fits = _fits_of([convert])
    return None if fits is None else fits[0](value)


def lines_converting(convert: Converter, value: str, call: str) -> list[str]:
    """Lines of source by which a value is checked and converted: by a call, unless it fits."""
    fits = _fits_of([convert])
    return [f"{value} = {call}({value})"] if fits is None else unroll.unfit(fits[0], value, call)


def same(value: Any) -> Any:
    """Stands in for a converter where there is nothing to convert."""
    return value


_leaving(lambda value: "True", same)


def int_converter(expected: str, bits: int) -> Converter:
    """Whole numbers, wrapped to `bits` like Java's narrowing."""
    half = 1 << (bits - 1)
    mask = (1 << bits) - 1
    low, high = -half, half - 1

    def convert(value: Any) -> Any:
        if type(value) is not int:
            if value is None:
                return None
            value = _as_int(expected, value)
        if low <= value <= high:
            return value
        return ((value + half) & mask) - half

    return _leaving(
        lambda value: f"{value}.__class__ is int and {low} <= {value} <= {high}", convert
    )


def _as_int(expected: str, value: Any) -> int:
    """An exact int from anything that is a whole number by nature (numpy's, an IntEnum)."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _misfit(expected, value)
    try:
        return operator.index(value)
    except TypeError:
        raise _misfit(expected, value) from None


def big_int_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is int or value is None:
            return value
        return _as_int(expected, value)

    return _leaving(_exactly(int), convert)


def double_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is float or value is None:
            return value
        return _as_float(expected, value)

    return _leaving(_exactly(float), convert)


def float_converter(expected: str) -> Converter:
    """Rounds to 32 bits; what is too large becomes infinite, as in Java."""

    def convert(value: Any) -> Any:
        if type(value) is float:
            return c_float(value).value
        if value is None:
            return None
        return c_float(_as_float(expected, value)).value

    return convert


def _as_float(expected: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _misfit(expected, value)
    try:
        return float(value)
    except OverflowError:
        raise _misfit(expected, value) from None


def string_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is str or value is None:
            return value
        if isinstance(value, str):
            return str.__str__(value)
        raise _misfit(expected, value)

    return _leaving(_exactly(str), convert)


def char_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str) and len(value) == 1:
            return str.__str__(value)
        raise _misfit(expected, value)

    return convert


def boolean_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if value is True or value is False or value is None:
            return value
        raise _misfit(expected, value)

    return _leaving(_exactly(bool), convert)


def decimal_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is decimal.Decimal or value is None:
            return value
        if isinstance(value, decimal.Decimal):
            return decimal.Decimal(value)
        return decimal.Decimal(_as_int(expected, value))

    return convert


def instant_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if value is None or isinstance(value, Instant):
            return value
        raise _misfit(expected, value)

    return convert


def date_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is dt.date or value is None:
            return value
        if isinstance(value, dt.date):
            return dt.date(value.year, value.month, value.day)
        raise _misfit(expected, value)

    return convert


def time_converter(expected: str) -> Converter:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, dt.time) and value.tzinfo is None:
            return value
        raise _misfit(expected, value)

    return convert


def timestamp_converter(expected: str) -> Converter:
    """A timestamp has no zone: one that brings a zone is taken to UTC first."""

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dt.datetime):
            raise _misfit(expected, value)
        if value.tzinfo is None:
            return value
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)

    return convert


def bytes_converter(expected: str, element: Converter) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is bytes or value is None:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if isinstance(value, (list, tuple)) and None not in value:
            return bytes([b & 0xFF for b in _each(element, value)])
        raise _misfit(expected, value)

    return _leaving(_exactly(bytes), convert)


def list_converter(expected: str, element: Converter, arrays: bool = False) -> Converter:
    """Lists from lists and tuples, with `arrays` also from array.array and numpy's."""

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return _each(element, value)
        if value is None:
            return None
        if arrays and hasattr(value, "tolist"):
            return _each(element, value.tolist())
        raise _misfit(expected, value)

    return convert


def _each(element: Converter, values: Sequence[Any]) -> list[Any]:
    if element is same:
        return list(values)
    try:
        return [element(v) for v in values]
    except TypeMismatchError:
        for i, v in enumerate(values):
            _convert_at(f"[{i}]", element, v)
        raise


def _convert_at(step: str, convert: Converter, value: Any) -> Any:
    """Convert, and on a misfit say where it was."""
    try:
        return convert(value)
    except TypeMismatchError as error:
        raise error.inside(step) from None


def map_converter(expected: str, key: Converter, value: Converter) -> Converter:
    def convert(mapping: Any) -> Any:
        if not isinstance(mapping, dict):
            if mapping is None:
                return None
            raise _misfit(expected, mapping)
        try:
            return {key(k): value(v) for k, v in mapping.items()}
        except TypeMismatchError:
            for k, v in mapping.items():
                _convert_at(f"key {k!r}", key, k)
                _convert_at(f"value of key {k!r}", value, v)
            raise

    return convert


def tuple_converter(expected: str, fields: Sequence[Converter]) -> Converter:
    size = len(fields)
    convert_all = map_values(_steps(fields))

    def convert(value: Any) -> Any:
        if value is None:
            return None
        values: Any = value._values if isinstance(value, Row) else value
        if not isinstance(values, (tuple, list)) or len(values) != size:
            raise _misfit(expected, value)
        try:
            return tuple(convert_all(values))
        except TypeMismatchError:
            for i, (c, v) in enumerate(zip(fields, values, strict=True)):
                _convert_at(f"[{i}]", c, v)
            raise

    fits = _fits_of(fields)
    return (
        convert
        if fits is None
        else _leaving(unroll.TupleFits(fits), unroll.tuple_if(fits, convert))
    )


def row_converter(expected: str, names: tuple[str, ...], fields: Sequence[Converter]) -> Converter:
    """Rows that carry `names`, from rows, tuples, lists (by position) and dicts (by name)."""
    size = len(names)
    known = frozenset(names)
    convert_all = _fields_converter(names, fields)

    def convert(value: Any) -> Any:
        if type(value) is Row:
            values: Any = value._values
            if value._fields is not None and value._fields != names:
                if value._fields and known == frozenset(value._fields):
                    values = value.get_fields_by_names(names)
                else:
                    raise _misfit(expected, value)
        elif isinstance(value, (tuple, list)):
            values = value
        elif value is None:
            return None
        elif isinstance(value, dict) and known.issuperset(value):
            values = [value.get(name) for name in names]
        else:
            raise _misfit(expected, value)
        if len(values) != size:
            raise _misfit(expected, value)
        converted = convert_all(values)
        if type(value) is Row:
            return make_row(names, converted, value._row_kind)
        return make_row(names, converted)

    return convert


def _fields_converter(
    names: Sequence[str], fields: Sequence[Converter]
) -> Callable[[Sequence[Any]], list[Any]]:
    """Values of named fields → converted values; a misfit names its field."""
    convert_all = map_values(_steps(fields), _fits_of(fields))

    def convert(values: Sequence[Any]) -> list[Any]:
        try:
            return convert_all(values)
        except TypeMismatchError:
            for name, c, v in zip(names, fields, values, strict=True):
                _convert_at(f"field {name!r}", c, v)
            raise

    return convert


def _steps(fields: Sequence[Converter]) -> list[Converter | None]:
    return [None if c is same else c for c in fields]


def object_converter(
    expected: str,
    cls: type,
    names: tuple[str, ...],
    fields: Sequence[Converter],
    take: Callable[[Any], Sequence[Any]],
    make: Callable[[Sequence[Any]], Any],
) -> Converter:
    """Instances of exactly `cls`; a new one is made only if a field had to change."""
    trivial = all(c is same for c in fields)
    convert_all = _fields_converter(names, fields)

    def convert(value: Any) -> Any:
        if type(value) is not cls:
            if value is None:
                return None
            raise _misfit(expected, value)
        if trivial:
            return value
        before = take(value)
        after = convert_all(before)
        return value if all(map(operator.is_, before, after)) else make(after)

    return convert
