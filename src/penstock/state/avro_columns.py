"""Avro's schemas as types that can be laid out in columns, as far as they have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.state.stored_keys import BYTES, MIXED

_PRIMITIVES: dict[str, Mapping[str, Any]] = {
    "string": {"kind": "string"},
    "boolean": {"kind": "boolean"},
    "int": {"kind": "int"},
    "long": {"kind": "long"},
    "float": {"kind": "double"},
    "double": {"kind": "double"},
    "bytes": BYTES,
}
_LOGICAL: dict[str, Mapping[str, Any]] = {
    "date": {"kind": "sql_date"},
    "time-millis": {"kind": "sql_time"},
    "time-micros": {"kind": "sql_time"},
    "timestamp-millis": {"kind": "moment"},
    "timestamp-micros": {"kind": "moment"},
    "local-timestamp-millis": {"kind": "sql_timestamp"},
    "local-timestamp-micros": {"kind": "sql_timestamp"},
    "decimal": {"kind": "big_dec"},
    "uuid": {"kind": "uuid"},
}


def avro_columns(schema: Any) -> Mapping[str, Any]:
    """The type of values of a schema: records are dicts by field. What is of several types, or
    contains itself, is shown as text."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return avro_columns(others[0]) if len(others) == 1 else MIXED
    if isinstance(schema, str):
        return _PRIMITIVES.get(schema, MIXED)
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    kind = schema["type"]
    if kind == "record":
        fields = [{"name": f["name"], "type": avro_columns(f["type"])} for f in schema["fields"]]
        return {"kind": "dataclass", "class": f":{schema['name']}", "fields": fields}
    if kind == "array":
        return {"kind": "list", "element": avro_columns(schema["items"])}
    if kind == "map":
        value = avro_columns(schema["values"])
        return {"kind": "map", "key": _PRIMITIVES["string"], "value": value}
    if kind == "enum":
        return _PRIMITIVES["string"]
    return BYTES if kind == "fixed" else avro_columns(kind)
