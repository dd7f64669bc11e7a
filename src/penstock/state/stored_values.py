"""Stored values as plain Python, by the type that was recorded with them.

Reads what programs wrote without their classes, and runs none of their code: a dataclass or named
tuple becomes a dict, and what is pickled stays closed unless it is to be opened.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.common import _type_plain as plain_shapes
from penstock.common._type_base import TypeInformation, converter_of
from penstock.common._type_composite import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    describe_fields,
    fields_repr,
)
from penstock.common._type_conversion import Converter
from penstock.common._type_plain import Plain, Serializer
from penstock.common.typeinfo import PickledBytesTypeInfo, from_description
from penstock.errors import TypeMismatchError


class Pickled:
    """Something pickled that was not opened."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def open(self) -> Any:
        """Unpickle it, which runs what its author wants to be run."""
        return pickle.loads(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pickled) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"<pickled, {len(self.data)} bytes>"


def _bytes_of(value: Any) -> bytes:
    return value.data if isinstance(value, Pickled) else bytes(value)


class ClosedPickleTypeInfo(PickledBytesTypeInfo):
    """Reads a pickle as `Pickled`, and writes such or its bytes as they are."""

    def plain(self) -> Plain:
        return Plain(_bytes_of, Pickled)

    def serializer(self) -> Serializer:
        return _bytes_of, Pickled


class RecordTypeInfo(TypeInformation):
    """A dataclass or named tuple without its class: dicts by field."""

    def __init__(self, kind: str, cls: str, fields: Sequence[tuple[str, TypeInformation]]) -> None:
        self._kind = kind
        self._cls = cls
        self._names = tuple(name for name, _ in fields)
        self._types = tuple(type_info for _, type_info in fields)

    def converter(self) -> Converter:
        expected = f"{self!r} (dict)"
        converters = dict(zip(self._names, map(converter_of, self._types), strict=True))

        def convert(value: Any) -> Any:
            if value is None:
                return None
            if not isinstance(value, dict) or value.keys() != converters.keys():
                raise TypeMismatchError.of(expected, value)
            try:
                return {name: call(value[name]) for name, call in converters.items()}
            except TypeMismatchError as error:
                raise error.inside(f"a field of {self._cls}") from None

        return convert

    def plain(self) -> Plain:
        names = self._names
        # A field that an older version of the class did not store has no value here.
        return plain_shapes.object_plain(
            names,
            [type_info.plain() for type_info in self._types],
            lambda record: [record[name] for name in names],
            lambda values: dict(zip(names, values, strict=True)),
            lambda name: None,
        )

    def as_kept(self) -> TypeInformation:
        return self

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self._kind,
            "class": self._cls,
            "fields": describe_fields(self._names, self._types),
        }

    def __repr__(self) -> str:
        return f"{self._cls.partition(':')[2]}({fields_repr(self._names, self._types)})"


def stored_type(description: Mapping[str, Any], open_pickles: bool = False) -> TypeInformation:
    """The type of a description that needs no class of the user's."""

    def inner(name: str) -> TypeInformation:
        return stored_type(description[name], open_pickles)

    kind = str(description.get("kind"))
    if kind == "pickled" and not open_pickles:
        return ClosedPickleTypeInfo()
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](inner("element"))
    if kind == "map":
        return MapTypeInfo(inner("key"), inner("value"))
    if kind == "external":
        return ExternalTypeInfo(inner("type"))
    if kind == "tuple":
        return TupleTypeInfo([stored_type(e, open_pickles) for e in description["elements"]])
    if kind in ("row", "dataclass", "named_tuple"):
        fields = [(f["name"], stored_type(f["type"], open_pickles)) for f in description["fields"]]
        if kind == "row":
            return RowTypeInfo([type_info for _, type_info in fields], [name for name, _ in fields])
        return RecordTypeInfo(kind, description["class"], fields)
    return from_description(description)


_SEQUENCES: dict[str, Callable[[TypeInformation], TypeInformation]] = {
    "primitive_array": PrimitiveArrayTypeInfo,
    "basic_array": BasicArrayTypeInfo,
    "object_array": ObjectArrayTypeInfo,
    "list": ListTypeInfo,
}


def type_text(description: Mapping[str, Any] | None) -> str:
    """A recorded type for people, such as ``Tuple(String, Long)``."""
    return "" if description is None else repr(stored_type(description))
