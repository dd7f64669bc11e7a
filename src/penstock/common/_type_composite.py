"""Types with parts: arrays, lists, maps, tuples, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common import _type_conversion as conversion
from penstock.common import _type_plain as plain_shapes
from penstock.common._type_base import TypeInformation, converter_of, require_type_info
from penstock.common._type_basic import BasicType, BasicTypeInfo
from penstock.common._type_conversion import Converter
from penstock.common._type_plain import PLAIN, Plain
from penstock.common.types import Row, make_row
from penstock.errors import InvalidArgumentError

_PRIMITIVES = frozenset(
    BasicTypeInfo(t)
    for t in (
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    )
)
_BYTE = BasicTypeInfo(BasicType.BYTE)


class _SequenceTypeInfo(TypeInformation):
    """Shared by all types that are a list of one element type in Python."""

    _name: str
    _kind: str
    _accepts_arrays = False

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = require_type_info(f"the element type of {self._name}", element_type)

    @property
    def elem_type(self) -> TypeInformation:
        return self._element_type

    def converter(self) -> Converter:
        return conversion.list_converter(
            f"{self!r} (list)", converter_of(self._element_type), self._accepts_arrays
        )

    def plain(self) -> Plain:
        return plain_shapes.list_plain(self._element_type.plain())

    def describe(self) -> dict[str, Any]:
        return {"kind": self._kind, "element": self._element_type.describe()}

    def __repr__(self) -> str:
        return f"{self._name}[{self._element_type!r}]"


class PrimitiveArrayTypeInfo(_SequenceTypeInfo):
    """An array of Java primitives; of bytes, it is `bytes` in Python."""

    _name, _kind, _accepts_arrays = "PrimitiveArray", "primitive_array", True

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if element_type not in _PRIMITIVES:
            raise InvalidArgumentError.of(
                "the element type of PrimitiveArray",
                "a primitive type; take BASIC_ARRAY or OBJECT_ARRAY for others",
                element_type,
            )

    def _is_bytes(self) -> bool:
        return self._element_type == _BYTE

    def converter(self) -> Converter:
        if self._is_bytes():
            return conversion.bytes_converter(f"{self!r} (bytes)", _BYTE.converter())
        return super().converter()

    def plain(self) -> Plain:
        return PLAIN if self._is_bytes() else super().plain()


class BasicArrayTypeInfo(_SequenceTypeInfo):
    """An array of boxed basic types."""

    _name, _kind, _accepts_arrays = "BasicArray", "basic_array", True

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not isinstance(element_type, BasicTypeInfo):
            raise InvalidArgumentError.of(
                "the element type of BasicArray",
                "a basic type; take OBJECT_ARRAY for others",
                element_type,
            )


class ObjectArrayTypeInfo(_SequenceTypeInfo):
    """An array of anything."""

    _name, _kind, _accepts_arrays = "ObjectArray", "object_array", True


class ListTypeInfo(_SequenceTypeInfo):
    _name, _kind = "List", "list"

    def as_kept(self) -> TypeInformation:
        return ListTypeInfo(self._element_type.as_kept())


# Keys that MessagePack maps carry natively, and that come back as they were.
NATIVE_KEYS = frozenset(
    BasicTypeInfo(t)
    for t in (BasicType.STRING, BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG)
)


class MapTypeInfo(TypeInformation):
    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type = require_type_info("the key type of Map", key_type_info)
        self._value_type = require_type_info("the value type of Map", value_type_info)

    @property
    def key_type(self) -> TypeInformation:
        return self._key_type

    @property
    def value_type(self) -> TypeInformation:
        return self._value_type

    def converter(self) -> Converter:
        return conversion.map_converter(
            f"{self!r} (dict)", converter_of(self._key_type), converter_of(self._value_type)
        )

    def plain(self) -> Plain:
        keys_fit = self._key_type in NATIVE_KEYS
        return plain_shapes.map_plain(self._key_type.plain(), self._value_type.plain(), keys_fit)

    def as_kept(self) -> TypeInformation:
        return MapTypeInfo(self._key_type, self._value_type.as_kept())

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "map",
            "key": self._key_type.describe(),
            "value": self._value_type.describe(),
        }

    def __repr__(self) -> str:
        return f"Map[{self._key_type!r}, {self._value_type!r}]"


class TupleTypeInfo(TypeInformation):
    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = _checked_fields("Tuple", field_types)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self._field_types)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return _to_internal(self._field_types, obj)

    def from_internal_type(self, obj: Any) -> Any:
        return _from_internal(self._field_types, obj)

    def converter(self) -> Converter:
        return conversion.tuple_converter(
            f"{self!r} (tuple of {len(self._field_types)})",
            [converter_of(t) for t in self._field_types],
        )

    def plain(self) -> Plain:
        return plain_shapes.tuple_plain([t.plain() for t in self._field_types])

    def as_kept(self) -> TypeInformation:
        return TupleTypeInfo([t.as_kept() for t in self._field_types])

    def describe(self) -> dict[str, Any]:
        return {"kind": "tuple", "elements": [t.describe() for t in self._field_types]}

    def __repr__(self) -> str:
        return f"Tuple({', '.join(map(repr, self._field_types))})"


class RowTypeInfo(TypeInformation):
    """Rows; fields without given names are called f0, f1, …, as in Flink."""

    def __init__(
        self,
        field_types: Sequence[TypeInformation],
        field_names: Sequence[str] | None = None,
    ) -> None:
        self._field_types = _checked_fields("Row", field_types)
        names = [f"f{i}" for i in range(len(field_types))] if field_names is None else field_names
        self._field_names = tuple(names)
        if len(self._field_names) != len(self._field_types):
            raise InvalidArgumentError(
                f"a Row with {len(self._field_types)} field types needs as many names, "
                f"got {list(self._field_names)}"
            )
        if len(set(self._field_names)) != len(self._field_names):
            raise InvalidArgumentError(f"a Row's names must differ: {list(self._field_names)}")

    def get_field_names(self) -> list[str]:
        return list(self._field_names)

    def get_field_index(self, field_name: str) -> int:
        """Position of a field, -1 if there is none of that name."""
        if field_name in self._field_names:
            return self._field_names.index(field_name)
        return -1

    def get_field_types(self) -> list[TypeInformation]:
        return list(self._field_types)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        if isinstance(obj, dict):
            obj = [obj.get(name) for name in self._field_names]
        elif isinstance(obj, Row):
            obj = obj.get_fields_by_names(self._field_names)
        return _to_internal(self._field_types, obj)

    def from_internal_type(self, obj: Any) -> Any:
        values = _from_internal(self._field_types, obj)
        return None if values is None else make_row(self._field_names, list(values))

    def converter(self) -> Converter:
        return conversion.row_converter(
            f"{self!r} (Row, tuple, list or dict)",
            self._field_names,
            [converter_of(t) for t in self._field_types],
        )

    def plain(self) -> Plain:
        return plain_shapes.row_plain(self._field_names, [t.plain() for t in self._field_types])

    def as_kept(self) -> TypeInformation:
        return RowTypeInfo([t.as_kept() for t in self._field_types], self._field_names)

    def describe(self) -> dict[str, Any]:
        return {"kind": "row", "fields": describe_fields(self._field_names, self._field_types)}

    def __repr__(self) -> str:
        return f"Row({fields_repr(self._field_names, self._field_types)})"


class ExternalTypeInfo(TypeInformation):
    """Flink's wrapper around the type at the border to tables; here the type itself."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = require_type_info("the type inside ExternalTypeInfo", type_info)

    @property
    def type_info(self) -> TypeInformation:
        return self._type_info

    def converter(self) -> Converter | None:
        return self._type_info.converter()

    def plain(self) -> Plain:
        return self._type_info.plain()

    def describe(self) -> dict[str, Any]:
        return {"kind": "external", "type": self._type_info.describe()}

    def __repr__(self) -> str:
        return f"External[{self._type_info!r}]"


def describe_fields(names: Sequence[str], types: Sequence[TypeInformation]) -> list[dict[str, Any]]:
    return [{"name": n, "type": t.describe()} for n, t in zip(names, types, strict=True)]


def fields_repr(names: Sequence[str], types: Sequence[TypeInformation]) -> str:
    return ", ".join(f"{n}: {t!r}" for n, t in zip(names, types, strict=True))


def _checked_fields(
    what: str, field_types: Sequence[TypeInformation]
) -> tuple[TypeInformation, ...]:
    return tuple(require_type_info(f"field {i} of {what}", t) for i, t in enumerate(field_types))


def _to_internal(types: Sequence[TypeInformation], values: Any) -> Any:
    if values is None:
        return None
    return tuple(t.to_internal_type(v) for t, v in zip(types, values, strict=True))


def _from_internal(types: Sequence[TypeInformation], values: Any) -> Any:
    if values is None:
        return None
    return tuple(t.from_internal_type(v) for t, v in zip(types, values, strict=True))
