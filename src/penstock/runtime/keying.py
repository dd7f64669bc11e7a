"""The keys of records: a record is worked on while the scope has its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.common._type_conversion import each_noted
from penstock.graph.partitioning import ByKey
from penstock.state.backend import KeyScope

Keyed = Callable[[Iterable[Any], list[Any], KeyScope], Iterator[Any]]
"""From values, timestamps and the scope to the values, each with its key in the scope."""

_LOOPS = (
    "for value in values:",
    "for scope.timestamp, value in zip(timestamps, values, strict=True):",
)


class Keying(NamedTuple):
    """The loops over the records of a keyed input."""

    plain: Keyed
    stamped: Keyed
    """Timestamps are noted, too: a generator less that each record passes through."""


def keying(partitioning: ByKey) -> Keying:
    """With a declared key type, keys are checked and converted."""
    call, convert = partitioning.select, key_converter(partitioning)
    if convert is None:
        return _keying(call)
    plain, stamped = (each_noted(call, convert, "key", loop, __file__) for loop in _LOOPS)
    if plain is None or stamped is None:
        return _keying(lambda value: convert(call(value)))
    return Keying(plain, stamped)


def key_converter(partitioning: ByKey) -> Callable[[Any], Any] | None:
    return None if partitioning.key_type is None else partitioning.key_type.converter()


def _keying(call: Callable[[Any], Any]) -> Keying:
    def plain(values: Iterable[Any], timestamps: list[Any], scope: KeyScope) -> Iterator[Any]:
        for value in values:
            scope.key = call(value)
            yield value

    def stamped(values: Iterable[Any], timestamps: list[Any], scope: KeyScope) -> Iterator[Any]:
        for scope.timestamp, value in zip(timestamps, values, strict=True):
            scope.key = call(value)
            yield value

    return Keying(plain, stamped)
