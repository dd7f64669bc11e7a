"""The state of one subtask: what the base has of it, keyed state over that, and what is written."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import CheckpointError, CheckpointUnwritableError
from penstock.runtime.codec import dump
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.physical import JobSettings, Vertex
from penstock.runtime.stores import base_manifest, spill_store, store_at
from penstock.state.backend import KeyScope, StateBase
from penstock.state.key_groups import key_group_range
from penstock.state.keyed_state import KeyedState
from penstock.state.redistribution import StoredStates, kept_by
from penstock.storage.checkpoint_layout import segment_path
from penstock.storage.crash_points import reach
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import filesystem_for
from penstock.storage.manifest import SubtaskState, VertexState
from penstock.storage.store import Store
from penstock.storage.table_file import write_table_file


class TaskState:
    """Epochs go `begin`, then changes and now and then `make_room`, then `store`."""

    def __init__(
        self,
        settings: JobSettings,
        vertex: Vertex,
        subtask: int,
        scope: KeyScope,
        order: EpochOrder,
        keyed: bool,
    ) -> None:
        self.order = order
        """The one being worked on, or that was last."""
        self._settings = settings
        self._vertex = vertex
        self._subtask = subtask
        self._scope = scope
        self._head = vertex.operators[0].uid
        self._token = ""
        self._rebuilt = 0
        self._restored_bytes = 0
        self._segments: list[FileInfo] = []
        self._parts = 0
        """Of the epoch's changes of state that have been dealt with."""
        self.keyed_state = self._make_keyed_state(self._head) if keyed else None

    # Life of an epoch

    def begin(self, order: EpochOrder, token: str) -> None:
        self.order = order
        self._token = token
        self._segments = []
        self._parts = 0
        self._follow(order)

    def _follow(self, order: EpochOrder) -> None:
        """What other subtasks have found declared otherwise than it is stored, this one may not
        declare before its next record."""
        for state, pickled in order.changed_types.get(self._head, {}).items():
            assert self.keyed_state is not None
            self.keyed_state.declared.follow(state, *pickle.loads(base64.b64decode(pickled)))

    def make_room(self) -> None:
        """If more has changed than memory shall hold, write that part of the segment now."""
        if self.keyed_state is not None and self.keyed_state.overflowing():
            for part in self.keyed_state.spill():
                self._write(part)

    def store(self, acknowledgement: Acknowledgement) -> None:
        """Write the epoch's changes, and tell of them."""
        if self.keyed_state is not None:
            self._write_segment(acknowledgement, self.keyed_state)
            self.keyed_state.end_epoch()
        # Also what an instance read when it was made, before its first epoch.
        acknowledgement.rebuilt_rows, self._rebuilt = self._rebuilt, 0
        acknowledgement.restored_bytes, self._restored_bytes = self._restored_bytes, 0

    def close(self) -> None:
        if self.keyed_state is not None:
            self.keyed_state.end_epoch()

    def _write_segment(self, acknowledgement: Acknowledgement, keyed_state: KeyedState) -> None:
        reach("task.before_segment")
        for part in keyed_state.in_parts(keyed_state.rewritten()):
            self._write(part)
            reach("task.rewriting")
        for part in keyed_state.in_parts(keyed_state.snapshot()):
            self._write(part)
        acknowledgement.state_types.setdefault(self._head, {}).update(keyed_state.types())
        if changed := keyed_state.declared.changed():
            types = {name: dump(pair) for name, pair in changed.items()}
            acknowledgement.changed_types[self._head] = types
        acknowledgement.files = [info.to_json() for info in self._segments]
        reach("task.after_segment")

    def _write(self, entries: list[Entry]) -> None:
        if entries:
            part, self._parts = self._parts, self._parts + 1
            if self._settings.batch:
                return  # nothing goes on from the only epoch
            fs, root = filesystem_for(self._settings.root)
            path = segment_path(
                self.order.epoch, self._vertex.uid, self._subtask, self._token, part
            )
            try:
                self._segments.append(write_table_file(fs, root, path, entries, kind="segment"))
            except CheckpointError:
                raise
            except OSError as error:
                raise CheckpointUnwritableError.at(path, error) from error

    # What the base has

    def base_subtask(self) -> SubtaskState | None:
        vertex = self._base_vertex()
        return None if vertex is None else vertex.subtasks[self._subtask]

    def restored(self, uid: str) -> StoredStates:
        """What an operator kept beside keyed state."""
        base = self.base_subtask()
        return {} if base is None else kept_by(base, uid)

    def restored_everywhere(self, uid: str) -> Sequence[StoredStates]:
        """The same of all subtasks."""
        base = self._base_vertex()
        return () if base is None else [kept_by(s, uid) for s in base.subtasks]

    def _base_vertex(self) -> VertexState | None:
        if self.order.base is None:
            return None
        manifest = base_manifest(self._settings, self.order.base)
        return manifest.vertices.get(self._vertex.uid)

    def _recorded_types(self, uid: str) -> Mapping[str, Any]:
        """The types of an operator's states as the base has them."""
        if self.order.base is None:
            return {}
        return base_manifest(self._settings, self.order.base).state_types.get(uid, {})

    def _make_keyed_state(self, uid: str) -> KeyedState:
        vertex = self._vertex
        key_groups = key_group_range(self._subtask, vertex.max_parallelism, vertex.parallelism)

        def open_at_base() -> Store:
            store, caught_up = store_at(
                self._settings, vertex.uid, self._subtask, self.base_subtask(), {uid}, key_groups
            )
            self._rebuilt += caught_up.rows
            self._restored_bytes += caught_up.bytes
            return store

        return KeyedState(
            self._scope,
            StateBase(
                uid,
                vertex.max_parallelism,
                open_at_base,
                lambda: spill_store(self._settings, vertex.uid, self._subtask),
            ),
            key_groups,
            now=lambda: self.order.clock,
            chunk_number=lambda: self.order.epoch << 16 | self._parts,
            keep=self._settings.cache_entries,
            memory=self._settings.cache_memory,
            recorded=lambda: self._recorded_types(uid),
        )
