"""Stored values of another type, with and without the time of their last use before them."""

from __future__ import annotations

import msgspec
import pytest

from penstock.state.rewriting import msgpack_rewrite, stamps_changed

LAST_USED = (7).to_bytes(8, "big")
NOW = (99).to_bytes(8, "big")
ONE, ONE_POINT = msgspec.msgpack.encode(1), msgspec.msgpack.encode(1.0)


@pytest.mark.parametrize(
    ("before", "after", "stored", "expected"),
    [
        (False, False, ONE, ONE_POINT),
        (False, True, ONE, NOW + ONE_POINT),
        (True, False, LAST_USED + ONE, ONE_POINT),
        # To be converted is not to be used: it expires when it would have.
        (True, True, LAST_USED + ONE, LAST_USED + ONE_POINT),
    ],
)
def test_a_value_is_converted_behind_its_stamp(
    before: bool, after: bool, stored: bytes, expected: bytes
) -> None:
    rewrite = stamps_changed(msgpack_rewrite(float), before, after, lambda: 99)
    assert rewrite is not None
    assert rewrite(stored) == expected


@pytest.mark.parametrize(
    ("before", "after", "stored", "expected"),
    [(False, True, ONE, NOW + ONE), (True, False, LAST_USED + ONE, ONE)],
)
def test_only_the_stamp_comes_or_goes(
    before: bool, after: bool, stored: bytes, expected: bytes
) -> None:
    rewrite = stamps_changed(None, before, after, lambda: 99)
    assert rewrite is not None
    assert rewrite(stored) == expected


@pytest.mark.parametrize("stamped", [False, True])
def test_nothing_is_rewritten_if_nothing_has_changed(stamped: bool) -> None:
    assert stamps_changed(None, stamped, stamped, lambda: 99) is None
