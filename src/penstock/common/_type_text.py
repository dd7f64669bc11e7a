"""Values as the text that Flink prints for them: in Java's way if their type is declared.

A stream without a declared type carries Python objects, which print themselves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from ctypes import c_float
from decimal import Decimal
from typing import Any

from penstock.common._type_base import TypeInformation
from penstock.common._type_basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common._type_composite import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from penstock.common.time import Instant
from penstock.common.types import Row

Text = Callable[[Any], str]

_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)
_FLOAT_DIGITS = range(1, 10)


def printed_text(type_info: TypeInformation | None) -> Text:
    """The function from a value of the type to what `print` shows."""
    if isinstance(type_info, RowTypeInfo | ExternalTypeInfo):
        return _printed_row
    return java_text(type_info)


def _printed_row(value: Any) -> str:
    """For `print`, and nowhere else, PyFlink leaves it to Python what is in a row."""
    if not isinstance(value, Row):
        return str(value)
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"


def java_text(type_info: TypeInformation | None) -> Text:
    """The function from a value of the type to what Java's toString makes of it."""
    text = _text_if_there(type_info)
    return str if text is None else lambda value: "null" if value is None else text(value)


def _text_if_there(type_info: TypeInformation | None) -> Text | None:
    """None if it is a Python object."""
    if isinstance(type_info, BasicTypeInfo):
        return _BASIC.get(type_info.basic_type, str)
    if isinstance(type_info, TupleTypeInfo):
        fields = [java_text(t) for t in type_info.get_field_types()]
        return lambda value: f"({','.join(f(v) for f, v in zip(fields, value, strict=True))})"
    if isinstance(type_info, _SEQUENCES):
        element = java_text(type_info.elem_type)
        return lambda value: (
            str(value) if isinstance(value, bytes) else f"[{', '.join(map(element, value))}]"
        )
    if isinstance(type_info, MapTypeInfo):
        key, item = java_text(type_info.key_type), java_text(type_info.value_type)
        return lambda value: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in value.items())}}}"
    if isinstance(type_info, RowTypeInfo):
        columns = [java_text(t) for t in type_info.get_field_types()]
        return lambda row: (
            f"{row.get_row_kind()}[{', '.join(f(v) for f, v in zip(columns, row, strict=True))}]"
        )
    if isinstance(type_info, TimestampTypeInfo):
        return _timestamp_text
    if isinstance(type_info, TimeTypeInfo):
        return lambda value: str(value.replace(microsecond=0))
    if isinstance(type_info, DateTypeInfo | LocalTimeTypeInfo):
        return lambda value: str(value.isoformat())
    return None


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _double_text(value: float) -> str:
    return _number_text(value, repr(value))


def _float_text(value: float) -> str:
    """The shortest text that gives the same 32 bits."""
    narrow = c_float(value).value
    for digits in _FLOAT_DIGITS:
        text = f"{narrow:.{digits}g}"
        if c_float(float(text)).value == narrow:
            return _number_text(narrow, text)
    return _number_text(narrow, repr(narrow))


def _number_text(value: float, digits: str) -> str:
    """Plain from a thousandth to ten million, else with an exponent; always with a point."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, number, exponent = Decimal(digits).normalize().as_tuple()
    assert isinstance(exponent, int)
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    if 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal((0, number, exponent)):f}"
        return minus + (plain if "." in plain else f"{plain}.0")
    first, *rest = map(str, number)
    return f"{minus}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"


def _timestamp_text(value: dt.datetime) -> str:
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _instant_text(value: Instant) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=value.seconds)
    fraction = f"{value.nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return moment.isoformat() + (f".{fraction}" if fraction else "") + "Z"


_BASIC: dict[BasicType, Text] = {
    BasicType.BOOLEAN: _boolean_text,
    BasicType.FLOAT: _float_text,
    BasicType.DOUBLE: _double_text,
    BasicType.INSTANT: _instant_text,
}
