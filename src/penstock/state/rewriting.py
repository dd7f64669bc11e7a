"""Stored bytes of one type as those of another, wherever in an entry they stand.

In the epoch that changes a state's type, all of its entries are written anew. Until then they are
read through a `RewrittenStore`, which converts what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from penstock.storage.entries import KEY_GROUP_BYTES, PREFIX_BYTES

Rewrite = Callable[[bytes], bytes]
Lift = Callable[[Rewrite], Rewrite]
"""From a function for values to one for the entries in which they stand."""

_STAMP_BYTES = 8


class Readable(Protocol):
    """What of a store is needed to read it."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]: ...

    def release(self) -> None: ...


def msgpack_rewrite(step: Callable[[Any], Any]) -> Rewrite:
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder().decode
    return lambda raw: encode(step(decode(raw)))


def stamps_changed(
    rewrite: Rewrite | None, before: bool, after: bool, now: Callable[[], int]
) -> Rewrite | None:
    """The rewriting of values that may have had the time of their last use before them, and may
    have one from now on. A first one is the time of the rewriting."""
    call = rewrite or _same
    if before and after:
        return (
            None if rewrite is None else lambda raw: raw[:_STAMP_BYTES] + call(raw[_STAMP_BYTES:])
        )
    if before:
        return lambda raw: call(raw[_STAMP_BYTES:])
    if after:
        return lambda raw: now().to_bytes(_STAMP_BYTES, "big") + call(raw)
    return rewrite


def _same(raw: bytes) -> bytes:
    return raw


class RewrittenStore:
    """A store whose values of some states are converted as they are read."""

    def __init__(self, below: Readable, rewrites: Mapping[bytes, Rewrite]) -> None:
        """`rewrites` are found by the states' ids; others may be added later."""
        self._below = below
        self._rewrites = rewrites

    def get(self, key: bytes) -> bytes | None:
        found = self._below.get(key)
        return None if found is None else self._seen(key, found)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._below.scan(prefix, start):
            yield key, self._seen(key, value)

    def release(self) -> None:
        self._below.release()

    def _seen(self, key: bytes, value: bytes) -> bytes:
        rewrite = self._rewrites.get(key[KEY_GROUP_BYTES:PREFIX_BYTES])
        return value if rewrite is None else rewrite(value)
