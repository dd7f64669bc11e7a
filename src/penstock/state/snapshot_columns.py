"""The rows of a state by column: which columns there are, of which Arrow types.

``key`` (unless the state is an operator's), ``window_start`` and ``window_end`` in milliseconds,
and ``window`` for windows that are no span of time; ``map_key``; ``time`` of timers and waiting
records; ``value``; ``last_used`` with a time to live; ``subtask`` of operator state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.state.arrow_values import arrow_type, column
from penstock.state.redistribution import COPY, OWN
from penstock.state.snapshot_reader import (
    SOURCE_POSITIONS,
    keyed_layout,
    operator_states,
    part_entries,
    subtask_files,
    unknown_state,
)
from penstock.state.stored_keys import BYTES, MIXED, KeyType, common_type, common_type_of
from penstock.state.stored_states import PICKLED, StateLayout, StateRow
from penstock.storage.snapshot import Snapshot

STRING: Mapping[str, Any] = {"kind": "string"}
LONG: Mapping[str, Any] = {"kind": "long"}
_POSITION: Mapping[str, Any] = {
    "kind": "dataclass",
    "class": "",
    "fields": [
        {"name": "position", "type": PICKLED},
        {"name": "finished", "type": {"kind": "boolean"}},
    ],
}


@dataclass(frozen=True)
class _Column:
    name: str
    described: Mapping[str, Any]
    take: Callable[[StateRow], Any]


@dataclass(frozen=True)
class RowColumns:
    """Columns of a state's rows."""

    columns: tuple[_Column, ...]
    pickles_as_text: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field(c.name, arrow_type(c.described, self.pickles_as_text)) for c in self.columns]
        )

    def batch(self, rows: Sequence[StateRow]) -> pa.RecordBatch:
        arrays = [
            column(list(map(c.take, rows)), c.described, self.pickles_as_text) for c in self.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def with_namespace(self) -> RowColumns:
        """With what a window is stored as, too."""
        more = _Column("namespace", BYTES, lambda row: row.namespace)
        return replace(self, columns=(*self.columns, more))

    def flat(self) -> RowColumns:
        """With text in the place of all that has parts or is bytes."""
        return replace(self, columns=tuple(self._flat(c) for c in self.columns))

    def _flat(self, c: _Column) -> _Column:
        found = arrow_type(c.described, self.pickles_as_text)
        has_parts = pa.types.is_nested(found) or pa.types.is_binary(found)
        return replace(c, described=MIXED) if has_parts else c

    def as_text(self, *names: str) -> RowColumns:
        """With text in some columns, as `repr` gives it."""
        changed = [replace(c, described=MIXED) if c.name in names else c for c in self.columns]
        return replace(self, columns=tuple(changed))


def keyed_columns(
    layout: StateLayout, key_type: KeyType, map_key_type: KeyType, trust_pickle: bool
) -> RowColumns:
    found = [_Column("key", key_type, lambda row: row.key)]
    if layout.per_window or layout.form == "timers":
        found += [
            _Column("window_start", LONG, lambda row: row.window and row.window.start),
            _Column("window_end", LONG, lambda row: row.window and row.window.end),
            _Column("window", STRING, _other_window),
        ]
    if layout.form == "map":
        found.append(_Column("map_key", map_key_type, lambda row: row.map_key))
    if layout.form in ("timers", "waiting", "by time"):
        found.append(_Column("time", LONG, lambda row: row.time))
    if layout.type is not None:
        listed = {"kind": "list", "element": layout.type} if layout.in_chunks else layout.type
        found.append(_Column("value", listed, lambda row: row.value))
    if layout.form == "raw":
        found = [
            _Column("key", BYTES, lambda row: row.key),
            _Column("map_key", BYTES, lambda row: row.map_key),
            _Column("value", BYTES, lambda row: row.value),
        ]
    if layout.expiring:
        used = {"kind": "list", "element": LONG} if layout.in_chunks else LONG
        found.append(_Column("last_used", used, lambda row: row.last_used))
    return RowColumns(tuple(found), trust_pickle)


def _other_window(row: StateRow) -> str | None:
    window = row.window
    return None if window is None or window.other is None else str(window.other)


def columns_of(snapshot: Snapshot, operator: str, state: str, trust_pickle: bool) -> RowColumns:
    """The columns of a state, for which its keys are looked through once."""
    layout = keyed_layout(snapshot.manifest, operator, state)
    if layout is None:
        return _other_columns(snapshot, operator, state, trust_pickle)
    key_type, map_key_type = key_types(
        layout,
        (
            entry
            for part in subtask_files(snapshot.manifest, operator)
            for entry in part_entries(snapshot, part, layout)
        ),
    )
    return keyed_columns(layout, key_type, map_key_type, trust_pickle)


def key_types(layout: StateLayout, entries: Iterable[Any]) -> tuple[KeyType, KeyType]:
    """The types that keys and keys of maps have in common."""
    keys: set[bytes] = set()
    map_keys: set[bytes] = set()
    found: tuple[KeyType, KeyType] = common_type_of(()), common_type_of(())
    for entry in entries:
        keys.add(layout.key_of(entry))
        if layout.form == "map":
            map_keys.add(entry.map_key)
        if len(keys) + len(map_keys) >= 10_000:
            found = _with(found, keys, map_keys)
            keys.clear()
            map_keys.clear()
    return _with(found, keys, map_keys)


def _with(
    found: tuple[KeyType, KeyType], keys: Iterable[bytes], map_keys: Iterable[bytes]
) -> tuple[KeyType, KeyType]:
    return (
        common_type(found[0], common_type_of(keys)),
        common_type(found[1], common_type_of(map_keys)),
    )


def _other_columns(snapshot: Snapshot, operator: str, state: str, trust_pickle: bool) -> RowColumns:
    if state == SOURCE_POSITIONS:
        return RowColumns(
            (
                _Column("split", STRING, lambda row: row.map_key),
                _Column("value", _POSITION, lambda row: row.value),
            ),
            trust_pickle,
        )
    for uid, _, name, stored in operator_states(snapshot.manifest):
        if (uid, name) != (operator, state):
            continue
        if stored.rule == COPY:
            described = stored.type["type"]
            return RowColumns(
                (
                    _Column("map_key", described["key"], lambda row: row.map_key),
                    _Column("value", described["value"], lambda row: row.value),
                ),
                trust_pickle,
            )
        element = PICKLED if stored.rule == OWN else stored.type["type"]["element"]
        return RowColumns(
            (
                _Column("subtask", LONG, lambda row: row.subtask),
                _Column("value", element, lambda row: row.value),
            ),
            trust_pickle,
        )
    raise unknown_state(snapshot, operator, state)
