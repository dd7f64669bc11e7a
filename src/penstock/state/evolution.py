"""From a stored type to the declared one: how a value is converted, or why it cannot be. Pure.

Works on plain values, the shape between objects and bytes. What a stored type was is read from its
description alone, so that the class it was taken from may be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.common._type_avro import avro_difference, avro_resolution
from penstock.common._type_base import converter_of
from penstock.common._type_composite import NATIVE_KEYS
from penstock.common.typeinfo import TypeInformation
from penstock.errors import CheckpointMismatchError, TypeMismatchError
from penstock.state.type_texts import type_text

Step = Callable[[Any], Any]
"""Plain value → plain value."""

_WIDER = {
    "byte": ("short", "int", "long", "big_int", "float", "double"),
    "short": ("int", "long", "big_int", "float", "double"),
    "int": ("long", "big_int", "float", "double"),
    "long": ("big_int", "float", "double"),
    "float": ("double",),
}
_FRACTIONS = ("float", "double")


class Incompatible(Exception):
    """There is no way from the stored type to the declared one; says where they first differ."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path or 'it'} {what}")


def conversion(stored: Mapping[str, Any], declared: TypeInformation) -> Step | None:
    """The function from stored plain values to those of the declared type.

    None if they are read the same. Raises `Incompatible`.
    """
    return _between(stored, declared, "")


def _between(stored: Mapping[str, Any], declared: TypeInformation, path: str) -> Step | None:
    now = declared.describe()
    if stored == now:
        return None
    was, kind = stored["kind"], now["kind"]
    if kind in _WIDER.get(was, ()):
        return _to_float if was != "float" and kind in _FRACTIONS else None
    rule = _RULES.get(was)
    if was != kind or rule is None:
        raise Incompatible(path, f"was {type_text(stored)} and is {type_text(now)}")
    return rule(stored, declared, path)


def _to_float(value: int | None) -> float | None:
    return None if value is None else float(value)


# Types with parts


def _sequence(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    byte = {"kind": "byte"}
    if stored["kind"] == "primitive_array" and stored["element"] == byte:
        raise Incompatible(path, f"was {type_text(stored)} and is {declared!r}")
    step = _between(stored["element"], declared.elem_type, f"{path}[]")
    if step is None:
        return None
    return lambda values: None if values is None else [step(value) for value in values]


def _map(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    if stored["key"] != declared.key_type.describe():
        was = type_text(stored["key"])
        raise Incompatible(f"{path}{{key}}", f"was {was} and is {declared.key_type!r}")
    step = _between(stored["value"], declared.value_type, f"{path}{{value}}")
    if step is None:
        return None
    if declared.key_type in NATIVE_KEYS:
        return lambda plain: None if plain is None else {k: step(v) for k, v in plain.items()}

    def in_turn(flat: list[Any] | None) -> list[Any] | None:
        if flat is None:
            return None
        return [step(part) if index % 2 else part for index, part in enumerate(flat)]

    return in_turn


def _tuple(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    types = declared.get_field_types()
    if len(stored["elements"]) != len(types):
        raise Incompatible(path, f"had {len(stored['elements'])} elements and has {len(types)}")
    steps = [
        _between(element, type_info, f"{path}[{index}]")
        for index, (element, type_info) in enumerate(zip(stored["elements"], types, strict=True))
    ]
    if not any(steps):
        return None
    every = [step or _same for step in steps]
    return lambda values: (
        None if values is None else [s(v) for s, v in zip(every, values, strict=True)]
    )


def _external(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    return _between(stored["type"], declared.type_info, path)


def _row(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    return _fields(stored, declared, path, lambda name, type_info: _plain_none(type_info))


def _plain_none(type_info: TypeInformation) -> Any:
    return (type_info.plain().write or _same)(None)


def _object(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    """Dataclasses and named tuples. The class may be another: one that was moved or renamed."""
    before = {field["name"] for field in stored["fields"]}
    names = declared.get_field_names()
    if stored["class"] != declared.describe()["class"] and before and before.isdisjoint(names):
        raise Incompatible(
            path, f"was {type_text(stored)} and is {declared!r}, which has no field in common"
        )

    def default(name: str, type_info: TypeInformation) -> Any:
        return _default(declared, name, type_info, f"{path}.{name}")

    return _fields(stored, declared, path, default)


def _default(declared: Any, name: str, type_info: TypeInformation, path: str) -> Any:
    """The plain default of a new field. A factory is asked once: a value that is converted when
    it is read, and again when it is stored, must come out the same."""
    write = type_info.plain().write or _same
    try:
        return write(converter_of(type_info.as_kept())(declared.default_of(name)))
    except CheckpointMismatchError:
        raise Incompatible(path, "is new and has no default; give it one") from None
    except TypeMismatchError as error:
        raise Incompatible(path, f"is new, and its default does not fit: {error}") from None


def _fields(
    stored: Mapping[str, Any],
    declared: Any,
    path: str,
    default: Callable[[str, TypeInformation], Any],
) -> Step | None:
    """Maps by field name: their order does not matter."""
    before = {field["name"]: field["type"] for field in stored["fields"]}
    names: Sequence[str] = declared.get_field_names()
    types = dict(zip(names, declared.get_field_types(), strict=True))
    steps = {
        name: step
        for name in names
        if name in before
        and (step := _between(before[name], types[name], f"{path}.{name}")) is not None
    }
    added = {name: default(name, types[name]) for name in names if name not in before}
    removed = before.keys() - types.keys()
    if not steps and not added and not removed:
        return None

    def convert(plain: dict[Any, Any] | None) -> dict[Any, Any] | None:
        if plain is None:
            return None
        # Of a row also the kind of change, which is no field.
        found = {name: value for name, value in plain.items() if name not in removed}
        for name, step in steps.items():
            found[name] = step(found[name])
        found.update(added)
        return found

    return convert


def _avro(stored: Mapping[str, Any], declared: Any, path: str) -> Step | None:
    difference = avro_difference(stored["schema"], declared.schema)
    if difference is not None:
        raise Incompatible(path, f"cannot be resolved: {difference}")
    return avro_resolution(stored["schema"], declared.schema)


def _same(value: Any) -> Any:
    return value


_RULES: dict[str, Callable[[Mapping[str, Any], Any, str], Step | None]] = {
    "primitive_array": _sequence,
    "basic_array": _sequence,
    "object_array": _sequence,
    "list": _sequence,
    "map": _map,
    "tuple": _tuple,
    "row": _row,
    "external": _external,
    "dataclass": _object,
    "named_tuple": _object,
    "avro": _avro,
}
