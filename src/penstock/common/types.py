"""Row and RowKind: the record type with positional or named fields.

Made and read once per record, so it is slim; knows nothing of type information.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from penstock.refusals import NO_JAVA, refusing

__all__ = ["Row", "RowKind"]


@refusing({"to_j_row_kind": NO_JAVA})
class RowKind(Enum):
    """What a row says about a change."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return ("+I", "-U", "+U", "-D")[self.value]


_INSERT = RowKind.INSERT


class Row:
    """A record whose fields are reached by position, and by name when it has names.

    >>> Row(1, "a")
    <Row(1, 'a')>
    >>> Row(name="Ann", age=7).age
    7
    >>> Person = Row("name", "age")
    >>> Person("Ann", 7)
    Row(name='Ann', age=7)
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row takes either positional or named values, not both")
            _set_fields(self, tuple(kwargs))
            _set_values(self, list(kwargs.values()))
        else:
            _set_fields(self, None)
            _set_values(self, list(args))
        _set_kind(self, _INSERT)

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        row = Row(*args, **kwargs)
        _set_kind(row, row_kind)
        return row

    def __call__(self, *args: Any) -> Row:
        """Use this row's values as field names of a new row."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} fields, got {len(args)} values")
        return make_row(tuple(self._values), list(args), self._row_kind)

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        if self._fields is None:
            raise TypeError(f"{self!r} has no field names, so it cannot become a dict")
        values: Iterable[Any] = map(_plain, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        _set_kind(self, row_kind)

    def set_field_names(self, field_names: Sequence[str]) -> None:
        _set_fields(self, tuple(field_names))

    def get_field_names(self) -> list[str] | None:
        return None if self._fields is None else list(self._fields)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Values in the order of `names`; all values if this row has no names."""
        fields = self._fields
        if fields is None or tuple(names) == fields:
            return self._values
        missing = [name for name in names if name not in fields]
        if missing:
            raise ValueError(f"no fields {missing} in {self!r}")
        return [self._values[fields.index(name)] for name in names]

    def _index(self, name: object) -> int:
        """Position of a named field, or -1."""
        fields = self._fields
        return fields.index(name) if fields is not None and name in fields else -1

    def __getitem__(self, item: int | slice | str) -> Any:
        if isinstance(item, (int, slice)):
            return self._values[item]
        at = self._index(item)
        if at < 0:
            raise KeyError(item)
        return self._values[at]

    def __setitem__(self, key: int | slice | str, value: Any) -> None:
        if isinstance(key, (int, slice)):
            self._values[key] = value
            return
        at = self._index(key)
        if at < 0:
            raise KeyError(key)
        self._values[at] = value

    def __getattr__(self, item: str) -> Any:
        # Reached only for what is no slot and no method. A half-made row (while it is copied or
        # unpickled) has no `_fields` yet and must not recurse.
        if item.startswith("__") or item in Row.__slots__:
            raise AttributeError(item)
        at = self._index(item)
        if at < 0:
            raise AttributeError(f"{self!r} has no field {item!r}")
        return self._values[at]

    def __setattr__(self, key: str, value: Any) -> None:
        if key in Row.__slots__:
            object.__setattr__(self, key, value)
            return
        at = self._index(key)
        if at < 0:
            raise AttributeError(f"{self!r} has no field {key!r}")
        self._values[at] = value

    def __contains__(self, item: object) -> bool:
        return item in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Row)
            and self._values == other._values
            and self._fields == other._fields
            and self._row_kind is other._row_kind
        )

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._row_kind is not _INSERT:
            return make_row, (self._fields, self._values, self._row_kind)
        return make_row, (self._fields, self._values)

    def __copy__(self) -> Row:
        return make_row(self._fields, list(self._values), self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in named)})"


# `Row.__setattr__` looks up user fields; these write the slots directly.
_new: Callable[[type[Row]], Row] = Row.__new__
_set_fields: Callable[[Row, tuple[str, ...] | None], None] = Row.__dict__["_fields"].__set__
_set_values: Callable[[Row, list[Any]], None] = Row.__dict__["_values"].__set__
_set_kind: Callable[[Row, RowKind], None] = Row.__dict__["_row_kind"].__set__


def make_row(fields: tuple[str, ...] | None, values: list[Any], row_kind: RowKind = _INSERT) -> Row:
    """A row that takes over `values` as they are; the fast way, for the runtime."""
    row = _new(Row)
    _set_fields(row, fields)
    _set_values(row, values)
    _set_kind(row, row_kind)
    return row


def _plain(value: Any) -> Any:
    """Rows inside `value` as dicts; unnamed ones stay."""
    if isinstance(value, Row):
        return value.as_dict(True) if value._fields is not None else value
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value
