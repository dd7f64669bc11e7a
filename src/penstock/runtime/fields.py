"""Fields of records, by position or name, whatever the record is made of.

Tuples, lists, rows, dicts, dataclasses, named tuples and plain objects have fields; a number, a
string or the like is its own field 0. What is made here travels to workers by pickle. How to
reach a field is found once per class of record, since getters are called for every record.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import enum
import numbers
import operator
import uuid
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from penstock.common.time import Instant
from penstock.common.types import Row
from penstock.errors import InvalidArgumentError, short_repr

Field = int | str

_SCALARS = (
    str, bytes, numbers.Number, type(None), enum.Enum, uuid.UUID, Instant,
    dt.date, dt.time, dt.timedelta,
)  # fmt: skip
_MISSES = (KeyError, IndexError, AttributeError)


class _Access(NamedTuple):
    """How a class of records gives a field, and how a copy with another value is made."""

    get: Callable[[Any], Any]
    replace: Callable[[Any, Any], Any]


def getter(field: Field) -> Getter:
    """A callable that takes a field out of a record."""
    return Getter(_checked(field))


def replacer(field: Field) -> Replacer:
    """A callable of a record and a value: a copy of the record with the value in the field."""
    return Replacer(_checked(field))


def tuple_getter(selectors: Iterable[Callable[[Any], Any]]) -> TupleGetter:
    """A callable that applies several selectors to a record and makes a tuple of the results."""
    return TupleGetter(tuple(selectors))


def _checked(field: Field) -> Field:
    if isinstance(field, str) and field:
        return field
    if isinstance(field, int) and not isinstance(field, bool) and field >= 0:
        return field
    raise InvalidArgumentError.of("a field", "a position from 0 on or a name", field)


class _OnField:
    """Shared by getters and replacers: ways to a field, kept per class of records."""

    __slots__ = ("_ways", "field")

    def __init__(self, field: Field) -> None:
        self.field = field
        self._ways: dict[type, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.field == self.field

    def __hash__(self) -> int:
        return hash((type(self), self.field))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.field!r})"


class Getter(_OnField):
    """Takes a field out of a record."""

    __slots__ = ()

    @property
    def ways(self) -> dict[type, Callable[[Any], Any]]:
        """How it takes the field out of records of each class that it has met, now and later: for
        loops that spare the call of the getter for those."""
        return self._ways

    def __call__(self, record: Any) -> Any:
        try:
            return self._ways[record.__class__](record)
        except _MISSES:
            return self._first(record)

    def _first(self, record: Any) -> Any:
        way = _access(record, self.field).get
        try:
            value = way(record)
        except _MISSES as error:
            raise _no_field(record, self.field) from error
        self._ways[record.__class__] = way
        return value


class Replacer(_OnField):
    """Makes a copy of a record with another value in a field."""

    __slots__ = ()

    def __call__(self, record: Any, value: Any) -> Any:
        try:
            return self._ways[record.__class__](record, value)
        except _MISSES:
            return self._first(record, value)

    def _first(self, record: Any, value: Any) -> Any:
        access = _access(record, self.field)
        try:
            access.get(record)
            replaced = access.replace(record, value)
        except _MISSES as error:
            raise _no_field(record, self.field) from error
        self._ways[record.__class__] = access.replace
        return replaced


@dataclasses.dataclass(frozen=True)
class TupleGetter:
    """Several selectors in one."""

    selectors: tuple[Callable[[Any], Any], ...]

    def __call__(self, record: Any) -> tuple[Any, ...]:
        return tuple([select(record) for select in self.selectors])


# Kinds of records


def _access(record: Any, field: Field) -> _Access:
    """The way to a field for all records of this one's class."""
    cls = type(record)
    if isinstance(record, _SCALARS) and not dataclasses.is_dataclass(cls):
        if field != 0:
            raise _no_field(record, field)
        return _Access(_itself, _instead)
    if isinstance(record, Row):
        return _row_access(field)
    if isinstance(record, dict):
        return _Access(operator.itemgetter(field), _item_replace(field))
    if isinstance(record, tuple | list):
        return _sequence_access(record, field)
    if isinstance(field, str) and "." not in field:  # attrgetter would follow a dotted path
        return _Access(operator.attrgetter(field), _attribute_replace(field))
    if isinstance(field, str) or not dataclasses.is_dataclass(cls) or field >= len(_names(record)):
        raise _no_field(record, field)
    name = _names(record)[field]
    return _Access(operator.attrgetter(name), _attribute_replace(name))


def _sequence_access(record: Any, field: Field) -> _Access:
    names = getattr(record, "_fields", None)
    position = _position(field) if names is None or isinstance(field, int) else None
    if position is None and names is not None and field in names:
        position = names.index(field)
    if position is None:
        raise _no_field(record, field)
    get = operator.itemgetter(position)
    if isinstance(record, list):
        return _Access(get, _item_replace(position))
    make: Callable[[Any], Any] = tuple if names is None else type(record)._make
    return _Access(get, _tuple_replace(position, make))


def _position(field: Field) -> int | None:
    """A position, also when it is called f0, f1 … as Flink does for tuples."""
    if isinstance(field, int):
        return field
    return int(field[1:]) if field[0] == "f" and field[1:].isdecimal() else None


def _itself(record: Any) -> Any:
    return record


def _instead(record: Any, value: Any) -> Any:
    return value


def _row_access(field: Field) -> _Access:
    """Whether a row has names differs from row to row, so it is asked every time."""

    def place(row: Row) -> Field:
        if isinstance(field, int) or row.get_field_names() is not None:
            return field
        position = _position(field)
        return field if position is None else position

    def replace(row: Row, value: Any) -> Row:
        replaced = copy.copy(row)
        replaced[place(row)] = value
        return replaced

    return _Access(lambda row: row[place(row)], replace)


def _tuple_replace(position: int, make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def replace(record: tuple[Any, ...], value: Any) -> Any:
        values = list(record)
        values[position] = value
        return make(values)

    return replace


def _item_replace(key: Field) -> Callable[[Any, Any], Any]:
    def replace(record: Any, value: Any) -> Any:
        replaced = copy.copy(record)
        replaced[key] = value
        return replaced

    return replace


def _attribute_replace(name: str) -> Callable[[Any, Any], Any]:
    def replace(record: Any, value: Any) -> Any:
        replaced = copy.copy(record)
        object.__setattr__(replaced, name, value)  # a frozen dataclass refuses setattr
        return replaced

    return replace


def _names(record: Any) -> list[Any]:
    """The names of a record's fields, as far as it has any."""
    if isinstance(record, Row):
        return record.get_field_names() or []
    if isinstance(record, dict):
        return list(record)
    if isinstance(record, tuple):
        return list(getattr(record, "_fields", ()))
    if dataclasses.is_dataclass(record):
        return [field.name for field in dataclasses.fields(record)]
    return [name for name in getattr(record, "__dict__", ()) if not name.startswith("_")]


def _no_field(record: Any, field: Field) -> InvalidArgumentError:
    """What went wrong, and which fields there are instead."""
    what = f"position {field}" if isinstance(field, int) else f"field {field!r}"
    names = _names(record)
    if isinstance(record, _SCALARS):
        there = "it has no fields but itself, at position 0"
    elif names:
        there = f"its fields are {', '.join(map(repr, names))}"
    elif isinstance(record, tuple | list | Row):
        there = f"it has {len(record)} fields without names; use a position"
    else:
        there = "it has no fields"
    return InvalidArgumentError(
        f"there is no {what} in a record of type {type(record).__name__} "
        f"({short_repr(record)}); {there}"
    )


# Rolling aggregates


def rolling_function(kind: str, field: Field) -> Callable[[Any, Any], Any]:
    """What a rolling `sum`, `min`, `max`, `min_by` or `max_by` does with two records.

    The first three keep all other fields of the earlier record; the last two keep a record whole,
    the earlier one if both are equal in the field.
    """
    if kind not in _ROLLING:
        raise InvalidArgumentError.of("a rolling aggregate", f"one of {sorted(_ROLLING)}", kind)
    return _ROLLING[kind](getter(field), replacer(field))


def _below(one: Any, other: Any) -> bool:
    """NaN is above all other numbers, as it is in Flink."""
    return bool(one < other or (other != other and one == one))


@dataclasses.dataclass(frozen=True)
class _Rolling:
    get: Getter
    replace: Replacer


class RollingSum(_Rolling):
    def __call__(self, before: Any, record: Any) -> Any:
        return self.replace(before, self.get(before) + self.get(record))


class RollingMin(_Rolling):
    def __call__(self, before: Any, record: Any) -> Any:
        value = self.get(record)
        return self.replace(before, value) if _below(value, self.get(before)) else before


class RollingMax(_Rolling):
    def __call__(self, before: Any, record: Any) -> Any:
        value = self.get(record)
        return self.replace(before, value) if _below(self.get(before), value) else before


class RollingMinBy(_Rolling):
    def __call__(self, before: Any, record: Any) -> Any:
        return record if _below(self.get(record), self.get(before)) else before


class RollingMaxBy(_Rolling):
    def __call__(self, before: Any, record: Any) -> Any:
        return record if _below(self.get(before), self.get(record)) else before


_ROLLING: dict[str, Callable[[Getter, Replacer], Callable[[Any, Any], Any]]] = {
    "sum": RollingSum,
    "min": RollingMin,
    "max": RollingMax,
    "min_by": RollingMinBy,
    "max_by": RollingMaxBy,
}
