"""Closures between values and the plain shape that MessagePack carries.

A `Plain` is a pair (write, read); None in it means that the value is plain already. Values are
expected to have passed their type's converter. Named fields become maps by name, so that fields
can come and go between two versions of a program. Knows nothing of TypeInformation.
"""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cloudpickle
import msgspec

from penstock.common._type_unroll import dict_to_values, map_values, values_to_dict
from penstock.common.time import Instant
from penstock.common.types import RowKind, make_row

Shape = Callable[[Any], Any]
Serializer = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]


class Plain(NamedTuple):
    write: Shape | None
    read: Shape | None


PLAIN = Plain(None, None)

EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_INT64_MIN, _UINT64_MAX = -(1 << 63), (1 << 64) - 1
# In a row's map, field names are strings; this key cannot collide with one.
_ROW_KIND_KEY = 0
_ROW_KINDS = tuple(RowKind)


def msgpack_serializer(plain: Plain) -> Serializer:
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder().decode
    write, read = plain
    return (
        encode if write is None else lambda value: encode(write(value)),
        decode if read is None else lambda data: read(decode(data)),
    )


def pickle_bytes(value: Any) -> bytes:
    """Plain pickle, and cloudpickle for what that refuses (lambdas, classes of __main__)."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data: bytes = cloudpickle.dumps(value, protocol=5)
        return data


unpickle_bytes = pickle.loads


def _nullable(shape: Shape) -> Shape:
    return lambda value: None if value is None else shape(value)


def _write_big_int(value: int) -> int | bytes:
    if _INT64_MIN <= value <= _UINT64_MAX:
        return value
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _read_big_int(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)


def date_to_days(value: dt.date) -> int:
    return value.toordinal() - EPOCH_ORDINAL


def days_to_date(days: int) -> dt.date:
    return dt.date.fromordinal(days + EPOCH_ORDINAL)


def time_to_micros(value: dt.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def micros_to_time(micros: int) -> dt.time:
    seconds, micro = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return dt.time(minutes // 60, minutes % 60, second, micro)


def timestamp_to_micros(value: dt.datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


def micros_to_timestamp(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)


BIG_INT = Plain(_nullable(_write_big_int), _nullable(_read_big_int))
BIG_DEC = Plain(_nullable(str), _nullable(decimal.Decimal))
INSTANT = Plain(_nullable(lambda v: (v.seconds, v.nanos)), _nullable(lambda v: Instant(*v)))
DATE = Plain(_nullable(date_to_days), _nullable(days_to_date))
TIME = Plain(_nullable(time_to_micros), _nullable(micros_to_time))
TIMESTAMP = Plain(_nullable(timestamp_to_micros), _nullable(micros_to_timestamp))
PICKLED = Plain(pickle_bytes, unpickle_bytes)


def list_plain(element: Plain) -> Plain:
    return Plain(*(s and _nullable(_for_each(s)) for s in element))


def _for_each(shape: Shape) -> Shape:
    return lambda values: [shape(v) for v in values]


def map_plain(key: Plain, value: Plain, keys_fit: bool) -> Plain:
    """A map as it is if its keys may stand in a MessagePack map, else keys and values in turn."""
    if keys_fit:
        return Plain(*(s and _nullable(_for_each_value(s)) for s in value))
    write_key, write_value = key.write or _same, value.write or _same
    read_key, read_value = key.read or _same, value.read or _same

    def write(mapping: dict[Any, Any]) -> list[Any]:
        return [x for k, v in mapping.items() for x in (write_key(k), write_value(v))]

    def read(flat: list[Any]) -> dict[Any, Any]:
        return {read_key(k): read_value(v) for k, v in zip(flat[::2], flat[1::2], strict=True)}

    return Plain(_nullable(write), _nullable(read))


def _for_each_value(shape: Shape) -> Shape:
    return lambda mapping: {k: shape(v) for k, v in mapping.items()}


def _same(value: Any) -> Any:
    return value


def tuple_plain(fields: Sequence[Plain]) -> Plain:
    writers, readers = [f.write for f in fields], [f.read for f in fields]
    read_all = map_values(readers)
    return Plain(
        _nullable(map_values(writers)) if any(writers) else None,
        _nullable((lambda values: tuple(read_all(values))) if any(readers) else tuple),
    )


def row_plain(names: tuple[str, ...], fields: Sequence[Plain]) -> Plain:
    write_all = values_to_dict(names, [f.write for f in fields])
    read_all = _named_reader(names, fields, default=lambda name: None)
    insert = RowKind.INSERT

    def write(row: Any) -> dict[Any, Any] | None:
        if row is None:
            return None
        plain = write_all(row._values)
        if row._row_kind is not insert:
            plain[_ROW_KIND_KEY] = row._row_kind.value
        return plain

    def read(plain: Any) -> Any:
        if plain is None:
            return None
        if _ROW_KIND_KEY in plain:
            return make_row(names, read_all(plain), _ROW_KINDS[plain[_ROW_KIND_KEY]])
        return make_row(names, read_all(plain))

    return Plain(write, read)


def object_plain(
    names: tuple[str, ...],
    fields: Sequence[Plain],
    take: Callable[[Any], Sequence[Any]],
    make: Callable[[Sequence[Any]], Any],
    default: Callable[[str], Any],
) -> Plain:
    """Objects as maps by field name; `default` gives what an older version did not store."""
    write_all = values_to_dict(names, [f.write for f in fields])
    read_all = _named_reader(names, fields, default)
    return Plain(
        _nullable(lambda value: write_all(take(value))),
        _nullable(lambda plain: make(read_all(plain))),
    )


def _named_reader(
    names: Sequence[str], fields: Sequence[Plain], default: Callable[[str], Any]
) -> Callable[[dict[Any, Any]], list[Any]]:
    """Map → values in the order of `names`, with defaults for fields that were added since."""
    readers = [f.read for f in fields]
    read_all = dict_to_values(names, readers)
    one_by_one = [(name, read or _same) for name, read in zip(names, readers, strict=True)]

    def read(plain: dict[Any, Any]) -> list[Any]:
        try:
            return read_all(plain)
        except KeyError:
            return [r(plain[name]) if name in plain else default(name) for name, r in one_by_one]

    return read
