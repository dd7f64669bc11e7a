"""Avro's rules for reading with one schema what was written with another, before anything is read.

Works on schemas as fastavro parses them: names are full, and each is found in a table. Knows
nothing of fastavro itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class ParsedSchema(NamedTuple):
    schema: Any
    names: Mapping[str, Any]
    """Full name → the record, enum or fixed that it stands for."""


def first_difference(writer: ParsedSchema, reader: ParsedSchema) -> str | None:
    """Why some of what was written cannot be read, with the place; None if all of it can.

    Of a union all branches may have been written, so each of them must be readable.
    """
    return _Resolution(writer.names, reader.names).difference(writer.schema, reader.schema, "")


class _Resolution:
    def __init__(self, writer_names: Mapping[str, Any], reader_names: Mapping[str, Any]) -> None:
        self._writer_names = writer_names
        self._reader_names = reader_names
        self._under_way: set[tuple[str, str]] = set()

    def difference(self, writer: Any, reader: Any, path: str) -> str | None:
        writer = _definition(writer, self._writer_names)
        reader = _definition(reader, self._reader_names)
        if isinstance(writer, list):
            found = (self.difference(branch, reader, path) for branch in writer)
            return next((difference for difference in found if difference), None)
        if isinstance(reader, list):
            if any(self.difference(writer, branch, path) is None for branch in reader):
                return None
            return _differ(path, writer, reader)
        was, now = _kind(writer), _kind(reader)
        if was != now:
            return None if now in _PROMOTED.get(was, ()) else _differ(path, writer, reader)
        if was == "array":
            return self.difference(writer["items"], reader["items"], f"{path}[]")
        if was == "map":
            return self.difference(writer["values"], reader["values"], f"{path}{{}}")
        if was in ("record", "error", "enum", "fixed"):
            return self._of_names(was, writer, reader, path)
        return None

    def _of_names(self, kind: str, writer: Any, reader: Any, path: str) -> str | None:
        if not _same_name(writer, reader):
            return _differ(path, writer, reader)
        if kind == "fixed":
            same = writer["size"] == reader["size"]
            return None if same else f"{_at(path)} had {writer['size']} bytes, not {reader['size']}"
        if kind == "enum":
            gone = [s for s in writer["symbols"] if s not in reader["symbols"]]
            if gone and "default" not in reader:
                return f"{_at(path)} has no symbol {gone[0]!r} any more, and no default"
            return None
        pair = (writer["name"], reader["name"])
        if pair in self._under_way:  # a record within itself
            return None
        self._under_way.add(pair)
        try:
            found = (self._of_field(writer, field, path) for field in reader["fields"])
            return next((difference for difference in found if difference), None)
        finally:
            self._under_way.discard(pair)

    def _of_field(self, writer: Any, field: Any, path: str) -> str | None:
        names = (field["name"], *field.get("aliases", ()))
        written = next((f for f in writer["fields"] if f["name"] in names), None)
        at = f"{path}.{field['name']}"
        if written is not None:
            return self.difference(written["type"], field["type"], at)
        return None if "default" in field else f"{at} is new and has no default"


def _definition(schema: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return _definition(schema["type"], names)
    name = schema if isinstance(schema, str) else None
    return names.get(name, schema) if name is not None else schema


def _kind(schema: Any) -> str:
    kind: str = schema if isinstance(schema, str) else schema["type"]
    return kind


def _same_name(writer: Any, reader: Any) -> bool:
    def last(name: str) -> str:
        return name.rpartition(".")[2]

    return last(writer["name"]) == last(reader["name"]) or writer["name"] in reader.get(
        "aliases", ()
    )


def _differ(path: str, writer: Any, reader: Any) -> str:
    return f"{_at(path)} was {_shown(writer)} and is {_shown(reader)}"


def _at(path: str) -> str:
    return path or "it"


def _shown(schema: Any) -> str:
    if isinstance(schema, list):
        return f"[{', '.join(map(_shown, schema))}]"
    if isinstance(schema, dict):
        return f"{schema['type']} {schema.get('name', '')}".rstrip()
    return str(schema)
