"""Records of Avro: dicts by field name, stored in Avro's own encoding. Reached as
`penstock.datastream.formats.avro`.

fastavro is an optional package, loaded when a schema is used.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import Any

from penstock.common._avro_resolution import ParsedSchema, first_difference
from penstock.common._type_base import TypeInformation
from penstock.common._type_conversion import Converter
from penstock.common._type_plain import Plain
from penstock.errors import InvalidArgumentError, MissingPackageError, TypeMismatchError


class AvroSchema:
    """A schema of Avro."""

    def __init__(self, schema: Any) -> None:
        """`schema` is the schema's JSON as Python has it: dicts, lists, strings."""
        self._schema = schema
        _parsed(self.text)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema in a JSON text."""
        try:
            return AvroSchema(json.loads(json_schema))
        except ValueError as error:
            if isinstance(error, InvalidArgumentError):
                raise
            raise InvalidArgumentError.of("an Avro schema", "JSON", json_schema) from error

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema in a JSON file, read here and now."""
        with open(file_path, encoding="utf-8") as file:
            return AvroSchema.parse_string(file.read())

    @property
    def schema(self) -> Any:
        """The schema's JSON."""
        return self._schema

    @property
    def text(self) -> str:
        return _text(self._schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"AvroSchema({self.text})"


class GenericRecordAvroTypeInfo(TypeInformation):
    """Records of an Avro schema; in Python they are dicts."""

    def __init__(self, schema: AvroSchema) -> None:
        if not isinstance(schema, AvroSchema):
            raise InvalidArgumentError.of(
                "the schema of Avro records", "an AvroSchema (see AvroSchema.parse_string)", schema
            )
        found = schema.schema
        if not isinstance(found, dict) or found.get("type") != "record":
            raise InvalidArgumentError.of("the schema of Avro records", "that of a record", schema)
        self._schema = schema

    @property
    def schema(self) -> AvroSchema:
        return self._schema

    def converter(self) -> Converter:
        """A value comes back as it would be read: with defaults for what it lacks."""
        write, read = _codec(self._schema.text)
        validate = _fastavro("validation").validate
        parsed = _parsed(self._schema.text).schema
        expected = f"{self!r} (dict)"

        def convert(value: Any) -> Any:
            if value is None:
                return None
            try:
                validate(value, parsed, raise_errors=True)
                return read(write(value))
            except Exception as error:
                problem = " ".join(str(error).split())
                raise TypeMismatchError.of(f"{expected} that fits ({problem})", value) from None

        return convert

    def plain(self) -> Plain:
        write, read = _codec(self._schema.text)
        return Plain(_nullable(write), _nullable(read))

    def describe(self) -> dict[str, Any]:
        return {"kind": "avro", "schema": self._schema.schema}

    def __repr__(self) -> str:
        return f"Avro[{self._schema.schema['name']}]"


def avro_type_of(description: Any) -> GenericRecordAvroTypeInfo:
    """The type whose description it is."""
    return GenericRecordAvroTypeInfo(AvroSchema(description["schema"]))


def avro_difference(written: Any, declared: AvroSchema) -> str | None:
    """Why records of a schema, given as its JSON, cannot be read by another; None if they can."""
    return first_difference(_parsed(_text(written)), _parsed(declared.text))


def avro_resolution(written: Any, declared: AvroSchema) -> Callable[[Any], Any] | None:
    """The function from records of a schema, given as its JSON, to those of another, both
    encoded; None if they are the same bytes."""
    before, now = _parsed(_text(written)), _parsed(declared.text)
    canonical = _fastavro("schema").to_parsing_canonical_form
    if canonical(before.schema) == canonical(now.schema):
        return None
    read_as = _fastavro().schemaless_reader
    write, _ = _codec(declared.text)
    return _nullable(lambda raw: write(read_as(BytesIO(raw), before.schema, now.schema)))


def _text(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True)


def _nullable(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else call(value)


@lru_cache(maxsize=256)
def _parsed(text: str) -> ParsedSchema:
    parse = _fastavro().parse_schema
    names: dict[str, Any] = {}
    try:
        return ParsedSchema(parse(json.loads(text), names), names)
    except Exception as error:
        raise InvalidArgumentError(
            f"this is no Avro schema: {type(error).__name__}: {error}; got {text}"
        ) from error


def _codec(text: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    parsed = _parsed(text).schema
    encode, decode = _fastavro().schemaless_writer, _fastavro().schemaless_reader

    def write(value: Any) -> bytes:
        out = BytesIO()
        encode(out, parsed, value, strict_allow_default=True)
        return out.getvalue()

    return write, lambda raw: decode(BytesIO(raw), parsed, None)


def _fastavro(part: str = "") -> Any:
    try:
        return importlib.import_module(f"fastavro.{part}" if part else "fastavro")
    except ImportError as error:
        raise MissingPackageError.of("Avro", "fastavro", "avro") from error
