"""A run of records as bytes.

Plain values and flat tuples of them travel as MessagePack, the rest as pickle; which one is chosen
per run, by the exact types in it, so that a value arrives as what it was. A run is encoded some
time after its records were emitted: that is only sound for records that cannot change meanwhile,
so `encode` also says whether they cannot. A sender of changeable records freezes each at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, cast
from uuid import UUID

import cloudpickle
import msgspec

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_CONSTANT = _PLAIN | {date, datetime, time, timedelta, Decimal, UUID, complex, range}

PLAIN, TUPLES, PICKLED, FROZEN = b"\x00", b"\x01", b"\x02", b"\x03"

_pack = msgspec.msgpack.Encoder().encode
_unpack_list = msgspec.msgpack.Decoder(list[Any]).decode
_unpack_tuples = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode
_unpack_frozen = msgspec.msgpack.Decoder(list[bytes]).decode

# What MessagePack cannot carry although its type says so: large ints, lone surrogates.
_PACK_FAILURES = (OverflowError, UnicodeEncodeError, ValueError)
_PICKLE_FAILURES = (pickle.PicklingError, AttributeError, TypeError)


def encode(values: list[Any]) -> tuple[bytes, bool]:
    """The bytes of a run, and whether its records are such as cannot change."""
    types = set(map(type, values))
    if types <= _PLAIN:
        return _packed(PLAIN, values), True
    if types == {tuple}:
        inner = set(map(type, chain.from_iterable(values)))
        if inner <= _PLAIN:
            return _packed(TUPLES, values), True
    return PICKLED + dump(values), constant(values)


def _packed(tag: bytes, values: list[Any]) -> bytes:
    try:
        return tag + _pack(values)
    except _PACK_FAILURES:
        return PICKLED + dump(values)


def encode_frozen(values: list[bytes]) -> bytes:
    """The bytes of a run whose records have each been frozen."""
    return FROZEN + _pack(values)


def decode(data: memoryview | bytes) -> list[Any]:
    """The records of a run."""
    return _DECODERS[bytes(data[:1])](data[1:])


def _thaw(data: bytes) -> list[Any]:
    loads = pickle.loads
    return [loads(item) for item in _unpack_frozen(data)]


_DECODERS: dict[bytes, Callable[[Any], list[Any]]] = {
    PLAIN: _unpack_list,
    TUPLES: _unpack_tuples,
    PICKLED: pickle.loads,
    FROZEN: _thaw,
}


def dump(value: Any) -> bytes:
    """Pickle; classes that only exist in the user's program go along by value."""
    try:
        return pickle.dumps(value, 5)
    except _PICKLE_FAILURES:
        return cast(bytes, cloudpickle.dumps(value, 5))


def constant(values: Any) -> bool:
    """Whether none of the values can change: constants, and tuples of such.

    An instance of a tuple's subclass may have attributes beside its elements: those can change.
    """
    types = set(map(type, values))
    rest = types - _CONSTANT
    if not rest:
        return True
    if any(not issubclass(cls, tuple) or cls.__dictoffset__ for cls in rest):
        return False
    return constant(
        list(chain.from_iterable(value for value in values if isinstance(value, tuple)))
    )
