"""Rows as JSON objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
)
from penstock.common.types import Row
from penstock.datastream.formats._json_schema import type_of_json_schema
from penstock.datastream.formats._row_schema import RowReader, RowWriter, row_type
from penstock.datastream.formats._scalars import (
    Convert,
    no_such_field,
    scalar_reader,
    scalar_writer,
)
from penstock.errors import InvalidArgumentError

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]

_LISTS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


class JsonRowDeserializationSchema(RowReader):
    """A JSON object becomes a row; fields that are not in the row's type are left out."""

    format = "JSON"

    class Builder:
        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None
            self._strict = False
            self._ignore_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """The fields, as `Types.ROW_NAMED([...], [...])`."""
            self._type = row_type("a JSON row", type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """The fields as a JSON schema describes them."""
            self._type = row_type("a JSON row", type_of_json_schema(json_schema))
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A field that is not in the object is an error, not None."""
            self._strict = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skip what is no such JSON."""
            self._ignore_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            if self._strict and self._ignore_errors:
                raise InvalidArgumentError(
                    "fail_on_missing_field() and ignore_parse_errors() exclude each other; "
                    "call one of them"
                )
            return JsonRowDeserializationSchema(
                _given(self._type, "type_info(...) or json_schema(...)"),
                strict=self._strict,
                ignore_errors=self._ignore_errors,
            )

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        return JsonRowDeserializationSchema.Builder()

    def _make(self) -> Callable[[bytes], Any]:
        read = _reader(self._type, self._settings["strict"])
        # Numbers with a fraction keep their text, lest a decimal lose digits.
        return lambda message: read(json.loads(message, parse_float=str))


class JsonRowSerializationSchema(RowWriter):
    """A row becomes a JSON object in UTF-8."""

    class Builder:
        def __init__(self) -> None:
            self._type: RowTypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """The fields, as `Types.ROW_NAMED([...], [...])`."""
            self._type = row_type("a JSON row", type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            return JsonRowSerializationSchema(_given(self._type, "with_type_info(...)"))

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        return JsonRowSerializationSchema.Builder()

    def _make(self) -> Callable[[Any], bytes]:
        write = _writer(self._type)
        compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        return lambda row: compact(write(row)).encode()


def _given(type_info: RowTypeInfo | None, method: str) -> RowTypeInfo:
    if type_info is None:
        raise InvalidArgumentError(f"a JSON schema of rows needs their type; call {method}")
    return type_info


def _reader(type_info: TypeInformation, strict: bool) -> Convert:
    """From what JSON gives to a value of the type; null is None everywhere."""
    read = scalar_reader(type_info)
    if read is None and isinstance(type_info, RowTypeInfo):
        read = _row_reader(type_info, strict)
    elif read is None and isinstance(type_info, _LISTS):
        each = _reader(type_info.elem_type, strict)
        read = _checked(list, lambda values: [each(value) for value in values])
    elif read is None and isinstance(type_info, MapTypeInfo):
        key, each = _reader(type_info.key_type, strict), _reader(type_info.value_type, strict)
        read = _checked(
            dict, lambda values: {key(name): each(value) for name, value in values.items()}
        )
    if read is None:
        raise no_such_field("JSON", type_info)
    found = read
    return lambda value: None if value is None else found(value)


def _row_reader(type_info: RowTypeInfo, strict: bool) -> Convert:
    names = type_info.get_field_names()
    fields = [
        (name, _reader(field, strict))
        for name, field in zip(names, type_info.get_field_types(), strict=True)
    ]

    def read(values: dict[str, Any]) -> Row:
        if strict and (missing := [name for name in names if name not in values]):
            raise ValueError(f"field {missing[0]!r} is missing")
        row = Row(*[each(values.get(name)) for name, each in fields])
        row.set_field_names(names)
        return row

    return _checked(dict, read)


def _checked(kind: type, read: Convert) -> Convert:
    def checked(value: Any) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r} is no {'object' if kind is dict else 'array'}")
        return read(value)

    return checked


def _writer(type_info: TypeInformation) -> Convert:
    write = scalar_writer(type_info)
    if write is None and isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
        fields = [_writer(field) for field in type_info.get_field_types()]

        def write(row: Any) -> dict[str, Any]:
            return {name: each(value) for name, each, value in zip(names, fields, row, strict=True)}

    elif write is None and isinstance(type_info, _LISTS):
        element = _writer(type_info.elem_type)

        def write(values: Any) -> list[Any]:
            return [element(value) for value in values]

    elif write is None and isinstance(type_info, MapTypeInfo):
        item = _writer(type_info.value_type)

        def write(values: Any) -> dict[str, Any]:
            return {str(name): item(value) for name, value in values.items()}

    if write is None:
        raise no_such_field("JSON", type_info)
    found = write
    return lambda value: None if value is None else found(value)
