"""Live values over acknowledged ones: looked up once per key, written back once per epoch.

What an epoch changed lies in `changed`, over what is `settled`: read from the store, or written by
an earlier snapshot. So a change is one dict store, a snapshot turns `changed` into entries, and
what is settled can be dropped at any time. The tables outlive an epoch as long as the version they
hold is the base of the next one; their owner drops them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, cast

from penstock.common._type_conversion import instead_of
from penstock.errors import PenstockError, StateError, TypeMismatchError, short_repr
from penstock.state.backend import KeyScope, StateBase
from penstock.storage.entries import Entry


class Table(Protocol):
    """The live objects of one state. Map entries and list elements count one by one."""

    name: str

    @property
    def pending(self) -> int:
        """How many changes wait for a snapshot."""
        ...

    @property
    def held(self) -> int:
        """How many objects are held only to save reading them again."""
        ...

    def forget(self) -> None:
        """Drop what is held without need."""
        ...

    def drop_empty(self) -> None:
        """Drop what is held of keys that have nothing in the state."""
        ...

    def snapshot(self, keep: int) -> Iterable[Entry]:
        """What changed since the last snapshot, to be taken to its end before anything else is
        done: then there are no changes any more, and at most `keep` objects are held."""
        ...


class KeyedTable(Table, Protocol):
    """A table of objects that belong to keys."""

    def changed_keys(self) -> list[Any]:
        """The keys with changes that wait for a snapshot."""
        ...


class _Changed(dict[Any, Any]):
    """Changed values by key. What is not among them is looked for below, and not put here."""

    __slots__ = ("below",)
    below: Callable[[Any], Any]

    def __missing__(self, key: Any) -> Any:
        return self.below(key)


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
        self.changed = _Changed()
        self.changed.below = self._unchanged
        self.settled: dict[Any, Any] = {}

    def _unchanged(self, key: Any) -> Any:
        try:
            return self.settled[key]
        except KeyError:
            return self.load(key)

    def load(self, key: Any) -> Any:
        """The acknowledged value of a key that is not live yet; it then is."""
        raw = self.base.value(self.name, key)
        value = None if raw is None else load_value(self.name, self.loads, raw)
        self.settled[key] = value
        return value

    def current(self) -> Any:
        """The value of the current key."""
        return self.changed[self.scope.key]

    def put(self, value: Any) -> None:
        self.changed[self.scope.key] = value

    def changed_keys(self) -> list[Any]:
        return list(self.changed)

    @property
    def pending(self) -> int:
        return len(self.changed)

    @property
    def held(self) -> int:
        return len(self.settled)

    def forget(self) -> None:
        self.settled.clear()

    def drop_empty(self) -> None:
        for key in [key for key, value in self.settled.items() if value is None]:
            del self.settled[key]

    def snapshot(self, keep: int) -> Iterator[Entry]:
        entry, name, dumps = self.base.entry, self.name, self.dumps
        for key, value in self.changed.items():
            yield entry(name, key, None if value is None else dump_value(name, dumps, value))
        self.settled.update(self.changed)
        self.changed.clear()
        if len(self.settled) > keep:
            self.settled.clear()


def naming(state: str, convert: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """The converter, whose errors name the state."""
    if convert is None:
        return None

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except TypeMismatchError as error:
            raise error.inside(f"state {state!r}") from None

    return instead_of(convert, converted)


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


def load_value(state: str, loads: Callable[[bytes], Any], raw: bytes) -> Any:
    """The value back, or an error that names the state."""
    try:
        return loads(raw)
    except Exception as error:
        raise StateError(
            f"a stored value of state {state!r} cannot be read: {type(error).__name__}: {error}; "
            "declare the state's type and time to live as they were, or use a new state name"
        ) from error


def naming_state(state: str, rewrite: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The rewriting of a stored value, whose errors name the state."""
    return lambda raw: cast(bytes, load_value(state, rewrite, raw))
