"""Live values over acknowledged ones: looked up once per key, written back once per epoch.

A `Live` table maps keys to Python objects. What was changed in an epoch is in `dirty`; a snapshot
turns that into entries. The tables outlive an epoch as long as the version they hold is the base
of the next one; their owner drops them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import PenstockError, StateError, short_repr
from penstock.state.backend import KeyScope, StateBase
from penstock.storage.entries import Entry


class LiveTable:
    """One object per key, None standing for nothing."""

    def __init__(
        self,
        name: str,
        scope: KeyScope,
        base: StateBase,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
    ) -> None:
        self.name = name
        self.scope = scope
        self.base = base
        self.dumps = dumps
        self.loads = loads
        self.live: dict[Any, Any] = {}
        self.dirty: set[Any] = set()

    def load(self, key: Any) -> Any:
        """The acknowledged value of a key that is not live yet; it then is."""
        raw = self.base.get(self.base.address(self.name, key))
        value = None if raw is None else self.loads(raw)
        self.live[key] = value
        return value

    def current(self) -> Any:
        """The value of the current key."""
        key = self.scope.key
        try:
            return self.live[key]
        except KeyError:
            return self.load(key)

    def put(self, value: Any) -> None:
        key = self.scope.key
        self.live[key] = value
        self.dirty.add(key)

    @property
    def pending(self) -> int:
        """How many changes wait for a snapshot."""
        return len(self.dirty)

    def snapshot(self, keep: int) -> list[Entry]:
        """What changed since the last snapshot. Keeps at most `keep` live values."""
        entries = []
        for key in self.dirty:
            value = self.live[key]
            address = self.base.address(self.name, key)
            raw = None if value is None else dump_value(self.name, self.dumps, value)
            entries.append(address.entry(raw))
        self.dirty.clear()
        if len(self.live) > keep:
            self.live.clear()
        return entries


def dump_value(state: str, dumps: Callable[[Any], bytes], value: Any) -> bytes:
    """The bytes of a value, or an error that names the state."""
    try:
        return dumps(value)
    except PenstockError:
        raise
    except Exception as error:
        raise StateError(
            f"a value of state {state!r} cannot be stored: {type(error).__name__}: {error}; "
            f"got {short_repr(value)}; store what can be pickled"
        ) from error
