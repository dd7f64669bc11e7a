"""Types taken from Python's own classes: dataclasses, named tuples, and annotations in general.

A dataclass or named tuple is to Penstock what a POJO is to Flink: fields with names and types.
What an annotation does not say precisely is carried as a pickle.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Union, get_args, get_origin

from penstock.common import _type_conversion as conversion
from penstock.common import _type_plain as plain_shapes
from penstock.common._type_base import TypeInformation, converter_of
from penstock.common._type_basic import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    PickledBytesTypeInfo,
    TimeTypeInfo,
)
from penstock.common._type_composite import (
    ListTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    TupleTypeInfo,
    describe_fields,
    fields_repr,
)
from penstock.common._type_conversion import Converter
from penstock.common._type_plain import Plain
from penstock.common._type_unroll import attributes
from penstock.common.time import Instant
from penstock.errors import CheckpointMismatchError, InvalidArgumentError

_PICKLED = PickledBytesTypeInfo()

# datetime.datetime is missing on purpose: SQL_TIMESTAMP would drop the zone of an aware one.
_SIMPLE: dict[Any, TypeInformation] = {
    bool: BasicTypeInfo(BasicType.BOOLEAN),
    int: BasicTypeInfo(BasicType.LONG),
    float: BasicTypeInfo(BasicType.DOUBLE),
    str: BasicTypeInfo(BasicType.STRING),
    bytes: PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)),
    decimal.Decimal: BasicTypeInfo(BasicType.BIG_DEC),
    dt.date: DateTypeInfo(),
    dt.time: TimeTypeInfo(),
    Instant: InstantTypeInfo(),
}


class _ClassTypeInfo(TypeInformation):
    """Shared by dataclasses and named tuples; they differ in how an instance is made."""

    _name: str
    _kind: str

    def __init__(self, cls: type, fields: Sequence[tuple[str, TypeInformation]]) -> None:
        self._cls = cls
        self._names = tuple(name for name, _ in fields)
        self._types = tuple(type_info for _, type_info in fields)

    @property
    def cls(self) -> type:
        return self._cls

    def get_field_names(self) -> list[str]:
        return list(self._names)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self._types)

    def _maker(self) -> Callable[[Sequence[Any]], Any]:
        raise NotImplementedError

    def default_of(self, field: str) -> Any:
        """The default of a field; CheckpointMismatchError if it has none."""
        raise NotImplementedError

    def _take(self) -> Callable[[Any], Sequence[Any]]:
        return attributes(self._names)

    def converter(self) -> Converter:
        return conversion.object_converter(
            f"{self._name} {self._cls.__qualname__}",
            self._cls,
            self._names,
            [converter_of(t) for t in self._types],
            self._take(),
            self._maker(),
        )

    def plain(self) -> Plain:
        return plain_shapes.object_plain(
            self._names,
            [t.plain() for t in self._types],
            self._take(),
            self._maker(),
            self.default_of,
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self._kind,
            "class": f"{self._cls.__module__}:{self._cls.__qualname__}",
            "fields": describe_fields(self._names, self._types),
        }

    def __repr__(self) -> str:
        return f"{self._cls.__qualname__}({fields_repr(self._names, self._types)})"

    def _no_default(self, field: str) -> CheckpointMismatchError:
        return CheckpointMismatchError(
            f"a stored {self._cls.__qualname__} has no field {field!r}, and the class gives it "
            "no default; add one so that older state can be read"
        )


class DataclassTypeInfo(_ClassTypeInfo):
    """A dataclass, restored field by field: neither __init__ nor __post_init__ runs again."""

    _name, _kind = "dataclass", "dataclass"

    def _maker(self) -> Callable[[Sequence[Any]], Any]:
        cls, names = self._cls, self._names
        new, assign = object.__new__, object.__setattr__

        def make(values: Sequence[Any]) -> Any:
            made: Any = new(cls)
            made.__dict__.update(zip(names, values, strict=True))
            return made

        def make_in_slots(values: Sequence[Any]) -> Any:
            made: Any = new(cls)
            for name, value in zip(names, values, strict=True):
                assign(made, name, value)
            return made

        in_slots = any(hasattr(getattr(cls, name, None), "__set__") for name in names)
        return make_in_slots if in_slots else make

    def default_of(self, field: str) -> Any:
        declared = self._cls.__dataclass_fields__.get(field)  # type: ignore[attr-defined]
        if declared is not None and _is_given(declared.default):
            return declared.default
        if declared is not None and _is_given(declared.default_factory):
            return declared.default_factory()
        raise self._no_default(field)


class NamedTupleTypeInfo(_ClassTypeInfo):
    """A class made by typing.NamedTuple or collections.namedtuple."""

    _name, _kind = "named tuple", "named_tuple"

    def _take(self) -> Callable[[Any], Sequence[Any]]:
        return conversion.same

    def _maker(self) -> Callable[[Sequence[Any]], Any]:
        make: Callable[[Sequence[Any]], Any] = self._cls._make  # type: ignore[attr-defined]
        return make

    def default_of(self, field: str) -> Any:
        defaults = self._cls._field_defaults  # type: ignore[attr-defined]
        if field in defaults:
            return defaults[field]
        raise self._no_default(field)


def _is_given(default: Any) -> bool:
    """A class that travelled by value, as those of a script do, brings its own MISSING along."""
    return not isinstance(default, type(dataclasses.MISSING))


def is_dataclass_type(x: object) -> bool:
    return isinstance(x, type) and dataclasses.is_dataclass(x)


def is_named_tuple_type(x: object) -> bool:
    return isinstance(x, type) and issubclass(x, tuple) and hasattr(x, "_fields")


def dataclass_type_info(cls: type) -> DataclassTypeInfo:
    if not is_dataclass_type(cls):
        raise InvalidArgumentError.of("Types.DATACLASS", "given a class made by @dataclass", cls)
    return DataclassTypeInfo(cls, _dataclass_fields(cls, frozenset()))


def named_tuple_type_info(cls: type) -> NamedTupleTypeInfo:
    if not is_named_tuple_type(cls):
        raise InvalidArgumentError.of("Types.NAMED_TUPLE", "given a NamedTuple class", cls)
    return NamedTupleTypeInfo(cls, _named_tuple_fields(cls, frozenset()))


def type_info_of(x: object) -> TypeInformation:
    """The type information for a type information, a Python type or annotation, or None.

    Ints become LONG and floats DOUBLE; what has no better type is pickled.
    """
    if isinstance(x, TypeInformation):
        return x
    known = x is None or x is Any or isinstance(x, (type, typing.TypeVar)) or get_origin(x)
    if not known and not hasattr(x, "__supertype__"):
        raise InvalidArgumentError.of(
            "a type", "a TypeInformation such as Types.STRING(), a Python type, or None", x
        )
    return _of_annotation(x, frozenset())


def _of_annotation(x: Any, inside: frozenset[type]) -> TypeInformation:
    """`inside` holds the classes being resolved: one that contains itself is pickled there."""
    x = getattr(x, "__supertype__", x)
    origin = get_origin(x)
    if origin is not None:
        return _of_generic(origin, get_args(x), inside)
    if not isinstance(x, type):
        return _PICKLED
    if x in _SIMPLE:
        return _SIMPLE[x]
    if x in inside:
        return _PICKLED
    if is_dataclass_type(x):
        return DataclassTypeInfo(x, _dataclass_fields(x, inside))
    if is_named_tuple_type(x):
        return NamedTupleTypeInfo(x, _named_tuple_fields(x, inside))
    return _PICKLED


def _of_generic(origin: Any, args: tuple[Any, ...], inside: frozenset[type]) -> TypeInformation:
    if origin is typing.Annotated:
        return _of_annotation(args[0], inside)
    if origin is Union or origin is types.UnionType:
        rest = [a for a in args if a is not type(None)]
        return _of_annotation(rest[0], inside) if len(rest) == 1 else _PICKLED
    if origin is list:
        return ListTypeInfo(_of_annotation(args[0], inside))
    if origin is dict:
        return MapTypeInfo(_of_annotation(args[0], inside), _of_annotation(args[1], inside))
    if origin is tuple and Ellipsis not in args:
        return TupleTypeInfo([_of_annotation(a, inside) for a in args if a != ()])
    return _PICKLED


def _dataclass_fields(cls: Any, inside: frozenset[type]) -> list[tuple[str, TypeInformation]]:
    hints = _hints(cls)
    within = inside | {cls}
    return [(f.name, _of_annotation(hints.get(f.name), within)) for f in dataclasses.fields(cls)]


def _named_tuple_fields(cls: Any, inside: frozenset[type]) -> list[tuple[str, TypeInformation]]:
    hints = _hints(cls)
    within = inside | {cls}
    return [(name, _of_annotation(hints.get(name), within)) for name in cls._fields]


def _hints(cls: type) -> dict[str, Any]:
    """Resolved annotations; those that name what is out of reach stay text (and are pickled)."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {
            name: annotation
            for base in reversed(cls.__mro__)
            for name, annotation in inspect.get_annotations(base).items()
        }
