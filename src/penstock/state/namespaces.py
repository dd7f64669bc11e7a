"""State per key and namespace (a window): the tables see both as one key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.state.backend import Address, KeyScope, StateBase
from penstock.storage.entries import Entry


class NamespaceScope:
    """The current key together with a namespace."""

    __slots__ = ("_scope", "namespace")

    def __init__(self, scope: KeyScope) -> None:
        self._scope = scope
        self.namespace = b""

    @property
    def key(self) -> tuple[Any, bytes]:
        return self._scope.key, self.namespace


class NamespacedBase:
    """The acknowledged values under such pairs."""

    def __init__(self, base: StateBase) -> None:
        self._base = base

    def address(self, state: str, key: tuple[Any, bytes]) -> Address:
        return self._base.address(state, *key)

    def entry(self, state: str, key: tuple[Any, bytes], value: bytes | None) -> Entry:
        return self._base.entry(state, key[0], value, key[1])

    def value(self, state: str, key: tuple[Any, bytes]) -> bytes | None:
        return self._base.value(state, *key)

    def get(self, address: Address, map_key: bytes = b"") -> bytes | None:
        return self._base.get(address, map_key)

    def scan(self, address: Address) -> Iterator[tuple[bytes, bytes]]:
        return self._base.scan(address)
