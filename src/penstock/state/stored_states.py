"""How each kind of state lies in a snapshot's entries, and the rows that it amounts to.

An entry is what a store holds; a row is what a user would call one: the value of a key, an entry of
a map, a whole list though it is stored in chunks, one session of several that are stored together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from penstock.errors import InvalidArgumentError
from penstock.state.list_state import packed_elements
from penstock.state.stored_keys import read_key
from penstock.state.stored_values import Pickled, stored_type
from penstock.state.time_buffer import BY_TIME
from penstock.state.timers import time_bytes, time_of
from penstock.state.waiting import WAITING
from penstock.state.windows import COUNT_WINDOW, GLOBAL_WINDOW, TIME_WINDOW
from penstock.storage.entries import Entry

PICKLED: Mapping[str, Any] = {"kind": "pickled"}

_EXPIRING = " with time to live"
_STAMP_BYTES = 8
_SESSION = struct.Struct(">qqq?I")
_TIMERS = {
    "_event_timers": "event-time timers",
    "_processing_timers": "processing-time timers",
    "_cleaning": "event-time timers",
}
_WINDOWS, _OPEN_WINDOWS, _SESSIONS = "_windows", "_windows.open", "_sessions"
_ONE_VALUE = ("value", "reducing", "aggregating")
DESCRIBED = (*_ONE_VALUE, "list", "map")
"""The kinds that users declare by a descriptor."""


class StoredWindow(NamedTuple):
    """A window, or whatever else state is kept for beside its key. Times are in milliseconds;
    the contents of tumbling and sliding windows are stored by their start alone."""

    start: int | None = None
    end: int | None = None
    other: Any = None
    """Of a window that is no span of time: what it is."""

    def __repr__(self) -> str:
        if self.start is None:
            return str(self.other)
        return f"[{self.start}, {'…' if self.end is None else self.end})"


class StateRow(NamedTuple):
    """One row of a state. What a kind of state does not have is None."""

    key: Any = None
    window: StoredWindow | None = None
    map_key: Any = None
    value: Any = None
    time: int | None = None
    """When a timer fires, or until when a record waits."""
    last_used: Any = None
    """With a time to live: when the value was last used, of a list each element's time."""
    key_group: int | None = None
    subtask: int | None = None
    namespace: bytes | None = None
    """The window as it is stored, where that is asked for."""


Place = tuple[Any, ...]
"""Where a row stands: rows of a state come in the order of their places."""


@dataclass(frozen=True)
class StateLayout:
    """How one state of one operator is stored."""

    operator: str
    state: str
    kind: str
    """As users know it: value, list, map, …, timers, windows."""
    type: Mapping[str, Any] | None
    """Of a value, an element of a list, the values of a map; None if nothing is stored but keys."""
    form: str
    """Which of the forms below its entries have."""
    expiring: bool = False
    map_key_type: Mapping[str, Any] | None = None
    key_in_namespace: bool = False
    """Whether an entry begins with a time, after which the key comes."""

    @property
    def in_chunks(self) -> bool:
        """Whether one row may be several entries."""
        return self.form in ("list", "pane elements")

    @property
    def per_window(self) -> bool:
        return self.form in ("pane", "pane elements", "sessions") or self.state.startswith(
            ("window/", "trigger/", "_windows/")
        )

    def key_of(self, entry: Entry) -> bytes:
        return entry.namespace if self.key_in_namespace else entry.key

    def rows(
        self, entries: Iterable[Entry], open_pickles: bool = False
    ) -> Iterator[tuple[Place, StateRow]]:
        """The rows of live entries, which come in order."""
        return _FORMS[self.form](_Reading(self, open_pickles), entries)


def layout_of(
    operator: str, state: str, recorded: Mapping[str, Mapping[str, Any]]
) -> StateLayout | None:
    """How a state is stored, by what is recorded of the operator's; None if it is only there to
    find another."""
    if state == _OPEN_WINDOWS:
        return None
    known = recorded.get(state)
    kind = str(known["kind"]) if known is not None else ""
    plain = kind.removesuffix(_EXPIRING)
    if known is not None and plain in DESCRIBED:
        return _described(operator, state, plain, known["type"], kind.endswith(_EXPIRING))
    if state in _TIMERS:
        return StateLayout(operator, state, _TIMERS[state], None, "timers", key_in_namespace=True)
    if state == WAITING:
        return StateLayout(
            operator, state, "waiting records", PICKLED, "waiting", key_in_namespace=True
        )
    if kind == BY_TIME:
        return StateLayout(operator, state, kind, PICKLED, "by time")
    contents = recorded.get(_WINDOWS)
    if contents is not None and state == _WINDOWS:
        form = "pane elements" if kind.endswith("elements") else "pane"
        return StateLayout(
            operator, state, "windows", contents["type"], form, key_in_namespace=True
        )
    if contents is not None and state == _SESSIONS:
        return StateLayout(operator, state, "session windows", contents["type"], "sessions")
    return StateLayout(operator, state, "unknown", None, "raw")


def _described(
    operator: str, state: str, kind: str, described: Mapping[str, Any], expiring: bool
) -> StateLayout:
    if kind == "list":
        return StateLayout(operator, state, kind, described["element"], "list", expiring)
    if kind == "map":
        value, key = described["value"], described["key"]
        return StateLayout(operator, state, kind, value, "map", expiring, key)
    return StateLayout(operator, state, kind, described, "value", expiring)


def window_at(namespace: bytes) -> StoredWindow | None:
    """What a namespace stands for."""
    if not namespace:
        return None
    kind = namespace[:1]
    if kind == TIME_WINDOW:
        return StoredWindow(time_of(namespace[1:9]), time_of(namespace[9:]))
    if kind == GLOBAL_WINDOW:
        return StoredWindow(other="global")
    if kind == COUNT_WINDOW:
        return StoredWindow(other=f"count {int.from_bytes(namespace[1:], 'big', signed=True)}")
    return StoredWindow(other=Pickled(namespace[1:]))


class _Reading:
    """The functions that read the parts of one state."""

    def __init__(self, layout: StateLayout, open_pickles: bool) -> None:
        self.open_pickles = open_pickles
        described = layout.type
        self.load: Callable[[bytes], Any] = bytes
        if described is not None:
            self.load = stored_type(described, open_pickles).serializer()[1]
        self.expiring = layout.expiring

    def key(self, data: bytes) -> Any:
        return read_key(data, self.open_pickles)

    def value(self, raw: bytes) -> tuple[Any, int | None]:
        if not self.expiring:
            return self.load(raw), None
        return self.load(raw[_STAMP_BYTES:]), int.from_bytes(raw[:_STAMP_BYTES], "big")

    def elements(self, chunks: Iterable[bytes]) -> tuple[list[Any], list[Any] | None]:
        found = [self.value(data) for chunk in chunks for data in packed_elements(chunk)]
        return [value for value, _ in found], [at for _, at in found] if self.expiring else None


_Rows = Iterator[tuple[Place, StateRow]]


def _values(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for group, _, _, key, namespace, _, raw in entries:
        value, used = read.value(raw or b"")
        row = StateRow(read.key(key), window_at(namespace), None, value, None, used, group)
        yield (group, key, namespace), row


def _map(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    last, last_key = None, None
    for group, _, _, key, namespace, map_key, raw in entries:
        if key != last:
            last, last_key = key, read.key(key)
        value, used = read.value(raw or b"")
        inner = read.key(map_key)
        row = StateRow(last_key, window_at(namespace), inner, value, None, used, group)
        yield (group, key, namespace, map_key), row


def _at_one_key(entry: Entry) -> Place:
    return entry.key_group, entry.key, entry.namespace


def _list(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for place, chunks in groupby(entries, _at_one_key):
        group, key, namespace = place
        value, used = read.elements(chunk.value or b"" for chunk in chunks)
        yield place, StateRow(read.key(key), window_at(namespace), None, value, None, used, group)


def _pane(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for group, _, _, start, key, _, raw in entries:
        value = read.load(_content(raw or b""))
        window = StoredWindow(time_of(start))
        yield (group, start, key), StateRow(read.key(key), window, None, value, key_group=group)


def _pane_elements(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for place, chunks in groupby(entries, _at_one_key):
        group, start, key = place
        value, _ = read.elements(_content(chunk.value or b"") for chunk in chunks)
        window = StoredWindow(time_of(start))
        yield place, StateRow(read.key(key), window, None, value, key_group=group)


def _content(raw: bytes) -> bytes:
    """A window's content without the key before it: the namespace has it, too."""
    return raw[1:] if raw[0] == 0 else raw[5 + int.from_bytes(raw[1:5], "big") :]


def _sessions(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for group, _, _, key, _, _, raw in entries:
        read_key_once = read.key(key)
        for start, end, held in stored_sessions(raw or b""):
            window = StoredWindow(start, end)
            row = StateRow(read_key_once, window, None, read.load(held), key_group=group)
            yield (group, key, time_bytes(start)), row


def stored_sessions(raw: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and content of each session of a key."""
    at = 0
    while at < len(raw):
        start, end, _, _, length = _SESSION.unpack_from(raw, at)
        at += _SESSION.size + length
        yield start, end, raw[at - length : at]


def _timers(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for group, _, _, time, key, namespace, _ in entries:
        row = StateRow(read.key(key), window_at(namespace), time=time_of(time), key_group=group)
        yield (group, time, key, namespace), row


def _waiting(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    """A record is stored pickled, together with its key."""
    for group, _, _, time, key, place, raw in entries:
        stored = read.load(raw or b"")
        value = stored[1] if read.open_pickles else stored
        row = StateRow(read.key(key), None, None, value, time_of(time), key_group=group)
        yield (group, time, key, place), row


def _by_time(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    """All records of a time and key together: a list, pickled."""
    for group, _, _, key, _, time, raw in entries:
        value = read.load(raw or b"")
        row = StateRow(read.key(key), None, None, value, time_of(time), key_group=group)
        yield (group, key, time), row


def _raw(read: _Reading, entries: Iterable[Entry]) -> _Rows:
    for group, _, _, key, namespace, map_key, raw in entries:
        row = StateRow(key, None, map_key, raw, key_group=group)
        yield (group, key, namespace, map_key), row


_FORMS: dict[str, Callable[[_Reading, Iterable[Entry]], _Rows]] = {
    "value": _values,
    "map": _map,
    "list": _list,
    "pane": _pane,
    "pane elements": _pane_elements,
    "sessions": _sessions,
    "timers": _timers,
    "waiting": _waiting,
    "by time": _by_time,
    "raw": _raw,
}


def check_described(layout: StateLayout) -> None:
    """Refuse to change what is not declared by users: operators rely on more than the rows."""
    if layout.kind not in DESCRIBED:
        raise InvalidArgumentError.of(
            f"state {layout.state!r} of {layout.operator!r}",
            "value, list, map, reducing or aggregating state to be changed",
            layout.kind,
        )
