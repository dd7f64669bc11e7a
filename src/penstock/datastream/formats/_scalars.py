"""Single values of rows in text formats: from what JSON or CSV gives, by their declared type."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    TypeInformation,
    Types,
)
from penstock.errors import UnsupportedFeatureError

Convert: TypeAlias = Callable[[Any], Any]


def scalar_reader(type_info: TypeInformation) -> Convert | None:
    """A function to the Python value; None for types of several values."""
    read = _READERS.get(type_info)
    check = type_info.converter()
    if read is None or check is None:
        return read
    return _after(read, check)


def _after(first: Convert, second: Convert) -> Convert:
    return lambda value: second(first(value))


def scalar_writer(type_info: TypeInformation) -> Convert | None:
    """A function to what JSON can carry; None for types of several values."""
    if isinstance(type_info, BasicTypeInfo):
        return _WRITERS.get(type_info) or _same
    return _WRITERS.get(type_info)


def no_such_field(format: str, type_info: TypeInformation) -> UnsupportedFeatureError:
    return UnsupportedFeatureError.of(
        f"{type_info!r} in {format}",
        "declare basic types, dates and times, rows, arrays and maps of them",
    )


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _number(kind: Callable[[str], Any]) -> Convert:
    # Flink reads numbers by their text, so "7" is one, too; True is none.
    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError(f"{value} is no number")
        return kind(str(value).strip())

    return read


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    if (found := words.get(str(value).strip().lower())) is None:
        raise ValueError(f"{value!r} is neither true nor false")
    return found


def _moment(value: Any) -> dt.datetime:
    """A date and time, without its zone if that is UTC."""
    text = str(value).strip().replace("Z", "+00:00")
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is not None:
        found = found.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return found


def _instant(value: Any) -> Instant:
    since = _moment(value) - dt.datetime(1970, 1, 1)
    return Instant(since.days * 86_400 + since.seconds, since.microseconds * 1000)


def _time(value: Any) -> dt.time:
    return dt.time.fromisoformat(str(value).strip().replace("Z", ""))


def _write_moment(value: dt.datetime) -> str:
    return value.isoformat() + "Z"


def _write_instant(value: Instant) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(
        seconds=value.seconds, microseconds=value.nanos // 1000
    )
    return _write_moment(moment)


_READERS: dict[TypeInformation, Convert] = {
    Types.STRING(): _text,
    BasicTypeInfo(BasicType.CHAR): _text,
    Types.BOOLEAN(): _boolean,
    Types.BYTE(): _number(int),
    Types.SHORT(): _number(int),
    Types.INT(): _number(int),
    Types.LONG(): _number(int),
    Types.BIG_INT(): _number(int),
    Types.FLOAT(): _number(float),
    Types.DOUBLE(): _number(float),
    Types.BIG_DEC(): _number(Decimal),
    Types.INSTANT(): _instant,
    Types.SQL_DATE(): lambda value: dt.date.fromisoformat(str(value).strip()),
    Types.SQL_TIME(): _time,
    Types.SQL_TIMESTAMP(): _moment,
    Types.PRIMITIVE_ARRAY(Types.BYTE()): lambda value: base64.b64decode(value, validate=True),
    Types.PICKLED_BYTE_ARRAY(): _same,
}
_WRITERS: dict[TypeInformation, Convert] = {
    Types.BIG_DEC(): lambda value: int(value) if value == value.to_integral() else float(value),
    Types.INSTANT(): _write_instant,
    Types.SQL_DATE(): dt.date.isoformat,
    Types.SQL_TIME(): lambda value: value.isoformat() + "Z",
    Types.SQL_TIMESTAMP(): _write_moment,
    Types.PRIMITIVE_ARRAY(Types.BYTE()): lambda value: base64.b64encode(value).decode(),
    Types.PICKLED_BYTE_ARRAY(): _same,
}
