"""Rows as lines of comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    TypeInformation,
)
from penstock.common.types import Row
from penstock.datastream.formats._row_schema import RowReader, RowWriter, row_type
from penstock.datastream.formats._scalars import (
    Convert,
    no_such_field,
    scalar_reader,
    scalar_writer,
)
from penstock.errors import InvalidArgumentError
from penstock.pyflink_names import missing_name

__all__ = ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"]

__getattr__ = missing_name(__name__)

_LISTS = (BasicArrayTypeInfo, ListTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


class CsvRowDeserializationSchema(RowReader):
    """A line becomes a row; a value that is the null literal, None."""

    format = "CSV"

    class Builder:
        def __init__(self, type_info: TypeInformation) -> None:
            self._type = row_type("a CSV row", type_info)
            self._settings: dict[str, Any] = {
                **_DEFAULTS,
                "null": None,
                "comments": False,
                "ignore_errors": False,
            }

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            return self._set(delimiter=_character("the field delimiter", delimiter))

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Skip lines that begin with #."""
            return self._set(comments=allow_comments)

        def set_array_element_delimiter(
            self, delimiter: str
        ) -> CsvRowDeserializationSchema.Builder:
            return self._set(elements=_text("the element delimiter", delimiter))

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._set(quote=_character("the quote character", c))

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            return self._set(escape=_character("the escape character", c))

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            return self._set(null=_text("the null literal", null_literal, empty=True))

        def set_ignore_parse_errors(
            self, ignore_parse_errors: bool
        ) -> CsvRowDeserializationSchema.Builder:
            """Skip what is no such line; a value that does not fit its field is None."""
            return self._set(ignore_errors=ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            return CsvRowDeserializationSchema(self._type, **self._settings)

        def _set(self, **settings: Any) -> CsvRowDeserializationSchema.Builder:
            self._settings.update(settings)
            return self

    def _make(self) -> Callable[[bytes], Row | None]:
        settings, names = self._settings, self._type.get_field_names()
        fields = [_reader(field, settings) for field in self._type.get_field_types()]
        dialect = _dialect(settings)
        strict = not settings["ignore_errors"]

        def read(message: bytes) -> Row | None:
            text = message.decode()
            if settings["comments"] and text.startswith("#"):
                return None
            values = _values(text, dialect)
            if len(values) != len(fields) and strict:
                raise ValueError(f"{len(values)} values for the {len(fields)} fields {names}")
            found = [each(value) for each, value in zip(fields, values, strict=False)]
            row = Row(*found, *[None] * (len(fields) - len(found)))
            row.set_field_names(names)
            return row

        return read


class CsvRowSerializationSchema(RowWriter):
    """A row becomes a line in UTF-8; values are quoted where they must be."""

    class Builder:
        def __init__(self, type_info: TypeInformation) -> None:
            self._type = row_type("a CSV row", type_info)
            self._settings: dict[str, Any] = {**_DEFAULTS, "null": "", "line": "\n"}

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._set(delimiter=_character("the field delimiter", c))

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            return self._set(line=_text("the line delimiter", delimiter, empty=True))

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            return self._set(elements=_text("the element delimiter", delimiter))

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            return self._set(quote=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._set(quote=_character("the quote character", c))

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            return self._set(escape=_character("the escape character", c))

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            return self._set(null=_text("the null literal", s, empty=True))

        def build(self) -> CsvRowSerializationSchema:
            return CsvRowSerializationSchema(self._type, **self._settings)

        def _set(self, **settings: Any) -> CsvRowSerializationSchema.Builder:
            self._settings.update(settings)
            return self

    def _make(self) -> Callable[[Any], bytes]:
        settings = self._settings
        fields = [_writer(field, settings) for field in self._type.get_field_types()]
        dialect = {**_dialect(settings), "lineterminator": _LINE_END}

        def write(row: Any) -> bytes:
            line = io.StringIO(newline="")
            values = [each(value) for each, value in zip(fields, row, strict=True)]
            csv.writer(line, **dialect).writerow(values)
            text = line.getvalue().removesuffix(_LINE_END) + str(settings["line"])
            return text.encode()

        return write


# Python quotes the characters of its line end, so that they can be in a value.
_LINE_END = "\r\n"
_DEFAULTS = {"delimiter": ",", "elements": ";", "escape": None, "quote": '"'}


def _dialect(settings: dict[str, Any]) -> dict[str, Any]:
    quote, escape = settings["quote"], settings["escape"]
    return {
        "delimiter": settings["delimiter"],
        "quotechar": quote,
        "escapechar": escape,
        "doublequote": escape is None,
        "quoting": csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
        "strict": True,
    }


def _values(text: str, dialect: dict[str, Any]) -> list[str]:
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), **dialect))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if len(lines) != 1:
        raise ValueError(f"it has {len(lines)} lines, not one")
    return lines[0]


def _reader(type_info: TypeInformation, settings: dict[str, Any]) -> Convert:
    null, ignore = settings["null"], settings["ignore_errors"]
    read = scalar_reader(type_info)
    if read is None and isinstance(type_info, _LISTS):
        each = scalar_reader(type_info.elem_type)
        if each is not None:
            element, between = each, settings["elements"]

            def read(text: Any) -> list[Any]:
                return [element(part) for part in text.split(between)]

    if read is None:
        raise no_such_field("CSV", type_info)
    found = read

    def field(text: str) -> Any:
        if text == null:
            return None
        try:
            return found(text)
        except (ArithmeticError, TypeError, ValueError):
            if ignore:
                return None
            raise

    return field


def _writer(type_info: TypeInformation, settings: dict[str, Any]) -> Convert:
    null = settings["null"]
    write = scalar_writer(type_info)
    if write is None and isinstance(type_info, _LISTS):
        element, between = scalar_writer(type_info.elem_type), settings["elements"]
        if element is not None:

            def write(values: Any) -> str:
                return str(between.join(_as_text(element(value)) for value in values))

    if write is None:
        raise no_such_field("CSV", type_info)
    found = write
    return lambda value: null if value is None else _as_text(found(value))


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _character(what: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise InvalidArgumentError.of(what, "one character", value)
    return value


def _text(what: str, value: Any, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise InvalidArgumentError.of(what, "a string", value)
    return value
