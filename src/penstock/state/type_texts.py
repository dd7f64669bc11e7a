"""A type's description as a short text, without the classes it names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common.typeinfo import BasicType

_WITH_ELEMENTS = {
    "primitive_array": "PrimitiveArray",
    "basic_array": "BasicArray",
    "object_array": "ObjectArray",
    "list": "List",
}
_OTHERS = {
    "sql_date": "SqlDate",
    "sql_time": "SqlTime",
    "sql_timestamp": "SqlTimestamp",
    "local_date": "LocalDate",
    "local_time": "LocalTime",
    "local_date_time": "LocalDateTime",
    "pickled": "PickledByteArray",
}
_NAMES = {**{t.name.lower(): t.value for t in BasicType}, **_OTHERS}


def type_text(described: Mapping[str, Any]) -> str:
    """As the type information prints itself."""
    kind = described["kind"]
    if kind in _NAMES:
        return _NAMES[kind]
    if kind in _WITH_ELEMENTS:
        return f"{_WITH_ELEMENTS[kind]}[{type_text(described['element'])}]"
    if kind == "map":
        return f"Map[{type_text(described['key'])}, {type_text(described['value'])}]"
    if kind == "tuple":
        return f"Tuple({', '.join(map(type_text, described['elements']))})"
    if kind == "row":
        return f"Row({_fields(described)})"
    if kind in ("dataclass", "named_tuple"):
        return f"{described['class'].partition(':')[2]}({_fields(described)})"
    if kind == "external":
        return f"External[{type_text(described['type'])}]"
    if kind == "avro":
        return f"Avro[{described['schema'].get('name', 'record')}]"
    return str(dict(described))


def _fields(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{f['name']}: {type_text(f['type'])}" for f in described["fields"])
