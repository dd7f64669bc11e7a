"""Records out of columns: what the rows of a Spark DataFrame or of a Parquet file become.

By default a record is a named tuple, `Record(id=…, temp=…)`: read by position, by name, or
unpacked, and as cheap as a tuple.

Columns have types, so it is known what all records of one batch are. A shape says it in a text:
`(sid)` are tuples of a text, an int and a float, each of which may also be None.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.common.types import Row, make_row
from penstock.errors import InvalidArgumentError


@lru_cache(maxsize=256)
def record_class(names: tuple[str, ...]) -> Any:
    """The class of records with these fields, the same one for the same names in a process."""
    make: Any = namedtuple
    cls = make("Record", names, rename=True)
    if cls._fields != names and len(set(names)) == len(names):
        # Names that a named tuple refuses ("_1", "class") it calls by other columns' names.
        cls._fields = names
        cls.__repr__ = _shown
        for at, name in enumerate(names):
            if name not in _RESERVED:
                setattr(cls, name, property(itemgetter(at)))

    def reduce(self: Any) -> tuple[Any, ...]:
        return _make_record, (names, tuple(self))

    cls.__reduce__ = reduce
    return cls


_RESERVED = frozenset(dir(namedtuple("_Nothing", ())))
"""What a record has beside its fields; a column of such a name is reached by `key_by` and the like,
or by its position."""


def _shown(record: Any) -> str:
    shown = ", ".join(
        f"{name}={value!r}" for name, value in zip(record._fields, record, strict=True)
    )
    return f"Record({shown})"


def _make_record(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return record_class(names)._make(values)


@dataclass(frozen=True)
class RecordMaker:
    """Turns columns into records of the wanted kind. Picklable."""

    names: tuple[str, ...]
    kind: Any = None
    """None, tuple, dict, Row, or a dataclass or NamedTuple with fields of the same names."""

    def __post_init__(self) -> None:
        kind = self.kind
        if kind in (None, tuple, dict, Row):
            return
        fields = field_names(kind)
        missing = [name for name in fields if name not in self.names]
        if missing:
            raise InvalidArgumentError(
                f"{kind.__name__} has fields {missing} that the DataFrame lacks; it has "
                f"{list(self.names)}"
            )

    def positions(self) -> dict[Any, int] | None:
        """The columns that fields of the records come from, by name and by position; None if the
        records' own class might change them."""
        if self.kind not in (None, tuple, dict, Row) or len(set(self.names)) < len(self.names):
            return None
        by_place = dict(enumerate(range(len(self.names))))
        by_name: dict[Any, int] = {name: at for at, name in enumerate(self.names)}
        if self.kind is tuple:
            return {**by_place, **{f"f{at}": at for at in by_place}}
        return by_name if self.kind is dict else {**by_place, **by_name}

    def field_of(self, position: int) -> int | str | None:
        """The field that comes from a column; None if the records have none of it."""
        if self.kind is tuple:
            return position
        name = self.names[position]
        known = self.kind in (None, dict, Row) or name in field_names(self.kind)
        return name if known else None

    def shape(self, types: Iterable[Any]) -> str | None:
        """What records of columns of these types are; None, if shapes do not say it."""
        if self.kind not in (None, tuple):
            return None
        letters = list(map(_letter, types))
        if "" in letters or not letters:
            return None
        values = f"({''.join(letters)})"
        return values if self.kind is tuple else named_shape(self.names, values)

    def __call__(self, columns: list[list[Any]]) -> Iterable[Any]:
        kind = self.kind
        rows: Iterator[Any] = zip(*columns, strict=True)
        if kind is None:
            return map(tuple.__new__, repeat(record_class(self.names)), rows)
        if kind is tuple:
            return rows
        if kind is dict:
            return map(dict, map(zip, repeat(self.names), rows))
        if kind is Row:
            return (make_row(self.names, list(row)) for row in rows)
        fields = field_names(kind)
        chosen = [columns[self.names.index(name)] for name in fields]
        if issubclass(kind, tuple):
            return map(tuple.__new__, repeat(kind), zip(*chosen, strict=True))
        return (kind(**dict(zip(fields, row, strict=True))) for row in zip(*chosen, strict=True))


@dataclass(frozen=True)
class ValueMaker:
    """The values of the only column are the records."""

    def positions(self) -> dict[Any, int]:
        return {0: 0}

    def field_of(self, position: int) -> int | None:
        return 0 if position == 0 else None

    def shape(self, types: Iterable[Any]) -> str | None:
        [kind] = types
        return _letter(kind) or None

    def __call__(self, columns: list[list[Any]]) -> Iterable[Any]:
        return columns[0]


_KINDS: tuple[tuple[str, Any], ...] = (
    ("i", pa.types.is_integer),
    ("d", pa.types.is_floating),
    ("b", pa.types.is_boolean),
    ("s", pa.types.is_string),
    ("s", pa.types.is_large_string),
)


def _letter(kind: Any) -> str:
    """Of the values of a column of Arrow's; empty, if there is none."""
    if pa.types.is_dictionary(kind):
        return _letter(kind.value_type)
    return next((letter for letter, is_kind in _KINDS if is_kind(kind)), "")


_BETWEEN, _BEHIND, MARKED = "\x1f", "\x1e", "\x1d"
"""Stand in a shape between names, behind them, and behind the number of a stream."""


def named_shape(names: tuple[str, ...], values: str) -> str | None:
    """The shape of records with these names; None, if they have what stands between names."""
    text = _BETWEEN.join(names)
    if _BEHIND in text or MARKED in text or text.count(_BETWEEN) != len(names) - 1:
        return None
    return f"{text}{_BEHIND}{values}"


def names_in(shape: str) -> tuple[tuple[str, ...] | None, str]:
    """The names of the records, if they have some, and the shape of their values."""
    names, behind, values = shape.rpartition(_BEHIND)
    return (tuple(names.split(_BETWEEN)) if behind else None), values


def field_names(kind: Any) -> tuple[str, ...]:
    """The fields of a record type that has some of its own."""
    if isinstance(kind, type):
        if dataclasses.is_dataclass(kind):
            return tuple(field.name for field in dataclasses.fields(kind))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return tuple(kind._fields)
    raise InvalidArgumentError.of(
        "record_type", "tuple, dict, Row, a dataclass or a NamedTuple", kind
    )
