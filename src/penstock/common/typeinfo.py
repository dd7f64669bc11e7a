"""Type information: the `Types` factories, and types from and to their JSON description.

The classes live beside this module by kind; users import all of them from here.
"""

# ruff: noqa: N802 - the names are Flink's

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from penstock.common._type_avro import avro_type_of
from penstock.common._type_base import TypeInformation
from penstock.common._type_basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    SqlTimeTypeInfo,
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
from penstock.common._type_python import (
    DataclassTypeInfo,
    NamedTupleTypeInfo,
    dataclass_type_info,
    named_tuple_type_info,
    type_info_of,
)
from penstock.errors import CheckpointMismatchError, InvalidArgumentError

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DataclassTypeInfo",
    "DateTypeInfo",
    "ExternalTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "NamedTupleTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "from_description",
    "type_info_of",
]


class Types:
    """Factories for all type information."""

    @staticmethod
    def STRING() -> TypeInformation:
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation:
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation:
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation:
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation:
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation:
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation:
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation:
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation:
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation:
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str], field_types: Sequence[TypeInformation]
    ) -> RowTypeInfo:
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        return ListTypeInfo(element_type_info)

    @staticmethod
    def DATACLASS(python_class: type) -> DataclassTypeInfo:
        """A dataclass; its fields' types come from their annotations. Not in PyFlink."""
        return dataclass_type_info(python_class)

    @staticmethod
    def NAMED_TUPLE(python_class: type) -> NamedTupleTypeInfo:
        """A NamedTuple class; its fields' types come from their annotations. Not in PyFlink."""
        return named_tuple_type_info(python_class)


def from_description(description: Mapping[str, Any]) -> TypeInformation:
    """The type information whose `describe()` gave `description`."""
    kind = description.get("kind")
    make = _BY_KIND.get(str(kind))
    if make is None:
        raise InvalidArgumentError(
            f"unknown kind of type {kind!r} in a description; was it written by a newer Penstock?"
        )
    return make(description)


def _fields(description: Mapping[str, Any]) -> list[tuple[str, TypeInformation]]:
    return [(f["name"], from_description(f["type"])) for f in description["fields"]]


def _row(description: Mapping[str, Any]) -> TypeInformation:
    fields = _fields(description)
    return RowTypeInfo([t for _, t in fields], [name for name, _ in fields])


def _class(description: Mapping[str, Any]) -> type:
    """The class called ``module:qualname``."""
    module, _, qualname = description["class"].partition(":")
    try:
        found: object = reduce(getattr, qualname.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise CheckpointMismatchError(
            f"class {qualname} of module {module}, named in a stored type, cannot be found: "
            f"{error}; keep the class where it was, at the top level of an importable module"
        ) from error
    if not isinstance(found, type):
        raise CheckpointMismatchError(f"{description['class']} is not a class any more")
    return found


def _always(type_info: TypeInformation) -> Callable[[Mapping[str, Any]], TypeInformation]:
    return lambda description: type_info


_BY_KIND: dict[str, Callable[[Mapping[str, Any]], TypeInformation]] = {
    **{t.name.lower(): _always(BasicTypeInfo(t)) for t in BasicType},
    "instant": _always(InstantTypeInfo()),
    "sql_date": _always(DateTypeInfo()),
    "sql_time": _always(TimeTypeInfo()),
    "sql_timestamp": _always(TimestampTypeInfo()),
    **{t.name.lower(): _always(LocalTimeTypeInfo(t)) for t in LocalTimeTypeInfo.TimeType},
    "pickled": _always(PickledBytesTypeInfo()),
    "primitive_array": lambda d: PrimitiveArrayTypeInfo(from_description(d["element"])),
    "basic_array": lambda d: BasicArrayTypeInfo(from_description(d["element"])),
    "object_array": lambda d: ObjectArrayTypeInfo(from_description(d["element"])),
    "list": lambda d: ListTypeInfo(from_description(d["element"])),
    "map": lambda d: MapTypeInfo(from_description(d["key"]), from_description(d["value"])),
    "tuple": lambda d: TupleTypeInfo([from_description(e) for e in d["elements"]]),
    "row": _row,
    "external": lambda d: ExternalTypeInfo(from_description(d["type"])),
    "dataclass": lambda d: DataclassTypeInfo(_class(d), _fields(d)),
    "avro": avro_type_of,
    "named_tuple": lambda d: NamedTupleTypeInfo(_class(d), _fields(d)),
}
