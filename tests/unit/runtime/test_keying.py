"""What is in the scope while a record of a keyed input is worked on."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from penstock.common import Types
from penstock.datastream._joined_windows import FIRST, SECOND, KeyOfEither
from penstock.errors import TypeMismatchError
from penstock.graph.partitioning import ByKey
from penstock.runtime.keying import keying
from penstock.runtime.loops import Step, before, ending, stamping
from penstock.state.backend import KeyScope


def _seen(
    key_type: Any,
    records: list[Any],
    timestamps: list[int] | None,
    select: Callable[[Any], Any] = itemgetter(0),
) -> list[Any]:
    scope, seen = KeyScope(), []
    noted = ending(
        Step("$note(value)", note=lambda v: seen.append((v, scope.key, scope.timestamp)))
    )
    run = before(noted, keying(ByKey(select, key_type=key_type), scope))
    if timestamps is None:
        run(records)
    else:
        stamping(run, scope)(zip(timestamps, records, strict=True))
    return seen


@pytest.mark.parametrize("key_type", [None, Types.LONG(), Types.FLOAT()])
def test_keys_and_timestamps(key_type: Any) -> None:
    """FLOAT is a type whose converter must be called for every value."""
    records = [(1, "a"), (2, "b")]

    assert _seen(key_type, records, None) == [((1, "a"), 1, None), ((2, "b"), 2, None)]
    assert _seen(key_type, records, [7, 8]) == [((1, "a"), 1, 7), ((2, "b"), 2, 8)]


@pytest.mark.parametrize("key_type", [None, Types.LONG()])
def test_keys_of_records_of_two_streams(key_type: Any) -> None:
    records = [(FIRST, (1, 10)), (SECOND, (2, 20)), (FIRST, (3, 30))]
    either = KeyOfEither(itemgetter(0), itemgetter(1))

    assert [key for _, key, _ in _seen(key_type, records, None, either)] == [1, 20, 3]


def test_a_key_is_converted_only_if_it_must_be() -> None:
    key = 2**40
    found = [key for _, key, _ in _seen(Types.LONG(), [(key,), (2**63,), (np.int32(5),)], None)]

    assert found[0] is key
    assert found[1:] == [-(2**63), 5]
    assert type(found[2]) is int
    with pytest.raises(TypeMismatchError):
        _seen(Types.LONG(), [("a",)], None)
