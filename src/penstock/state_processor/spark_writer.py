"""Savepoints made from DataFrames: state from scratch, or of another savepoint, changed."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's users know it

from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
)
from penstock.errors import InvalidArgumentError
from penstock.state.keyed_state import recorded_kind
from penstock.state.snapshot_reader import SubtaskFiles, keyed_layout, subtask_files
from penstock.state.stored_states import check_described
from penstock.state_processor.draft import Draft, Name
from penstock.state_processor.encoding import ENTRIES_DDL, Encoding
from penstock.state_processor.images import RESULT_DDL, Copies, Images, Kept, check_result
from penstock.state_processor.reading import ReadPart
from penstock.state_processor.sources import copy_sources
from penstock.state_processor.spark_checks import check_column, column_type
from penstock.state_processor.spark_savepoint import Savepoint
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import FileSystem, filesystem_for
from penstock.storage.manifest import ChainLink, Manifest, SubtaskState
from penstock.storage.sealing import seal
from penstock.storage.trust import is_trusted

_EXPIRING = "with time to live"


@dataclass(frozen=True)
class _NewState:
    frame: DataFrame
    encoding: Encoding


class SavepointWriter:
    """A savepoint in the making. Each method changes it and gives it back; `write` makes it."""

    def __init__(self, spark: SparkSession, draft: Draft, base: Savepoint | None) -> None:
        self._spark = spark
        self._draft = draft
        self._base = base
        self._states: dict[Name, _NewState] = {}

    @classmethod
    def new(
        cls, spark: SparkSession, *, max_parallelism: int = 128, parallelism: int = 1
    ) -> SavepointWriter:
        """A savepoint without state so far.

        A job that starts from it must have the same max parallelism, and may have any parallelism;
        `parallelism` is how many files are written at once.
        """
        return cls(spark, Draft.empty(parallelism, max_parallelism), None)

    @classmethod
    def from_existing(cls, savepoint: Savepoint) -> SavepointWriter:
        """A savepoint that begins as another, which stays as it is."""
        return cls(savepoint.spark, Draft.of(savepoint.snapshot.manifest), savepoint)

    # States

    def with_keyed_state(
        self,
        uid: str,
        descriptor: StateDescriptor,
        frame: DataFrame,
        *,
        key: str | Sequence[str] = "key",
        value: str = "value",
        map_key: str = "map_key",
    ) -> SavepointWriter:
        """A state from a DataFrame, in the place of one of that name if there is one.

        `key` is the column with what the program's `key_by` gives, or several, which make a tuple;
        a struct is a tuple, too. `value` is the value, of a list state an array, of a reducing or
        aggregating state the accumulator. A map state takes a row for each entry, with `map_key`.
        """
        what = f"state {descriptor.get_name()!r} of {uid!r}"
        described = descriptor.type_info.describe()
        self._check(frame, descriptor, value, map_key, what)
        kind = recorded_kind(descriptor)
        name = descriptor.get_name()
        vertex = self._draft.replace_state(uid, name, {"kind": kind, "type": described})
        columns = [_key_column(frame, key, what), F.col(value).alias("value")]
        if isinstance(descriptor, MapStateDescriptor):
            columns.append(F.col(map_key).alias("map_key"))
        state = self._draft.manifest.vertices[vertex]
        encoding = Encoding(
            uid,
            name,
            kind.removesuffix(f" {_EXPIRING}"),
            _inner_type(descriptor),
            state.max_parallelism,
            state.parallelism,
            int(time.time() * 1000) if kind.endswith(_EXPIRING) else None,
            map_key_type=described["key"] if isinstance(descriptor, MapStateDescriptor) else None,
        )
        self._states[uid, name] = _NewState(frame.select(*columns), encoding)
        return self

    def change(
        self, uid: str, state: str, change: Callable[[DataFrame], DataFrame]
    ) -> SavepointWriter:
        """Put what `change` makes of a state in its place.

        It gets the state as `Savepoint.read` gives it, and returns a DataFrame with the same
        columns: with rows changed, left out or added. Pickled values are bytes there and stay so.
        Keys that have no type in common are bytes, too, as they are stored.
        """
        base = self._based(f"there is no state {state!r} of {uid!r} to change")
        if (uid, state) in self._states:
            raise InvalidArgumentError(
                f"state {state!r} of {uid!r} was given before; change the DataFrame instead"
            )
        origin = self._draft.origins.get((uid, state))
        if origin is None:
            raise InvalidArgumentError(f"{uid!r} has no state {state!r} by key in {base.path}")
        layout = keyed_layout(base.snapshot.manifest, *origin)
        assert layout is not None
        check_described(layout)
        assert layout.type is not None
        reading = replace(base.reading(layout, open_pickles=False), for_change=True)
        before = base.frame_of(reading)
        after = change(before)
        if not isinstance(after, DataFrame):
            raise InvalidArgumentError.of(f"what changes {state!r}", "returning a DataFrame", after)
        _check_same_columns(before, after, f"state {state!r} of {uid!r}")
        described = self._draft.manifest.state_types[uid][state]
        vertex = self._draft.manifest.vertices[self._draft.replace_state(uid, state, described)]
        encoding = Encoding(
            uid,
            state,
            layout.kind,
            layout.type,
            vertex.max_parallelism,
            vertex.parallelism,
            int(time.time() * 1000) if layout.expiring else None,
            reading.key_type,
            reading.map_key_type,
            as_read=True,
            stored_keys=reading.stored_keys,
            stored_map_keys=reading.stored_map_keys,
        )
        self._states[uid, state] = _NewState(after.select(*before.columns), encoding)
        return self

    def remove_state(self, uid: str, state: str) -> SavepointWriter:
        """Leave out a state, of keys or of an operator."""
        if self._states.pop((uid, state), None) is not None:
            self._draft.origins.pop((uid, state), None)
        self._draft.remove_state(uid, state)
        return self

    # Operators and sources

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave out all state of an operator, and how far it has read if it is a source."""
        self._draft.remove_operator(uid)
        self._states = {name: new for name, new in self._states.items() if name[0] != uid}
        return self

    def rename_operator(self, old: str, new: str) -> SavepointWriter:
        """Let the operator with another uid have the state of one."""
        self._draft.rename_operator(old, new)
        self._states = {
            (new if uid == old else uid, state): _renamed(made, old, new)
            for (uid, state), made in self._states.items()
        }
        return self

    def reset_source(self, uid: str) -> SavepointWriter:
        """Let a source begin anew."""
        self._draft.reset_source(uid)
        return self

    def with_source_position(
        self, uid: str, split: str, position: Any, *, finished: bool = False
    ) -> SavepointWriter:
        """Let a source go on from another position in one of its splits."""
        self._draft.set_position(uid, split, position, finished)
        return self

    # Writing

    def write(self, path: str) -> Savepoint:
        """Write the savepoint into a new directory; if that fails, nothing is left of it."""
        fs, root = filesystem_for(path)
        if fs.list(root):
            raise InvalidArgumentError.of("the path of a new savepoint", "a new directory", path)
        try:
            self._write(fs, root)
        except BaseException:
            fs.delete_tree(root)
            raise
        return Savepoint.open(self._spark, path)

    def _write(self, fs: FileSystem, root: str) -> None:
        token = secrets.token_hex(6)
        manifest = replace(self._draft.manifest, created=int(time.time() * 1000))
        images = {
            vertex: self._images(root, vertex, manifest.epoch, token)
            for vertex in manifest.vertices
        }
        vertices = {
            vertex: replace(
                described,
                subtasks=tuple(
                    _subtask(subtask, images[vertex].get(index, ()), manifest.epoch, token)
                    for index, subtask in enumerate(described.subtasks)
                ),
            )
            for vertex, described in manifest.vertices.items()
        }
        self._copy_the_rest(fs, root, manifest)
        # What is pickled in another user's savepoint is so in this one, and still not ours.
        ours = self._base is None or is_trusted(self._base.snapshot)
        seal(fs, root, replace(manifest, vertices=vertices), signed=ours)

    def _images(
        self, root: str, vertex: str, epoch: int, token: str
    ) -> dict[int, tuple[FileInfo, ...]]:
        """The files of each subtask."""
        parts = self._stored_parts(vertex)
        described = self._draft.manifest.vertices[vertex]
        inside = described.operators
        if vertex not in self._draft.rewritten and all(_is_image(part, inside) for part in parts):
            self._copy([file for part in parts for file in part.files], root)
            return {part.subtask: part.files for part in parts}
        new = [made for (uid, _), made in self._states.items() if uid in inside]
        names = self._draft.state_names(vertex)
        frames = [self._encoded(made) for made in new]
        if parts and names:
            assert self._base is not None
            kept = Kept(
                self._base.snapshot.layout.root,
                tuple(ReadPart(part.files, part.key_groups) for part in parts),
                names,
                described.max_parallelism,
                described.parallelism,
            )
            numbers = self._spark.range(0, len(parts), 1, len(parts))
            frames.append(numbers.mapInArrow(kept.batches, ENTRIES_DDL))
        if not frames:
            return {}
        states = {*names.values(), *((m.encoding.operator, m.encoding.state) for m in new)}
        images = Images(root, epoch, vertex, token, tuple(sorted(states)))
        entries = reduce(DataFrame.unionAll, frames)
        written = (
            entries.repartitionById(described.parallelism, F.col("subtask"))
            .sortWithinPartitions("subtask", "packed")
            .mapInArrow(images.write, RESULT_DDL)
            .collect()
        )
        return _by_subtask(written)

    def _encoded(self, made: _NewState) -> DataFrame:
        return made.frame.mapInArrow(made.encoding.batches, ENTRIES_DDL)

    def _stored_parts(self, vertex: str) -> list[SubtaskFiles]:
        stored = self._draft.vertices.get(vertex)
        if self._base is None or stored is None:
            return []
        found = subtask_files(self._base.snapshot.manifest)
        return [part for part in found if part.vertex == stored]

    def _copy(self, files: Sequence[FileInfo], root: str) -> None:
        if not files:
            return
        assert self._base is not None
        copies = Copies(self._base.snapshot.layout.root, root, tuple(files))
        numbers = self._spark.range(0, len(files), 1, len(files))
        for row in numbers.mapInArrow(copies.run, RESULT_DDL).collect():
            check_result(json.loads(row.result))

    def _copy_the_rest(self, fs: FileSystem, root: str, manifest: Manifest) -> None:
        """Records in loops, splits of sources, and how far Spark has read its own."""
        if self._base is None:
            return
        self._copy([file for loop in manifest.loops.values() for file in loop.files], root)
        copy_sources(fs, self._base.snapshot, self._draft, root)

    def _based(self, problem: str) -> Savepoint:
        if self._base is None:
            raise InvalidArgumentError(f"{problem} in a new savepoint")
        return self._base

    def _check(
        self, frame: DataFrame, descriptor: StateDescriptor, value: str, map_key: str, what: str
    ) -> None:
        if not isinstance(descriptor, StateDescriptor):
            raise InvalidArgumentError.of("a state", "a descriptor of it", descriptor)
        if isinstance(descriptor, MapStateDescriptor):
            types = descriptor.key_type_info, descriptor.value_type_info
            for column, type_info in zip((map_key, value), types, strict=True):
                check_column(frame, column, type_info.describe(), repr(type_info), what)
            return
        check_column(
            frame, value, descriptor.type_info.describe(), repr(descriptor.type_info), what
        )


def _is_image(part: SubtaskFiles, operators: tuple[str, ...]) -> bool:
    """Whether files can be taken as they are: after another chaining, some hold what others own."""
    return part.merged and all(uid in operators for file in part.files for uid in file.operators)


def _inner_type(descriptor: StateDescriptor) -> Mapping[str, Any]:
    if isinstance(descriptor, ListStateDescriptor):
        return descriptor.elem_type_info.describe()
    if isinstance(descriptor, MapStateDescriptor):
        return descriptor.value_type_info.describe()
    return descriptor.type_info.describe()


def _key_column(frame: DataFrame, key: str | Sequence[str], what: str) -> Any:
    names = [key] if isinstance(key, str) else list(key)
    for name in names:
        column_type(frame, name, f"the key of {what}")
    if isinstance(key, str):
        return F.col(key).alias("key")
    return F.struct(*names).alias("key")


def _renamed(made: _NewState, old: str, new: str) -> _NewState:
    if made.encoding.operator != old:
        return made
    return replace(made, encoding=replace(made.encoding, operator=new))


def _check_same_columns(before: DataFrame, after: DataFrame, what: str) -> None:
    for field in before.schema.fields:
        found = column_type(after, field.name, what)
        if found != field.dataType and not isinstance(found, type(field.dataType)):
            raise InvalidArgumentError(
                f"column {field.name!r} of {what} was {field.dataType.simpleString()} and has "
                f"become {found.simpleString()}; cast it back"
            )


def _by_subtask(written: Sequence[Any]) -> dict[int, tuple[FileInfo, ...]]:
    found: dict[int, list[FileInfo]] = {}
    for row in sorted(written, key=lambda row: (row.subtask, row.part)):
        result = json.loads(row.result)
        check_result(result)
        found.setdefault(row.subtask, []).append(FileInfo.from_json(result))
    return {subtask: tuple(files) for subtask, files in found.items()}


def _subtask(
    subtask: SubtaskState, files: tuple[FileInfo, ...], epoch: int, token: str
) -> SubtaskState:
    chain = (ChainLink(f"{epoch}-{token}", files),) if files else ()
    return replace(subtask, token="", chain=chain)
