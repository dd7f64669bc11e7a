"""The keys of records: a record is worked on while the scope has its key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common._type_conversion import fitting
from penstock.graph.partitioning import ByKey
from penstock.runtime.loops import Step
from penstock.state.backend import KeyScope


def keying(partitioning: ByKey, scope: KeyScope) -> Step:
    """Notes a record's key. With a declared key type, keys are checked and converted."""
    call, convert = partitioning.select, key_converter(partitioning)
    if convert is None:
        return Step("$scope.key = $call(value)", scope=scope, call=call)
    fits = fitting(convert, "key") or "False"
    return Step(
        "key = $call(value)",
        f"$scope.key = key if {fits} else $convert(key)",
        scope=scope,
        call=call,
        convert=convert,
    )


def key_converter(partitioning: ByKey) -> Callable[[Any], Any] | None:
    return None if partitioning.key_type is None else partitioning.key_type.converter()
