"""Recorded types as Arrow types, and values on their way into and out of Arrow's columns.

==================================  =======================================================
recorded                            Arrow
==================================  =======================================================
string, char                        string
boolean, byte, short, int, long     bool, int8, int16, int32, int64
float, double                       double: a state keeps all bits of a float
big_int, big_dec                    decimal(38, 0), decimal(38, 18)
sql_date, local_date                date32
sql_time, local_time                string, as in ``12:30:00``
sql_timestamp, local_date_time      timestamp in microseconds
instant                             timestamp in microseconds, UTC
primitive_array of byte             binary
other arrays, list                  list
map                                 map
tuple                               struct with fields f0, f1, …
row, dataclass, named_tuple         struct with the fields' names
avro                                struct, as the schema says
pickled                             binary; if it was opened, string: what ``repr`` gives
==================================  =======================================================
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.common.time import Instant
from penstock.errors import InvalidArgumentError
from penstock.state.avro_columns import avro_columns
from penstock.state.stored_values import Pickled

Described = Mapping[str, Any]
Adapter = Callable[[Any], Any]

_DIGITS = 38
_SIMPLE = {
    "string": pa.string(),
    "char": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "big_int": pa.decimal128(_DIGITS, 0),
    "big_dec": pa.decimal128(_DIGITS, 18),
    "sql_date": pa.date32(),
    "local_date": pa.date32(),
    "sql_time": pa.string(),
    "local_time": pa.string(),
    "sql_timestamp": pa.timestamp("us"),
    "local_date_time": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    # Of keys that have no type in common, or none at all.
    "mixed": pa.string(),
    # Of Avro.
    "moment": pa.timestamp("us", "UTC"),
    "uuid": pa.string(),
    "nothing": pa.string(),
}
_SEQUENCES = ("list", "primitive_array", "basic_array", "object_array")


def _fields(described: Described) -> list[tuple[str, Described]]:
    if described["kind"] == "tuple":
        return [(f"f{i}", element) for i, element in enumerate(described["elements"])]
    return [(field["name"], field["type"]) for field in described["fields"]]


def _is_bytes(described: Described) -> bool:
    return bool(described["kind"] == "primitive_array" and described["element"]["kind"] == "byte")


def _is_record(described: Described) -> bool:
    return described["kind"] in ("tuple", "row", "dataclass", "named_tuple")


def arrow_type(described: Described, pickles_as_text: bool = False) -> pa.DataType:
    """The Arrow type for values of a recorded type."""

    def inner(part: Described) -> pa.DataType:
        return arrow_type(part, pickles_as_text)

    kind = described["kind"]
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == "pickled":
        return pa.string() if pickles_as_text else pa.binary()
    if kind == "external":
        return inner(described["type"])
    if kind == "avro":
        return inner(avro_columns(described["schema"]))
    if _is_bytes(described):
        return pa.binary()
    if kind in _SEQUENCES:
        return pa.list_(inner(described["element"]))
    if kind == "map":
        return pa.map_(inner(described["key"]), inner(described["value"]))
    if _is_record(described):
        return pa.struct([pa.field(name, inner(part)) for name, part in _fields(described)])
    raise InvalidArgumentError(f"values of type {kind!r} cannot be laid out in a column")


def to_arrow(described: Described) -> Adapter:
    """From a value, as it is read from a snapshot, to what Arrow takes."""
    kind = described["kind"]
    if kind == "external":
        return to_arrow(described["type"])
    if kind == "avro":
        return to_arrow(avro_columns(described["schema"]))
    if kind in _OUT:
        return _nullable(_OUT[kind])
    if kind in _SEQUENCES and not _is_bytes(described):
        element = to_arrow(described["element"])
        return _nullable(lambda values: [element(value) for value in values])
    if kind == "map":
        key, item = to_arrow(described["key"]), to_arrow(described["value"])
        return _nullable(lambda pairs: [(key(k), item(v)) for k, v in pairs.items()])
    if _is_record(described):
        parts = [(name, to_arrow(part)) for name, part in _fields(described)]
        if kind in ("dataclass", "named_tuple"):
            return _nullable(lambda record: {name: adapt(record[name]) for name, adapt in parts})
        return _nullable(
            lambda values: {
                name: adapt(value) for (name, adapt), value in zip(parts, values, strict=True)
            }
        )
    return _same


def from_arrow(described: Described) -> Adapter:
    """From what Arrow gives to a value that the type's converter takes."""
    kind = described["kind"]
    if kind == "external":
        return from_arrow(described["type"])
    if kind == "avro":
        return from_arrow(avro_columns(described["schema"]))
    if kind in _IN:
        return _nullable(_IN[kind])
    if kind in _SEQUENCES and not _is_bytes(described):
        element = from_arrow(described["element"])
        return _nullable(lambda values: [element(value) for value in values])
    if kind == "map":
        key, item = from_arrow(described["key"]), from_arrow(described["value"])
        return _nullable(lambda pairs: {key(k): item(v) for k, v in pairs})
    if _is_record(described):
        parts = [(name, from_arrow(part)) for name, part in _fields(described)]
        if kind == "tuple":
            return _nullable(lambda record: tuple(adapt(record[name]) for name, adapt in parts))
        return _nullable(lambda record: {name: adapt(record[name]) for name, adapt in parts})
    return _same


def _same(value: Any) -> Any:
    return value


def _nullable(adapt: Adapter) -> Adapter:
    return lambda value: None if value is None else adapt(value)


def _micros(value: Instant | dt.datetime) -> int:
    if isinstance(value, dt.datetime):  # a key is what Python has
        return (value - _EPOCH) // dt.timedelta(microseconds=1)
    return value.seconds * 1_000_000 + value.nanos // 1000


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def _instant(value: dt.datetime) -> Instant:
    micros = _micros(value)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)


def _shortest(value: decimal.Decimal) -> decimal.Decimal:
    """Without the zeros that a column puts behind it."""
    text = format(value, "f")
    return decimal.Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


def _shown_pickle(value: Any) -> Any:
    return value.data if isinstance(value, Pickled) else repr(value)


_OUT: dict[str, Adapter] = {
    "instant": _micros,
    "sql_time": lambda value: value.isoformat(),
    "local_time": lambda value: value.isoformat(),
    "big_int": decimal.Decimal,
    "pickled": _shown_pickle,
    "mixed": repr,
    "uuid": str,
    "double": float,  # keys: an int among floats
}
_IN: dict[str, Adapter] = {
    "big_dec": _shortest,
    "instant": _instant,
    "sql_time": dt.time.fromisoformat,
    "local_time": dt.time.fromisoformat,
    "big_int": int,
}


def column(values: list[Any], described: Described, pickles_as_text: bool = False) -> pa.Array:
    """Values of a recorded type as a column."""
    type_ = arrow_type(described, pickles_as_text)
    adapt = to_arrow(described)
    try:
        return pa.array(values if adapt is _same else [adapt(v) for v in values], type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidArgumentError(
            f"a stored value does not fit a column of {type_}: {error}; read it as text, with "
            "as_text=True"
        ) from error
