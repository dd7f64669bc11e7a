"""Stored keys as plain Python, without the classes of the program that made them.

`keys` gives a key back as it was, for which it imports the key's class. Here nothing is imported:
what is no plain key becomes a `KeyObject`. Also finds the one type that keys have in common, for
whoever lays them out in a column.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from penstock.common.types import RowKind, make_row
from penstock.state.keys import decode_key
from penstock.state.stored_values import Pickled

_ENUM, _NAMED_TUPLE, _OBJECT, _PICKLED = b"e", b"c", b"o", b"p"
_TUPLE, _ROW, _SET = b"t", b"r", b"F"


class KeyObject(NamedTuple):
    """A key of a class that is not loaded: its name, and what it is made of."""

    cls: str
    parts: tuple[Any, ...]
    """Values, or pairs of a name and a value."""

    def __repr__(self) -> str:
        inside = (f"{p[0]}={p[1]!r}" if isinstance(p, tuple) else repr(p) for p in self.parts)
        return f"{self.cls.rpartition('.')[2]}({', '.join(inside)})"


class EnumMember(NamedTuple):
    """A member of an enum that is not loaded."""

    cls: str
    member: Any

    def __repr__(self) -> str:
        return f"{self.cls.rpartition('.')[2]}.{self.member}"


def read_key(data: bytes, open_pickles: bool = False) -> Any:
    """A key, or a key of a map, from its bytes."""
    tag = data[:1]
    if tag in b"sibfnDdHTLU":
        return decode_key(data)
    if tag == _PICKLED:
        return pickle.loads(data[1:]) if open_pickles else Pickled(data[1:])
    parts = [read_key(part, open_pickles) for part in split_parts(data[1:])]
    if tag == _TUPLE:
        return tuple(parts)
    if tag == _ROW:
        names, kind, *values = parts
        return make_row(names, values, RowKind(kind))
    if tag == _SET:
        return frozenset(parts)
    module, qualname, *rest = parts
    name = f"{module}.{qualname}"
    if tag == _ENUM:
        return EnumMember(name, rest[0])
    if tag == _OBJECT:
        return KeyObject(name, tuple(zip(rest[::2], rest[1::2], strict=True)))
    return KeyObject(name, tuple(rest))


def split_parts(data: bytes) -> Iterable[bytes]:
    """The keys that a key is made of, each as its bytes."""
    at = 0
    while at < len(data):
        colon = data.index(b":", at)
        end = colon + 1 + int(data[at:colon])
        yield data[colon + 1 : end]
        at = end


# The type that keys have in common, as descriptions of types are

KeyType = Mapping[str, Any]

NOTHING: KeyType = {"kind": "nothing"}
"""Of no keys, or of None alone."""
MIXED: KeyType = {"kind": "mixed"}
"""Of keys that no one type is good for: they are shown as text."""

_SIMPLE = {
    b"s": "string",
    b"f": "double",
    b"n": "nothing",
    b"D": "sql_date",
    b"H": "sql_time",
}
BYTES: KeyType = {"kind": "primitive_array", "element": {"kind": "byte"}}
_LONG = range(-(1 << 63), 1 << 63)
_NUMBERS = {"long": 0, "big_int": 1, "double": 2}


def key_type(data: bytes) -> KeyType:
    """The type of one stored key."""
    tag = data[:1]
    if tag in _SIMPLE:
        return {"kind": _SIMPLE[tag]}
    if tag == b"i":
        return {"kind": "long" if len(data) < 16 or decode_key(data) in _LONG else "big_int"}
    if tag == b"b":
        return BYTES
    if tag == b"T":
        aware = decode_key(data).tzinfo is not None
        return {"kind": "instant" if aware else "sql_timestamp"}
    if tag == _TUPLE:
        return {"kind": "tuple", "elements": [key_type(part) for part in split_parts(data[1:])]}
    if tag == _ROW:
        names, kind, *values = split_parts(data[1:])
        fields = decode_key(names)
        if fields is None or decode_key(kind) != RowKind.INSERT.value:
            return MIXED
        types = map(key_type, values)
        return {
            "kind": "row",
            "fields": [{"name": n, "type": t} for n, t in zip(fields, types, strict=True)],
        }
    return MIXED


def common_type(one: KeyType, other: KeyType) -> KeyType:
    """The type that is good for keys of either."""
    if one == other or other["kind"] == "nothing":
        return one
    if one["kind"] == "nothing":
        return other
    kinds = one["kind"], other["kind"]
    if all(kind in _NUMBERS for kind in kinds) and "big_int" not in kinds:
        return {"kind": "double"}
    if set(kinds) == {"long", "big_int"}:
        return {"kind": "big_int"}
    if kinds[0] != kinds[1]:
        return MIXED
    if kinds[0] == "tuple" and len(one["elements"]) == len(other["elements"]):
        pairs = zip(one["elements"], other["elements"], strict=True)
        return {"kind": "tuple", "elements": [common_type(*pair) for pair in pairs]}
    if kinds[0] == "row" and _names(one) == _names(other):
        fields = zip(one["fields"], other["fields"], strict=True)
        found = [{"name": a["name"], "type": common_type(a["type"], b["type"])} for a, b in fields]
        return {"kind": "row", "fields": found}
    return MIXED


def _names(row: KeyType) -> list[str]:
    return [field["name"] for field in row["fields"]]


def common_type_of(keys: Iterable[bytes]) -> KeyType:
    found = NOTHING
    # Most keys are alike in their first byte, and for these types that says all.
    simple: set[bytes] = set()
    for data in keys:
        tag = data[:1]
        if tag in simple and len(data) < 16:
            continue
        if tag in _SIMPLE or tag in b"bi":
            simple.add(tag)
        found = common_type(found, key_type(data))
    return found


def is_whole(described: KeyType) -> bool:
    """Whether values of the type are whole keys: nothing in them is shown as text."""
    kind = described["kind"]
    if kind == "tuple":
        return all(map(is_whole, described["elements"]))
    if kind == "row":
        return all(is_whole(field["type"]) for field in described["fields"])
    return bool(kind != "mixed")
