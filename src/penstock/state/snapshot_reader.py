"""The states of a savepoint or a retained checkpoint, and their rows, in plain Python.

Needs neither Spark nor the program: types are those that were recorded. Unpickles only if asked to,
since unpickling runs code. In memory is a batch of each file, whatever the size of the state.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.state.key_groups import key_group_of, key_group_range
from penstock.state.keys import encode_key
from penstock.state.redistribution import COPY, OWN, StoredState, kept_by
from penstock.state.stored_states import Place, StateLayout, StateRow, layout_of
from penstock.state.stored_values import Pickled, stored_type, type_text
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import Manifest
from penstock.storage.merging import live_entries
from penstock.storage.runs import sorted_runs
from penstock.storage.snapshot import Snapshot
from penstock.storage.table_file import read_columns

SOURCE_POSITIONS = "_positions"
"""The name under which the positions of a source are found here."""
_OWN_STATE = "_operator"
_ANY = object()


@dataclass(frozen=True)
class StateInfo:
    """One state of one operator."""

    operator: str
    """The operator's uid."""
    state: str
    kind: str
    type: str
    """As text; empty where there is none, as for timers."""
    entries: int
    """As many rows as `rows_of` gives."""
    bytes: int
    """Of stored keys and values, before compression."""
    expiring: bool = False
    """Whether it has a time to live."""


@dataclass(frozen=True)
class SubtaskFiles:
    """What holds the keyed state of one subtask."""

    vertex: str
    subtask: int
    key_groups: tuple[int, int]
    files: tuple[FileInfo, ...]

    @property
    def merged(self) -> bool:
        """Whether each live entry is in the files once, and nothing else is."""
        lo, hi = self.key_groups
        return len(sorted_runs(self.files)) <= 1 and all(
            file.kind == "image"
            and not file.clipped
            and lo <= file.key_groups[0]
            and file.key_groups[1] <= hi
            for file in self.files
        )


def subtask_files(manifest: Manifest, operator: str | None = None) -> list[SubtaskFiles]:
    """The files of each subtask, of all vertices or of the one with an operator, in the order of
    key groups."""
    found = []
    for vertex, state in manifest.vertices.items():
        if operator is not None and not _holds(manifest, vertex, operator):
            continue
        for index, subtask in enumerate(state.subtasks):
            mine = key_group_range(index, state.max_parallelism, state.parallelism)
            files = tuple(file for link in subtask.chain for file in link.files)
            if files:
                found.append(SubtaskFiles(vertex, index, mine, files))
    return found


def _holds(manifest: Manifest, vertex: str, operator: str) -> bool:
    """An operator's state lies with its vertex. Files may hold more: after a rescale or another
    chaining they are those of former vertices, whose other operators are elsewhere now."""
    return operator in manifest.vertices[vertex].operators


def states_of(snapshot: Snapshot) -> list[StateInfo]:
    """All states, by operator and name."""
    found = [*_keyed_states(snapshot), *_operator_states(snapshot.manifest)]
    found += _positions(snapshot.manifest)
    return sorted(found, key=lambda info: (info.operator, info.state, info.kind))


@dataclass
class _Tally:
    entries: int = 0
    bytes: int = 0
    last: Any = field(default=None, repr=False)


def _keyed_states(snapshot: Snapshot) -> Iterator[StateInfo]:
    tallies: dict[tuple[str, str], _Tally] = {}
    layouts: dict[tuple[str, str], StateLayout | None] = {}
    for part in subtask_files(snapshot.manifest):
        operators = snapshot.manifest.vertices[part.vertex].operators
        for group, operator, state, key, namespace, map_key, raw in _all_entries(snapshot, part):
            name = operator, state
            if name not in layouts:
                layouts[name] = layout_in(snapshot.manifest, operator, state)
            layout = layouts[name]
            if layout is None or operator not in operators:
                continue
            tally = tallies.get(name)
            if tally is None:
                tally = tallies[name] = _Tally()
            tally.bytes += len(key) + len(namespace) + len(map_key) + len(raw or b"")
            if layout.form == "sessions":
                entry = Entry(group, operator, state, key, namespace, map_key, raw)
                tally.entries += sum(1 for _ in layout.rows([entry]))
            elif not layout.in_chunks or tally.last != (key, namespace):
                tally.last = key, namespace
                tally.entries += 1
    for name, tally in tallies.items():
        layout = layouts[name]
        assert layout is not None
        yield StateInfo(
            *name,
            layout.kind,
            _text_of(layout),
            tally.entries,
            tally.bytes,
            layout.expiring,
        )


def _text_of(layout: StateLayout) -> str:
    value = type_text(layout.type)
    if layout.map_key_type is not None:
        return f"Map[{type_text(layout.map_key_type)}, {value}]"
    return f"List[{value}]" if layout.in_chunks else value


def _all_entries(snapshot: Snapshot, part: SubtaskFiles) -> Iterable[tuple[Any, ...]]:
    """Where nothing is to be merged, rows as they are: several times as quick."""
    root = snapshot.layout.root
    if not part.merged:
        return live_entries(snapshot.fs, root, part.files, part.key_groups)
    return (
        row
        for file in part.files
        for columns in read_columns(snapshot.fs, root, file)
        for row in zip(*columns, strict=True)
    )


def layout_in(manifest: Manifest, operator: str, state: str) -> StateLayout | None:
    return layout_of(operator, state, manifest.state_types.get(operator, {}))


# What is kept beside keyed state


def operator_states(manifest: Manifest) -> Iterator[tuple[str, int, str, StoredState]]:
    """Uid, subtask, name and content of all that operators keep beside keyed state."""
    for vertex in manifest.vertices.values():
        for index, subtask in enumerate(vertex.subtasks):
            for uid in subtask.operators:
                for name, state in kept_by(subtask, uid).items():
                    yield uid, index, name, state


def _operator_states(manifest: Manifest) -> Iterator[StateInfo]:
    found: dict[tuple[str, str], list[StoredState]] = {}
    for uid, _, name, state in operator_states(manifest):
        found.setdefault((uid, name), []).append(state)
    for (uid, name), states in found.items():
        first = states[0]
        counted = states[:1] if first.rule == COPY else states
        elements = [element for state in counted for element in state.elements]
        yield StateInfo(
            uid,
            name,
            _operator_kind(first),
            type_text(first.type.get("type")),
            len(elements) // (2 if first.rule == COPY else 1),
            sum(map(len, elements)),
        )


def _operator_kind(state: StoredState) -> str:
    return "operator's own" if state.rule == OWN else str(state.type["kind"])


def _positions(manifest: Manifest) -> Iterator[StateInfo]:
    for uid, source in manifest.sources.items():
        size = sum(len(base64.b64decode(text)) for text, _ in source.positions.values())
        kind = "source positions"
        yield StateInfo(uid, SOURCE_POSITIONS, kind, "", len(source.positions), size)


# Rows


def rows_of(
    snapshot: Snapshot,
    operator: str,
    state: str,
    *,
    key: Any = _ANY,
    trust_pickle: bool = False,
) -> Iterator[StateRow]:
    """The rows of a state, of all keys or of one.

    `trust_pickle` opens what is pickled, which then needs the program's classes and runs their
    code; otherwise it is given as `Pickled`.
    """
    manifest = snapshot.manifest
    layout = keyed_layout(manifest, operator, state)
    if layout is not None:
        wanted = None if key is _ANY else encode_key(key)
        return (row for _, row in keyed_rows(snapshot, layout, wanted, trust_pickle))
    if key is not _ANY:
        raise InvalidArgumentError(f"state {state!r} of {operator!r} is not kept by key")
    if state == SOURCE_POSITIONS and operator in manifest.sources:
        return position_rows(manifest, operator, trust_pickle)
    held = [
        (subtask, stored)
        for uid, subtask, name, stored in operator_states(manifest)
        if (uid, name) == (operator, state)
    ]
    if not held:
        raise unknown_state(snapshot, operator, state)
    return _operator_rows(held, trust_pickle)


def keyed_layout(manifest: Manifest, operator: str, state: str) -> StateLayout | None:
    """How a state is stored by key; None if there is none of that name."""
    for part in subtask_files(manifest, operator):
        if any((operator, state) in file.states for file in part.files):
            return layout_in(manifest, operator, state)
    recorded = manifest.state_types.get(operator, {})
    if state in recorded:  # declared, and empty; names of operator states have their kind behind
        found = layout_of(operator, state, recorded)
        return None if found is None or found.form == "raw" else found
    return None


def keyed_rows(
    snapshot: Snapshot, layout: StateLayout, key: bytes | None, trust_pickle: bool
) -> Iterator[tuple[Place, StateRow]]:
    """The rows of a keyed state with their places, in order; `key` is as it is stored."""
    for part in subtask_files(snapshot.manifest, layout.operator):
        entries = part_entries(snapshot, part, layout)
        if key is not None:
            vertex = snapshot.manifest.vertices[part.vertex]
            group = key_group_of(key, vertex.max_parallelism)
            if not part.key_groups[0] <= group <= part.key_groups[1]:
                continue
            entries = _of_key(entries, layout, key)
        yield from layout.rows(entries, trust_pickle)


def part_entries(snapshot: Snapshot, part: SubtaskFiles, layout: StateLayout) -> Iterator[Entry]:
    """The live entries of one state in one subtask."""
    only = layout.operator, layout.state
    return live_entries(snapshot.fs, snapshot.layout.root, part.files, part.key_groups, only)


def _of_key(entries: Iterable[Entry], layout: StateLayout, key: bytes) -> Iterator[Entry]:
    return (entry for entry in entries if layout.key_of(entry) == key)


def position_rows(manifest: Manifest, operator: str, trust_pickle: bool) -> Iterator[StateRow]:
    """The splits of a source: position and whether it has been read to its end."""
    for split, (text, finished) in manifest.sources[operator].positions.items():
        data = base64.b64decode(text)
        position = pickle.loads(data) if trust_pickle else Pickled(data)
        yield StateRow(map_key=split, value={"position": position, "finished": finished})


def _operator_rows(
    held: Sequence[tuple[int, StoredState]], trust_pickle: bool
) -> Iterator[StateRow]:
    first = held[0][1]
    if first.rule == COPY:  # alike on all subtasks
        described = first.type["type"]
        load_key = _loading(described["key"], trust_pickle)
        load = _loading(described["value"], trust_pickle)
        elements = first.elements
        for key, value in zip(elements[::2], elements[1::2], strict=True):
            yield StateRow(map_key=load_key(key), value=load(value))
        return
    if first.rule == OWN:
        load = pickle.loads if trust_pickle else Pickled
    else:
        load = _loading(first.type["type"]["element"], trust_pickle)
    for subtask, state in held:
        for element in state.elements:
            yield StateRow(value=load(element), subtask=subtask)


def _loading(described: Mapping[str, Any], trust_pickle: bool) -> Callable[[bytes], Any]:
    return stored_type(described, trust_pickle).serializer()[1]


def unknown_state(snapshot: Snapshot, operator: str, state: str) -> InvalidArgumentError:
    names = sorted({(info.operator, info.state) for info in states_of(snapshot)})
    operators = sorted({name for name, _ in names})
    if operator not in operators:
        near = get_close_matches(operator, operators, 1)
        there = f"there are {', '.join(operators)}" if operators else "there is no state in it"
        hint = f"did you mean {near[0]!r}?" if near else there
        return InvalidArgumentError(f"{snapshot.path} has no state of {operator!r}; {hint}")
    found = [name for uid, name in names if uid == operator]
    return InvalidArgumentError(
        f"{operator!r} has no state {state!r} in {snapshot.path}; it has {', '.join(found)}"
    )
