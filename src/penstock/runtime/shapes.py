"""Runs of records of which it is known what every value in them is.

Values of a stream with a declared type have been checked and converted, those of a column are what
its type says, so MessagePack carries them as what they are, without a look at each: a quarter of
what pickling them takes. A shape is a text that tells the receiver what to make: `(sid)` for tuples
of a text, an int and a float; with names before it, for records (`datastream/_records.py`); with
the number of a stream before all, for records that are marked with it (`operators/marked.py`), so
that only the records themselves travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any

import msgspec

from penstock.common._type_basic import BasicType, BasicTypeInfo
from penstock.common._type_composite import TupleTypeInfo
from penstock.datastream._records import MARKED, names_in, record_class

_LETTERS = {
    BasicType.STRING: "s",
    BasicType.CHAR: "s",
    BasicType.BYTE: "i",
    BasicType.SHORT: "i",
    BasicType.INT: "i",
    BasicType.LONG: "i",
    BasicType.FLOAT: "d",
    BasicType.DOUBLE: "d",
    BasicType.BOOLEAN: "b",
}
_TYPES: dict[str, Any] = {"s": str, "i": int, "d": float, "b": bool, "?": Any}
_TIMESTAMPS = "?"
"""Ints, but nobody has checked those that a source gives."""
_LONGEST = 4096
_AS_PROMISED = (int, type(None))

_pack = msgspec.msgpack.Encoder().encode
# Integers and texts that MessagePack has no room for, and what it does not know.
_CANNOT = (OverflowError, UnicodeEncodeError, TypeError)


def shape_of(type_info: Any) -> str | None:
    """The shape of the values of a type, which also may be None; None, if it has none."""
    if isinstance(type_info, BasicTypeInfo):
        return _LETTERS.get(type_info.basic_type)
    if isinstance(type_info, TupleTypeInfo):
        fields = [shape_of(field) for field in type_info.get_field_types()]
        if None not in fields:
            return f"({''.join(field or '' for field in fields)})"
    return None


def shape_of_timestamps(timestamps: list[Any]) -> str | None:
    """Ints, or None. Where a source gives something else, each of them is as a rule: that is for
    others to complain of, as what it is."""
    return _TIMESTAMPS if timestamps and timestamps[0].__class__ in _AS_PROMISED else None


def marked_shape(stream: int, shape: str) -> str:
    """The shape of records of a shape that are marked with the number of their stream."""
    return f"{stream}{MARKED}{shape}"


def encode_shaped(values: list[Any], shape: str) -> bytes | None:
    """The bytes of a run; None, if there is something in it that they cannot say."""
    try:
        if MARKED in shape:
            values = [record for _, record in values]
        text = shape.encode()
        if len(text) > _LONGEST:
            return None
        return b"".join((len(text).to_bytes(2, "big"), text, _pack(values)))
    except _CANNOT:
        return None


def decode_shaped(data: memoryview) -> list[Any]:
    begin = 2 + int.from_bytes(data[:2], "big")
    return _decoder(bytes(data[2:begin]).decode())(data[begin:])


@lru_cache(maxsize=256)
def _decoder(shape: str) -> Callable[[Any], list[Any]]:
    stream, marked, inner = shape.partition(MARKED)
    if marked:
        unmarked, mark = _decoder(inner), int(stream)
        return lambda data: list(zip(repeat(mark), unmarked(data)))
    names, values = names_in(shape)
    [value] = _types(iter(values))
    decode = msgspec.msgpack.Decoder(list[value]).decode  # type: ignore[valid-type]
    if names is None:
        return decode
    record, make = record_class(names), tuple.__new__
    return lambda data: list(map(make, repeat(record), decode(data)))


def _types(letters: Iterator[str]) -> Iterator[Any]:
    """The types up to the end, or to the bracket that closes a tuple."""
    for letter in letters:
        if letter == ")":
            return
        if letter == "(":
            fields = tuple(_types(letters))
            yield tuple[fields] | None if fields else tuple[()] | None  # type: ignore[valid-type]
        else:
            yield _TYPES[letter] | None
