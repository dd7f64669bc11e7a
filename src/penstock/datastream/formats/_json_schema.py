"""The type of rows that a JSON schema describes: what Flink's converter understands of them."""

from __future__ import annotations

import json
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.errors import InvalidArgumentError

_SIMPLE = {
    "boolean": Types.BOOLEAN,
    "integer": Types.BIG_INT,
    "null": Types.PICKLED_BYTE_ARRAY,
    "number": Types.BIG_DEC,
    "string": Types.STRING,
}
_FORMATS = {"date": Types.SQL_DATE, "date-time": Types.SQL_TIMESTAMP, "time": Types.SQL_TIME}


def type_of_json_schema(text: str) -> TypeInformation:
    try:
        return _type_of(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"cannot read the JSON schema: {error}") from None


def _type_of(schema: dict[str, Any]) -> TypeInformation:
    if "$ref" in schema:
        raise ValueError("references ($ref) are not followed; write the type out where it is used")
    if "oneOf" in schema:
        return _type_of(_one([part for part in schema["oneOf"] if part.get("type") != "null"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = _one([part for part in kind if part != "null"])
    if kind == "object":
        fields = schema.get("properties")
        if not fields:
            raise ValueError("an object needs properties")
        return Types.ROW_NAMED(list(fields), [_type_of(field) for field in fields.values()])
    if kind == "array":
        return _array(schema.get("items"))
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]()
    if kind not in _SIMPLE:
        raise ValueError(f"{kind!r} is no type; the types are {', '.join(sorted(_SIMPLE))}")
    return _SIMPLE[kind]()


def _array(items: Any) -> TypeInformation:
    if isinstance(items, list):
        return Types.ROW([_type_of(item) for item in items])
    if not isinstance(items, dict):
        raise ValueError("an array needs items")
    return Types.OBJECT_ARRAY(_type_of(items))


def _one(parts: list[Any]) -> Any:
    if len(parts) != 1:
        raise ValueError(f"a value of several types is not supported: {parts}")
    return parts[0]
