"""Types without parts: numbers, strings, dates, and the pickled rest."""

# ruff: noqa: N802 - the names are Flink's

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from penstock.common import _type_conversion as conversion
from penstock.common import _type_plain as plain_shapes
from penstock.common._type_base import TypeInformation
from penstock.common._type_conversion import Converter
from penstock.common._type_plain import PLAIN, Plain, Serializer
from penstock.common.time import Instant


class BasicType(Enum):
    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_CONVERTERS: dict[BasicType, Callable[[], Converter]] = {
    BasicType.STRING: lambda: conversion.string_converter("String (str)"),
    BasicType.BYTE: lambda: conversion.int_converter("Byte (int)", 8),
    BasicType.BOOLEAN: lambda: conversion.boolean_converter("Boolean (bool)"),
    BasicType.SHORT: lambda: conversion.int_converter("Short (int)", 16),
    BasicType.INT: lambda: conversion.int_converter("Integer (int)", 32),
    BasicType.LONG: lambda: conversion.int_converter("Long (int)", 64),
    BasicType.FLOAT: lambda: conversion.float_converter("Float (float)"),
    BasicType.DOUBLE: lambda: conversion.double_converter("Double (float)"),
    BasicType.CHAR: lambda: conversion.char_converter("Char (str of length 1)"),
    BasicType.BIG_INT: lambda: conversion.big_int_converter("BigInteger (int)"),
    BasicType.BIG_DEC: lambda: conversion.decimal_converter("BigDecimal (decimal.Decimal)"),
    BasicType.INSTANT: lambda: conversion.instant_converter("Instant"),
}

_PLAIN = {
    BasicType.BIG_INT: plain_shapes.BIG_INT,
    BasicType.BIG_DEC: plain_shapes.BIG_DEC,
    BasicType.INSTANT: plain_shapes.INSTANT,
}


class BasicTypeInfo(TypeInformation):
    """One of Java's basic types."""

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    @property
    def basic_type(self) -> BasicType:
        return self._basic_type

    def converter(self) -> Converter:
        return _CONVERTERS[self._basic_type]()

    def as_kept(self) -> TypeInformation:
        return KeptFloatTypeInfo() if self._basic_type is BasicType.FLOAT else self

    def plain(self) -> Plain:
        return _PLAIN.get(self._basic_type, PLAIN)

    def describe(self) -> dict[str, Any]:
        return {"kind": self._basic_type.name.lower()}

    def __repr__(self) -> str:
        return self._basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo:
        return InstantTypeInfo()


class KeptFloatTypeInfo(BasicTypeInfo):
    """FLOAT within a state."""

    def __init__(self) -> None:
        super().__init__(BasicType.FLOAT)

    def converter(self) -> Converter:
        return conversion.double_converter("Float (float)")


class InstantTypeInfo(BasicTypeInfo):
    """A point on the UTC time line; internally microseconds since 1970."""

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        return None if obj is None else obj.seconds * 1_000_000 + obj.nanos // 1000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        return None if obj is None else Instant(0, obj * 1000)


class _CalendarTypeInfo(TypeInformation):
    """Shared by dates, times and timestamps: the plain form is Flink's internal one."""

    _name: str
    _kind: str
    _plain: Plain
    _python: str

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        write = self._plain.write
        return write(obj) if write else obj

    def from_internal_type(self, obj: Any) -> Any:
        read = self._plain.read
        return read(obj) if read else obj

    def converter(self) -> Converter:
        return self._make_converter(f"{self._name} ({self._python})")

    @staticmethod
    def _make_converter(expected: str) -> Converter:
        raise NotImplementedError

    def plain(self) -> Plain:
        return self._plain

    def describe(self) -> dict[str, Any]:
        return {"kind": self._kind}

    def __repr__(self) -> str:
        return self._name


class DateTypeInfo(_CalendarTypeInfo):
    EPOCH_ORDINAL = plain_shapes.EPOCH_ORDINAL
    _name, _kind, _plain = "SqlDate", "sql_date", plain_shapes.DATE
    _python = "datetime.date"
    _make_converter = staticmethod(conversion.date_converter)


class TimeTypeInfo(_CalendarTypeInfo):
    EPOCH_ORDINAL = plain_shapes.EPOCH_ORDINAL
    _name, _kind, _plain = "SqlTime", "sql_time", plain_shapes.TIME
    _python = "datetime.time without tzinfo"
    _make_converter = staticmethod(conversion.time_converter)


class TimestampTypeInfo(_CalendarTypeInfo):
    _name, _kind, _plain = "SqlTimestamp", "sql_timestamp", plain_shapes.TIMESTAMP
    _python = "datetime.datetime"
    _make_converter = staticmethod(conversion.timestamp_converter)


class SqlTimeTypeInfo(TypeInformation):
    """Only a place for the three factories, as in PyFlink."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        return TimestampTypeInfo()


class LocalTimeTypeInfo(TypeInformation):
    """Java's LocalDate, LocalTime and LocalDateTime; in Python the same values as the SQL types."""

    class TimeType(Enum):
        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    _SAME_AS: tuple[TypeInformation, ...] = (DateTypeInfo(), TimeTypeInfo(), TimestampTypeInfo())
    _NAMES = ("LocalDate", "LocalTime", "LocalDateTime")

    def __init__(self, time_type: LocalTimeTypeInfo.TimeType) -> None:
        self._time_type = time_type

    def converter(self) -> Converter | None:
        return self._SAME_AS[self._time_type.value].converter()

    def plain(self) -> Plain:
        return self._SAME_AS[self._time_type.value].plain()

    def describe(self) -> dict[str, Any]:
        return {"kind": self._time_type.name.lower()}

    def __repr__(self) -> str:
        return self._NAMES[self._time_type.value]


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; what a stream without a declared type carries."""

    def plain(self) -> Plain:
        return plain_shapes.PICKLED

    def serializer(self) -> Serializer:
        return plain_shapes.pickle_bytes, plain_shapes.unpickle_bytes

    def describe(self) -> dict[str, Any]:
        return {"kind": "pickled"}

    def __repr__(self) -> str:
        return "PickledByteArray"
