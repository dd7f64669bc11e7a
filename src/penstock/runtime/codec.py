"""A run of records as bytes.

Pickle carries a value as exactly what it was. Most records consist of plain values, and for those
its fast mode, which keeps no memory of what it has seen, is as quick to write and to read as
MessagePack with the checks that it would need. Anything else is pickled the ordinary way, with
memory, so that a run names each class once. Where a declared type says what every value is,
MessagePack takes a fifth of that (`shapes`).

A run is encoded some time after its records were emitted: that is only sound for records that
cannot change meanwhile, so `encode` also says whether they cannot. A sender of changeable records
freezes each at once.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, NoReturn, cast
from uuid import UUID

import cloudpickle
import msgspec
import pyarrow as pa

from penstock.errors import UnpicklableError
from penstock.runtime.shapes import decode_shaped, encode_shaped

_CONSTANT = frozenset(
    {str, int, float, bool, bytes, type(None)}
    | {date, datetime, time, timedelta, Decimal, UUID, complex, range}
)

PICKLED, FROZEN, COLUMNS, SHAPED = b"\x00", b"\x01", b"\x02", b"\x03"

_pack = msgspec.msgpack.Encoder().encode
_unpack_frozen = msgspec.msgpack.Decoder(list[bytes]).decode

_PICKLE_FAILURES = (pickle.PicklingError, AttributeError, TypeError)


class _NotPlain(Exception):
    """A value of another kind than Python's plain values and containers."""


class _PlainPickler(pickle.Pickler):
    """Pickles plain values and containers of them, and refuses the rest at the first sight."""

    def reducer_override(self, obj: Any) -> NoReturn:
        raise _NotPlain


# Fast mode also refuses cycles, by a ValueError.
_NOT_FAST = (_NotPlain, ValueError, RecursionError)


def encode(values: list[Any]) -> tuple[bytes, bool]:
    """The bytes of a run, and whether its records are such as cannot change."""
    buffer = io.BytesIO()
    buffer.write(PICKLED)
    pickler = _PlainPickler(buffer, 5)
    pickler.fast = True
    try:
        pickler.dump(values)
    except _NOT_FAST:
        return PICKLED + dump(values), constant(values)
    return buffer.getvalue(), _hashable(values)


def encode_as(shape: str | None, values: list[Any]) -> tuple[bytes, bool]:
    """The same for values of a declared type, if that has a shape."""
    encoded = None if shape is None else encode_shaped(values, shape)
    return encode(values) if encoded is None else (SHAPED + encoded, True)


def _hashable(values: list[Any]) -> bool:
    """Of plain values and containers, those that can be hashed are those that cannot change."""
    try:
        hash(tuple(values))
    except TypeError:
        return False
    return True


def encode_frozen(values: list[bytes]) -> bytes:
    """The bytes of a run whose records have each been frozen."""
    return FROZEN + _pack(values)


def encode_columns(batch: Any) -> bytes:
    """The bytes of a run that is a batch of Arrow's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return COLUMNS + encoded


def decode(data: memoryview | bytes) -> Any:
    """The records of a run; a batch, if it is one."""
    return _DECODERS[bytes(data[:1])](data[1:])


def _thaw(data: bytes) -> list[Any]:
    loads = pickle.loads
    return [loads(item) for item in _unpack_frozen(data)]


def _in_columns(data: memoryview | bytes) -> Any:
    """Of a copy: within a payload, columns begin at odd addresses, and Arrow says so for each of
    them on standard error whenever it merges them."""
    with pa.ipc.open_stream(pa.py_buffer(bytes(data))) as stream:
        return stream.read_next_batch()


_DECODERS: dict[bytes, Callable[[Any], Any]] = {
    PICKLED: pickle.loads,
    FROZEN: _thaw,
    COLUMNS: _in_columns,
    SHAPED: decode_shaped,
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


def own_copy(value: Any, what: str) -> Any:
    """The value itself if it cannot change, else a copy; `what` names it if that fails."""
    if constant((value,)):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise UnpicklableError.of(what, error) from None
