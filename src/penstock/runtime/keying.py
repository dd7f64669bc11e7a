"""The keys of records: a record is worked on while the scope has its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.common._type_conversion import fitting
from penstock.datastream._joined_windows import KeyOfEither
from penstock.graph.partitioning import ByKey
from penstock.runtime.loops import Step
from penstock.state.backend import KeyScope


class KeySource(NamedTuple):
    """How a record's key is found, for a `Step`."""

    before: tuple[str, ...]
    key: str
    """An expression, behind those lines."""
    given: dict[str, Any]


def key_source(select: Callable[[Any], Any]) -> KeySource:
    """`call` is the selector, whatever is called: by it an error finds its line."""
    if type(select) is KeyOfEither:  # written out, it is half as much to do
        either = "$second(record) if stream else $first(record)"
        given = {"call": select, "first": select.first, "second": select.second}
        return KeySource(("stream, record = value",), either, given)
    return KeySource((), "$call(value)", {"call": select})


def keying(partitioning: ByKey, scope: KeyScope) -> Step:
    """Notes a record's key. With a declared key type, keys are checked and converted."""
    before, key, given = key_source(partitioning.select)
    convert = key_converter(partitioning)
    if convert is None:
        return Step(*before, f"$scope.key = {key}", scope=scope, **given)
    fits = fitting(convert, "key") or "False"
    return Step(
        *before,
        f"key = {key}",
        f"$scope.key = key if {fits} else $convert(key)",
        scope=scope,
        convert=convert,
        **given,
    )


def key_converter(partitioning: ByKey) -> Callable[[Any], Any] | None:
    return None if partitioning.key_type is None else partitioning.key_type.converter()
