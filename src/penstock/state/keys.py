"""Keys as bytes: canonical, stable between machines and Python versions, and reversible.

Keys that are equal in Python get equal bytes: True, 1 and 1.0 are one key, as they are in a dict,
and so are a named tuple and the plain tuple, a member of an IntEnum and the number. Plain types
have a form of their own, which serves their subclasses too where they are equal to it. Objects of
other classes are the class's name and their attributes, or what they pickle to if they say
themselves how, after a check that a copy is equal to the original and has its hash, since otherwise
a key would not find its state again.

The keys of map state are also given back, so in them enum members and named tuples stay what they
are; one map should not have them beside plain keys that are equal.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime as dt
import decimal
import enum
import importlib
import io
import pickle
import struct
import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from penstock.common.types import Row, RowKind, make_row
from penstock.errors import InvalidKeyError

_Encode: TypeAlias = Callable[[Any], bytes]

_DOUBLE = struct.Struct(">d")
_NOT_A_NUMBER = "NaN is not equal to itself; replace it, for example by a text"


def encode_key(key: Any) -> bytes:
    """The canonical bytes of a key."""
    encode = _ENCODERS.get(type(key))
    if encode is not None:
        return encode(key)
    check_key(key)
    plain = _encode_as_plain(key)
    return plain if plain is not None else _encode_other(key, encode_key)


def encode_map_key(key: Any) -> bytes:
    """Bytes from which a key comes back with its class, but for strings and numbers."""
    encode = _MAP_ENCODERS.get(type(key))
    if encode is not None:
        return encode(key)
    check_key(key)
    return _encode_other(key, encode_map_key)


def check_stream_key(key: Any) -> None:
    """Refuse what cannot be the key of a record."""
    if key is None:  # the usual slip of a function that forgets a case
        raise InvalidKeyError.missing()
    check_key(key)


def check_key(key: Any) -> None:
    """Refuse what cannot serve as a key."""
    try:
        hash(key)
    except TypeError as error:
        raise InvalidKeyError.of(key, f"it is not hashable ({error})") from None


def _encode_int(key: int) -> bytes:
    return b"i%x" % key  # hexadecimal: Python limits the length of decimal ones


def _encode_float(key: float) -> bytes:
    if key != key:
        raise InvalidKeyError.of(key, _NOT_A_NUMBER)
    if key.is_integer():
        return _encode_int(int(key))
    return b"f" + _DOUBLE.pack(key)


def _encode_str(key: str) -> bytes:
    return b"s" + key.encode("utf-8", "surrogatepass")


def _encode_parts(tag: bytes, parts: Iterable[Any], encode: _Encode) -> bytes:
    encoded = [encode(part) for part in parts]
    return tag + b"".join([b"%d:" % len(part) + part for part in encoded])


def _encode_decimal(key: decimal.Decimal) -> bytes:
    if key.is_nan():
        raise InvalidKeyError.of(key, _NOT_A_NUMBER)
    if key == key.to_integral_value() and key.is_finite():
        return _encode_int(int(key))
    as_float = float(key)
    if decimal.Decimal(as_float) == key:
        return _encode_float(as_float)
    return b"d" + str(key.normalize(_exact(len(key.as_tuple().digits)))).encode()


def _exact(digits: int) -> decimal.Context:
    """A context in which a number of so many digits is not rounded."""
    return decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _encode_datetime(key: dt.datetime) -> bytes:
    if key.tzinfo is not None:
        key = key.astimezone(dt.timezone.utc)
    return b"T" + key.isoformat().encode()


def _encode_time(key: dt.time) -> bytes:
    """Times with an offset are equal if they are one time of day in UTC, which may also be one of
    the day before or after; then there is no such time with the offset zero."""
    offset = key.utcoffset()
    if offset is not None:
        seconds = dt.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second) - offset
        shown = min(max(seconds, dt.timedelta(0)), dt.timedelta(days=1, seconds=-1))
        zone = dt.timezone(shown - seconds)
        shown += dt.timedelta(microseconds=key.microsecond)
        key = (dt.datetime.min + shown).time().replace(tzinfo=zone)
    return b"H" + key.isoformat().encode()


_SCALARS: dict[type, _Encode] = {
    str: _encode_str,
    int: _encode_int,
    bool: _encode_int,
    float: _encode_float,
    bytes: lambda key: b"b" + key,
    type(None): lambda key: b"n",
    decimal.Decimal: _encode_decimal,
    dt.date: lambda key: b"D" + key.isoformat().encode(),
    dt.time: _encode_time,
    dt.datetime: _encode_datetime,
    dt.timedelta: lambda key: b"L%d" % (key // dt.timedelta(microseconds=1)),
    uuid.UUID: lambda key: b"U" + key.bytes,
}


def _with_parts(encode: _Encode) -> dict[type, _Encode]:
    """What is made of keys, each of which `encode` encodes."""
    return {
        tuple: lambda key: _encode_parts(b"t", key, encode),
        Row: lambda key: _encode_parts(b"r", _row_parts(key), encode),
        frozenset: lambda key: b"F" + _sorted_parts(key, encode),
    }


_ENCODERS = {**_SCALARS, **_with_parts(encode_key)}
_MAP_ENCODERS = {**_SCALARS, **_with_parts(encode_map_key)}


def _row_parts(row: Row) -> tuple[Any, ...]:
    names = row.get_field_names()
    return (None if names is None else tuple(names), row.get_row_kind().value, *row)


def _sorted_parts(key: frozenset[Any], encode: _Encode) -> bytes:
    return b"".join(sorted(b"%d:" % len(part) + part for part in map(encode, key)))


def _encode_as_plain(key: Any) -> bytes | None:
    """The bytes of the plain key that is equal to a key of a subclass, if one is."""
    for base in type(key).__mro__[1:]:
        if base in _ENCODERS:
            try:
                data = _ENCODERS[base](key)
                return data if _is_copy(decode_key(data), key) else None
            except InvalidKeyError:
                raise
            except Exception:
                return None  # a method of its own does something else, as for pandas' NaT
    return None


def _encode_other(key: Any, encode: _Encode) -> bytes:
    """A key of no plain type, whose parts `encode` encodes."""
    if isinstance(key, enum.Enum):
        member = key.value if isinstance(key, enum.Flag) else key.name
        return _encode_parts(b"e", (*_name_of(key), member), encode)
    if isinstance(key, tuple) and hasattr(type(key), "_fields"):
        return _checked(key, _encode_parts(b"c", (*_name_of(key), *key), encode))
    if isinstance(key, (str, bytes)) and (plain := _encode_as_plain(key)) is not None:
        return plain
    number = _equal_number(key)
    if number is not None:
        return encode_key(number)
    return _checked(key, _encode_object(key, encode))


def _equal_number(key: Any) -> int | float | None:
    """The plain number that is equal to a key of another class, as for numpy's scalars."""
    for convert in (int, float):
        try:
            number: int | float = convert(key)
            if number == key and hash(number) == hash(key):
                return number
        except Exception:
            continue  # no number
    return None


def _encode_object(key: Any, encode: _Encode) -> bytes:
    state = _state_of(key)
    if state is not None:
        named = _name_of(key)
        parts = [part for name in sorted(state) for part in (name, state[name])]
        try:
            return _encode_parts(b"o", (*named, *parts), encode)
        except InvalidKeyError:
            pass  # an attribute that is no key, a list for example
    return b"p" + _pickled(key)


def _state_of(key: Any) -> dict[str, Any] | None:
    """The attributes that make a key what it is; None if its class has its own way to pickle."""
    cls = type(key)
    if dataclasses.is_dataclass(cls):
        return {f.name: getattr(key, f.name) for f in dataclasses.fields(key) if f.compare}
    try:
        reduced = key.__reduce_ex__(2)
    except Exception:
        return None
    plainly = reduced[:2] == (copyreg.__newobj__, (cls,))  # type: ignore[attr-defined]
    if not plainly or hasattr(cls, "__setstate__") or any(p is not None for p in reduced[3:]):
        return None
    state = reduced[2] if isinstance(reduced[2], tuple) else (reduced[2],)
    return {name: value for part in state for name, value in (part or {}).items()}


def _name_of(key: Any) -> tuple[str, str]:
    """Module and name of a key's class, by which any process must be able to find it."""
    cls = type(key)
    name = cls.__module__, cls.__qualname__
    try:
        found = _class_named(*name)
    except (ImportError, AttributeError):
        found = None
    if found is not cls:
        raise InvalidKeyError.of(
            key,
            f"its class {'.'.join(name)} cannot be found by that name, so the key could not be "
            "read again; define the class at the top of a module or script",
        )
    return name


def _pickled(key: Any) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, 4)
    pickler.fast = True  # without references: whether equal parts are one object must not matter
    try:
        pickler.dump(key)
    except Exception as error:
        raise InvalidKeyError.of(key, f"it cannot be pickled ({error})") from None
    return buffer.getvalue()


def _checked(key: Any, data: bytes) -> bytes:
    """A key of the user's own class must be equal to its copy, or it would lose its state."""
    if not _is_copy(decode_key(data), key):
        raise InvalidKeyError.of(
            key,
            f"a copy of it is not equal to it or has another hash; give {type(key).__name__} "
            "__eq__ and __hash__ by value",
        )
    return data


def _is_copy(copy: Any, key: Any) -> bool:
    return bool(copy == key) and hash(copy) == hash(key)


def decode_key(data: bytes) -> Any:
    """The key back from its bytes, equal to the one that was encoded."""
    return _DECODERS[data[0]](data[1:])


def _split(data: bytes) -> list[Any]:
    parts = []
    at = 0
    while at < len(data):
        colon = data.index(b":", at)
        end = colon + 1 + int(data[at:colon])
        parts.append(decode_key(data[colon + 1 : end]))
        at = end
    return parts


def _decode_row(data: bytes) -> Row:
    names, kind, *values = _split(data)
    return make_row(names, values, RowKind(kind))


def _class_named(module: str, qualname: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _decode_enum(data: bytes) -> Any:
    module, qualname, member = _split(data)
    cls = _class_named(module, qualname)
    return cls[member] if isinstance(member, str) else cls(member)


def _decode_named_tuple(data: bytes) -> Any:
    module, qualname, *values = _split(data)
    return tuple.__new__(_class_named(module, qualname), values)


def _decode_object(data: bytes) -> Any:
    """Neither __init__ nor __post_init__ runs again."""
    module, qualname, *parts = _split(data)
    cls = _class_named(module, qualname)
    made: Any = object.__new__(cls)
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        object.__setattr__(made, name, value)
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if not field.compare:  # it is not part of the key
            object.__setattr__(made, field.name, _default_of(field))
    return made


def _default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    ord("s"): lambda data: data.decode("utf-8", "surrogatepass"),
    ord("i"): lambda data: int(data, 16),
    ord("f"): lambda data: _DOUBLE.unpack(data)[0],
    ord("b"): lambda data: data,
    ord("n"): lambda data: None,
    ord("t"): lambda data: tuple(_split(data)),
    ord("r"): _decode_row,
    ord("F"): lambda data: frozenset(_split(data)),
    ord("d"): lambda data: decimal.Decimal(data.decode()),
    ord("D"): lambda data: dt.date.fromisoformat(data.decode()),
    ord("H"): lambda data: dt.time.fromisoformat(data.decode()),
    ord("T"): lambda data: dt.datetime.fromisoformat(data.decode()),
    ord("L"): lambda data: dt.timedelta(microseconds=int(data)),
    ord("U"): lambda data: uuid.UUID(bytes=data),
    ord("e"): _decode_enum,
    ord("c"): _decode_named_tuple,
    ord("o"): _decode_object,
    ord("p"): pickle.loads,
}
