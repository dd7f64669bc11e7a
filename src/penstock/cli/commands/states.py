"""Looks into the state of savepoints and checkpoints: lists, shows, exports, compares.

Pickled values are opened only in what this user wrote, or if asked to: opening runs code. They need
the program's modules then; where those are missing, values are shown unopened.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from penstock.cli.exit_codes import OK
from penstock.cli.output import as_cell, in_bytes, print_json, print_table, waiting
from penstock.errors import InvalidArgumentError
from penstock.state import snapshot_diff, snapshot_export
from penstock.state.snapshot_reader import rows_of, states_of
from penstock.state.stored_states import StateRow
from penstock.state.stored_values import Pickled
from penstock.storage.snapshot import Snapshot, open_snapshot
from penstock.storage.trust import is_trusted

T = TypeVar("T")

_SHOWN = ("key", "window", "map_key", "value", "time", "last_used", "subtask")
_NOT_OPENED = (ImportError, AttributeError)
_LONGEST_CELL = 200


def list_states(arguments: argparse.Namespace) -> int:
    snapshot = open_snapshot(arguments.path)
    with waiting(f"Reading {arguments.path} …", arguments.json):
        states = states_of(snapshot)
    if arguments.json:
        found = [dataclasses.asdict(state) for state in states]
        print_json({"path": snapshot.path, "states": found})
        return OK
    rows = [
        (state.operator, state.state, state.kind, state.type, state.entries, in_bytes(state.bytes))
        for state in states
    ]
    columns = ("operator", "state", "kind", "type", "entries", "size")
    print_table(columns, rows, "There is no state in it.")
    return OK


def show(arguments: argparse.Namespace) -> int:
    snapshot = open_snapshot(arguments.path)

    def read(trust: bool) -> tuple[list[StateRow], bool]:
        return _limited(_rows(snapshot, arguments, trust), arguments.limit)

    rows, more = _opened(read, [snapshot], arguments.trust_pickle)
    if arguments.json:
        shown = [_document(row) for row in rows]
        print_json({**_named(snapshot, arguments), "rows": shown, "more": more})
        return OK
    of_key = "" if arguments.key is None else f" of key {arguments.key}"
    _print_rows(rows, f"It has no entries{of_key}.")
    _say_more(more, arguments.limit)
    return OK


def export(arguments: argparse.Namespace) -> int:
    snapshot = open_snapshot(arguments.path)

    def write(trust: bool) -> int:
        return snapshot_export.export(
            snapshot, arguments.operator, arguments.state, arguments.output, trust_pickle=trust
        )

    with waiting(f"Writing {arguments.output} …", arguments.json):
        count = _opened(write, [snapshot], arguments.trust_pickle, look=False)
    if arguments.json:
        print_json({**_named(snapshot, arguments), "file": arguments.output, "rows": count})
    else:
        print(f"{count:,} rows written to {arguments.output}")
    return OK


def diff(arguments: argparse.Namespace) -> int:
    old, new = open_snapshot(arguments.old), open_snapshot(arguments.new)
    if arguments.operator is not None and arguments.state is None:
        raise InvalidArgumentError("give OPERATOR and STATE, or neither to compare all states")
    if arguments.operator is not None:
        return _print_changes(old, new, arguments)
    with waiting("Comparing …", arguments.json):
        found = snapshot_diff.diff(old, new)
    if arguments.json:
        states = [dataclasses.asdict(state) for state in found]
        print_json({"old": old.path, "new": new.path, "states": states})
        return OK
    columns = ("operator", "state", "kind", "added", "removed", "changed", "same")
    print_table(columns, [dataclasses.astuple(state) for state in found], "Neither has state.")
    return OK


def _print_changes(old: Snapshot, new: Snapshot, arguments: argparse.Namespace) -> int:
    def read(trust: bool) -> tuple[list[snapshot_diff.Change], bool]:
        changes = snapshot_diff.changes(
            old, new, arguments.operator, arguments.state, trust_pickle=trust
        )
        return _limited(changes, arguments.limit)

    changes, more = _opened(read, [old, new], arguments.trust_pickle)
    if arguments.json:
        shown = [
            {
                "how": change.how,
                "before": None if change.before is None else _document(change.before),
                "after": None if change.after is None else _document(change.after),
            }
            for change in changes
        ]
        names = {"operator": arguments.operator, "state": arguments.state}
        print_json({"old": old.path, "new": new.path, **names, "changes": shown, "more": more})
        return OK
    rows = []
    for change in changes:
        row = change.after or change.before or StateRow()
        values = [None if one is None else one.value for one in (change.before, change.after)]
        where = [part for part in (row.key, row.window, row.map_key) if part is not None]
        rows.append((change.how, " ".join(map(_cell, where)), *map(_cell, values)))
    print_table(("", "key", "before", "after"), rows, "They are alike.")
    _say_more(more, arguments.limit)
    return OK


# Reading


def _rows(snapshot: Snapshot, arguments: argparse.Namespace, trust: bool) -> Iterator[StateRow]:
    def read(**key: Any) -> Iterator[StateRow]:
        return rows_of(snapshot, arguments.operator, arguments.state, trust_pickle=trust, **key)

    if arguments.key is None:
        return read()
    found = list(read(key=_key(arguments.key)))
    # 7 may be a number, or a text that nobody would think of quoting.
    return iter(found or list(read(key=arguments.key)))


def _key(text: str) -> Any:
    try:
        return _hashable(json.loads(text))
    except ValueError:
        return text


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _limited(found: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """The first ones, and whether there are more."""
    if limit <= 0:
        return list(found), False
    rows = list(islice(found, limit + 1))
    return rows[:limit], len(rows) > limit


def _opened(
    read: Callable[[bool], T], snapshots: list[Snapshot], asked_for: bool, look: bool = True
) -> T:
    """What `read` gives, with pickled values opened if that may be, and can be.

    With `look` it is read unopened first: whether a large savepoint may be trusted takes long to
    find out, and most have nothing to open.
    """
    if asked_for:
        return read(True)
    if look:
        found = read(False)
        if "<pickled, " not in repr(found):
            return found
    if not all(map(is_trusted, snapshots)):
        return found if look else read(False)
    try:
        return read(True)
    except _NOT_OPENED as error:
        print(
            f"penstock: pickled values are left unopened, since the program's modules are not "
            f"found: {error}; name their directory in PYTHONPATH",
            file=sys.stderr,
        )
        return found if look else read(False)


# Showing


def _named(snapshot: Snapshot, arguments: argparse.Namespace) -> dict[str, Any]:
    return {"path": snapshot.path, "operator": arguments.operator, "state": arguments.state}


def _print_rows(rows: list[StateRow], nothing: str) -> None:
    columns = [name for name in _SHOWN if any(getattr(row, name) is not None for row in rows)]
    cells = [[_cell(getattr(row, name)) for name in columns] for row in rows]
    names = [name.replace("_", " ") for name in columns]
    print_table(names, cells, nothing)


def _say_more(more: bool, limit: int) -> None:
    if more:
        print(f"(the first {limit:,}; --limit 0 shows all)", file=sys.stderr)


def _cell(value: Any) -> str:
    text = as_cell(value) if value is None or isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _document(row: StateRow) -> dict[str, Any]:
    """What a row has, under its names."""
    return {name: _plain(getattr(row, name)) for name in _SHOWN if getattr(row, name) is not None}


def _plain(value: Any) -> Any:
    """As JSON can have it; what has no form there is shown as Python shows it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    return repr(value) if isinstance(value, Pickled) else str(value)
