"""A savepoint as it will be: its manifest, and where the state in it comes from. Pure."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from penstock.driver.seeding import without_sources
from penstock.errors import InvalidArgumentError
from penstock.plan.translate import vertex_uid
from penstock.state.key_groups import UPPER_BOUND
from penstock.state.redistribution import as_text, kept_by, packed
from penstock.state.snapshot_reader import subtask_files
from penstock.storage.manifest import Manifest, SourceState, SubtaskState, VertexState

Name = tuple[str, str]
"""An operator's uid and the name of one of its states."""


@dataclass
class Draft:
    """Begins as a snapshot, or empty. Operators are called by the uids that they will have."""

    manifest: Manifest
    parallelism: int
    max_parallelism: int
    origins: dict[Name, Name] = field(default_factory=dict)
    """Each keyed state that is kept → what it is called in the snapshot."""
    vertices: dict[str, str] = field(default_factory=dict)
    """Each vertex that is kept → what it is called there."""
    rewritten: set[str] = field(default_factory=set)
    """The vertices whose keyed state changes."""
    removed_sources: set[str] = field(default_factory=set)
    """Vertices whose sources begin anew, as they are called there."""

    @classmethod
    def empty(cls, parallelism: int, max_parallelism: int) -> Draft:
        if not 1 <= max_parallelism <= UPPER_BOUND:
            raise InvalidArgumentError.of("max_parallelism", f"1 to {UPPER_BOUND}", max_parallelism)
        if not 1 <= parallelism <= max_parallelism:
            raise InvalidArgumentError.of(
                "parallelism", f"1 to max_parallelism, {max_parallelism}", parallelism
            )
        manifest = Manifest(
            job_id="state-processor",
            job_name="state processor",
            epoch=1,
            base=None,
            batch=None,
            offsets=None,
            created=int(time.time() * 1000),
            vertices={},
            savepoint=True,
        )
        return cls(manifest, parallelism, max_parallelism)

    @classmethod
    def of(cls, manifest: Manifest) -> Draft:
        origins = {
            name: name
            for part in subtask_files(manifest)
            for file in part.files
            for name in file.states
            if name[0] in manifest.vertices[part.vertex].operators
        }
        first = next(iter(manifest.vertices.values()), None)
        made = cls(
            replace(
                manifest,
                savepoint=True,
                committables={},
                final=False,
                drained=False,
                base=None,
                origin=None,
            ),
            first.parallelism if first else 1,
            first.max_parallelism if first else 128,
            origins,
            {vertex: vertex for vertex in manifest.vertices},
        )
        if manifest.final:  # its time has come to an end, which is not so for who goes on
            made._change_subtasks(lambda subtask: replace(subtask, watermark=None))
        return made

    # Operators

    def vertex_of(self, uid: str) -> str | None:
        for vertex, state in self.manifest.vertices.items():
            if uid in state.operators:
                return vertex
        return None

    def vertex_for(self, uid: str) -> str:
        """The vertex of an operator, which is made if it is new."""
        found = self.vertex_of(uid)
        if found is not None:
            return found
        made = VertexState(
            (uid,), self.parallelism, self.max_parallelism, (SubtaskState(""),) * self.parallelism
        )
        vertex = vertex_uid(uid)
        self.manifest = replace(self.manifest, vertices={**self.manifest.vertices, vertex: made})
        return vertex

    def state_names(self, vertex: str) -> dict[Name, Name]:
        """The keyed states of a vertex that are kept: as they are stored → as they will be."""
        operators = self.manifest.vertices[vertex].operators
        return {old: new for new, old in self.origins.items() if new[0] in operators}

    def remove_operator(self, uid: str) -> None:
        vertex = self._known(uid)
        self._forget_source(uid, vertex)
        self._change_vertex(vertex, lambda operators: (o for o in operators if o != uid))
        self._change_kept(lambda kept: {u: text for u, text in kept.items() if u != uid})
        if any(name[0] == uid for name in self.origins):
            self.rewritten.add(vertex)
        self.origins = {new: old for new, old in self.origins.items() if new[0] != uid}
        manifest = self.manifest
        self.manifest = replace(
            manifest,
            state_types=_without(manifest.state_types, uid),
            loops=_without(manifest.loops, uid),
            listeners=tuple(u for u in manifest.listeners if u != uid),
            vertices={v: state for v, state in manifest.vertices.items() if state.operators},
        )

    def rename_operator(self, old: str, new: str) -> None:
        vertex = self._known(old)
        if self.vertex_of(new) is not None:
            raise InvalidArgumentError(f"there is an operator {new!r} already; remove it first")
        if old in self.manifest.loops:
            raise InvalidArgumentError(
                f"operator {old!r} is the head of a loop with records in it, which are sent to it "
                "by name; let the loop run empty before the savepoint is made"
            )
        if any(name[0] == old for name in self.origins):
            self.rewritten.add(vertex)
        rename = {old: new}
        self._change_vertex(vertex, lambda operators: (rename.get(o, o) for o in operators))
        self._change_kept(lambda kept: _renamed(kept, rename))
        self.origins = {
            (rename.get(uid, uid), state): origin for (uid, state), origin in self.origins.items()
        }
        if vertex == vertex_uid(old):
            self._rename_vertex(vertex, vertex_uid(new))
        manifest = self.manifest
        self.manifest = replace(
            manifest,
            state_types=_renamed(manifest.state_types, rename),
            sources=_renamed(manifest.sources, rename),
            rows_read=_renamed(manifest.rows_read, rename),
            spark_sources=tuple(
                replace(source, uid=rename.get(source.uid, source.uid))
                for source in manifest.spark_sources
            ),
            listeners=tuple(rename.get(uid, uid) for uid in manifest.listeners),
        )

    def _rename_vertex(self, old: str, new: str) -> None:
        """A vertex is called as its first operator is."""
        self.manifest = replace(
            self.manifest, vertices=_renamed(self.manifest.vertices, {old: new})
        )
        self.vertices = _renamed(self.vertices, {old: new})
        if old in self.rewritten:
            self.rewritten.remove(old)
            self.rewritten.add(new)

    # States

    def remove_state(self, uid: str, state: str) -> None:
        vertex = self._known(uid)
        types = dict(self.manifest.state_types.get(uid, {}))
        keyed = (uid, state) in self.origins
        if keyed:
            # Windows have a second table, which finds the first.
            for name in ((uid, state), (uid, f"{state}.open")):
                self.origins.pop(name, None)
            self.rewritten.add(vertex)
        elif not self._remove_operator_state(uid, state) and state not in types:
            raise InvalidArgumentError(f"{uid!r} has no state {state!r}")
        kept = {
            name: described
            for name, described in types.items()
            if name != state and (keyed or not name.startswith(f"{state} ("))
        }
        self.manifest = replace(self.manifest, state_types={**self.manifest.state_types, uid: kept})

    def _remove_operator_state(self, uid: str, state: str) -> bool:
        found = False
        vertices = {}
        for vertex, described in self.manifest.vertices.items():
            subtasks = []
            for subtask in described.subtasks:
                states = kept_by(subtask, uid)
                kept = dict(subtask.operators)
                if states.pop(state, None) is not None:
                    found = True
                    data = packed(states)
                    kept.pop(uid)
                    if data is not None:
                        kept[uid] = as_text(data)
                subtasks.append(replace(subtask, operators=kept))
            vertices[vertex] = replace(described, subtasks=tuple(subtasks))
        self.manifest = replace(self.manifest, vertices=vertices)
        return found

    def replace_state(self, uid: str, state: str, described: Mapping[str, Any]) -> str:
        """A keyed state whose entries come from elsewhere; the vertex that it is in."""
        vertex = self.vertex_for(uid)
        self.origins.pop((uid, state), None)
        self.rewritten.add(vertex)
        types = {**self.manifest.state_types.get(uid, {}), state: dict(described)}
        self.manifest = replace(
            self.manifest, state_types={**self.manifest.state_types, uid: types}
        )
        return vertex

    # Sources

    def reset_source(self, uid: str) -> None:
        known = {*self.manifest.sources, *(s.uid for s in self.manifest.spark_sources)}
        if uid not in known:
            raise InvalidArgumentError(
                f"{uid!r} is no source with positions; there are "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        self._forget_source(uid, self.vertex_of(uid))

    def _forget_source(self, uid: str, vertex: str | None) -> None:
        if vertex is not None and self.manifest.vertices[vertex].operators[:1] == (uid,):
            self.removed_sources.add(self.vertices.get(vertex, vertex))
        self.manifest = without_sources(self.manifest, frozenset({uid}))

    def set_position(self, uid: str, split: str, position: Any, finished: bool) -> None:
        known = self.manifest.sources.get(uid)
        if known is None or split not in known.positions:
            splits = [] if known is None else sorted(known.positions)
            raise InvalidArgumentError(
                f"source {uid!r} has no split {split!r}; it has {', '.join(splits) or 'none'}"
            )
        text = base64.b64encode(pickle.dumps(position)).decode()
        positions = {**known.positions, split: (text, finished)}
        self.manifest = replace(
            self.manifest, sources={**self.manifest.sources, uid: SourceState(positions)}
        )

    # The parts of a manifest

    def _known(self, uid: str) -> str:
        vertex = self.vertex_of(uid)
        if vertex is None:
            names = [u for state in self.manifest.vertices.values() for u in state.operators]
            near = get_close_matches(uid, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise InvalidArgumentError(f"there is no operator {uid!r}; {hint}")
        return vertex

    def _change_vertex(
        self, vertex: str, change: Callable[[tuple[str, ...]], Iterable[str]]
    ) -> None:
        described = self.manifest.vertices[vertex]
        changed = replace(described, operators=tuple(change(described.operators)))
        self.manifest = replace(self.manifest, vertices={**self.manifest.vertices, vertex: changed})

    def _change_kept(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Change what operators keep beside keyed state."""
        self._change_subtasks(lambda subtask: replace(subtask, operators=change(subtask.operators)))

    def _change_subtasks(self, change: Callable[[SubtaskState], SubtaskState]) -> None:
        vertices = {
            vertex: replace(described, subtasks=tuple(map(change, described.subtasks)))
            for vertex, described in self.manifest.vertices.items()
        }
        self.manifest = replace(self.manifest, vertices=vertices)


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: value for k, value in mapping.items() if k != key}


def _renamed(mapping: Mapping[str, Any], rename: Mapping[str, str]) -> dict[str, Any]:
    return {rename.get(key, key): value for key, value in mapping.items()}
