"""The splits of Python sources: made at every start, and fitted to those that positions are for.

A source may find more while the job runs. They are stored before anyone reads them, so that a
position in a manifest is always that of a known split.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import cloudpickle

from penstock.datastream.connectors.base import Split
from penstock.driver.user_code import user_code_of
from penstock.errors import (
    CheckpointCorruptError,
    InvalidArgumentError,
    InvalidProgramError,
    UnpicklableError,
)
from penstock.runtime.operators.sources import PythonSource, split_text
from penstock.runtime.physical import PhysicalOperator, PhysicalPlan, Vertex
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.filesystem import FileSystem
from penstock.storage.manifest import Manifest, SourceState

FoundSplits = Mapping[str, Mapping[str, tuple[int, str]]]
"""Source uid → id of a split found since the start → its number and the split as text."""


class _Cut(NamedTuple):
    """A source's splits, and the parallelism that they were first made for."""

    parallelism: int
    splits: tuple[Split, ...]


def with_splits(
    plan: PhysicalPlan, base: Manifest | None, fs: FileSystem, layout: CheckpointLayout
) -> tuple[PhysicalPlan, Manifest | None]:
    """The plan with its splits, and the base as those need it."""
    splits: dict[str, tuple[Split, ...]] = {}
    for vertex in plan.vertices:
        head = vertex.operators[0]
        if not isinstance(head.operator, PythonSource):
            continue
        path = _path(layout, vertex)
        # Without an epoch nothing has been read, so what an earlier start made binds nobody.
        stored = _read(fs, path) if base is not None else None
        cut = _cut(head, stored, vertex.parallelism)
        fs.write(path, _pickled(cut, head))
        splits[head.uid] = cut.splits
        if base is not None and stored is not None:
            base = _reopened(base, head.uid, stored.splits, cut.splits)
    return replace(plan, splits=splits), base


class SplitDiscovery:
    """Asks the sources of a plan that find further splits, each at its interval."""

    def __init__(self, plan: PhysicalPlan, fs: FileSystem, layout: CheckpointLayout) -> None:
        self._watched = [
            _Watched(vertex.operators[0], _path(layout, vertex), fs)
            for vertex in plan.vertices
            if getattr(vertex.operators[0].operator, "discovers", False)
        ]

    def look(self) -> FoundSplits:
        """All that were found since the start; those that are due look for more first."""
        for watched in self._watched:
            watched.look_if_due()
        return {watched.uid: watched.found for watched in self._watched}


class _Watched:
    """One source that is asked again."""

    def __init__(self, head: PhysicalOperator, path: str, fs: FileSystem) -> None:
        self.uid = head.uid
        self.found: dict[str, tuple[int, str]] = {}
        self._head = head
        self._path = path
        self._fs = fs
        cut = _read(fs, path)
        assert cut is not None
        self._cut = cut
        self._looked = time.monotonic()

    def look_if_due(self) -> None:
        source = self._head.operator.source
        now = time.monotonic()
        if now - self._looked < source.discovery_interval:
            return
        known = self._cut.splits
        with user_code_of(self._head):
            more = source.discover_splits(known, self._cut.parallelism)
            more = _checked(more, "discover_splits", known)
        self._looked = now
        if more:
            cut = _Cut(self._cut.parallelism, (*known, *more))
            self._fs.write(self._path, _pickled(cut, self._head))
            self._cut = cut
            for number, split in enumerate(more, len(known)):
                self.found[split.split_id] = (number, split_text(split))


def _path(layout: CheckpointLayout, vertex: Vertex) -> str:
    return os.path.join(layout.source(vertex.uid), "splits")


def _cut(head: PhysicalOperator, stored: _Cut | None, parallelism: int) -> _Cut:
    source = head.operator.source
    # Under the parallelism of the first start, so that the cuts of an unchanged source are equal.
    parallelism = parallelism if stored is None else stored.parallelism
    with user_code_of(head):
        splits = _checked(source.create_splits(parallelism), "create_splits")
        if stored is not None:
            splits = _checked(source.resume(list(stored.splits), list(splits)), "resume")
    return _Cut(parallelism, splits)


def _checked(made: Any, method: str, known: Iterable[Split] = ()) -> tuple[Split, ...]:
    what = f"the result of {method}()"
    if not isinstance(made, Iterable):
        raise InvalidArgumentError.of(what, "a list of Split", made)
    splits = tuple(made)
    ids = {split.split_id for split in known}
    for split in splits:
        if not isinstance(split, Split):
            raise InvalidArgumentError.of(f"each item of {what}", "a Split", split)
        if not isinstance(split.split_id, str):
            raise InvalidArgumentError.of("split_id", "a str", split.split_id)
        if split.split_id in ids:
            raise InvalidProgramError(
                f"{method}() gives two splits the id {split.split_id!r}; positions are kept by "
                "split id, so give each split its own"
            )
        ids.add(split.split_id)
    return splits


def _reopened(
    base: Manifest, uid: str, stored: tuple[Split, ...], now: tuple[Split, ...]
) -> Manifest:
    """A split that the source gives anew may have more to read, even if it was at its end."""
    if uid not in base.sources:
        return base
    kept = {split.split_id for split in now if any(split is before for before in stored)}
    positions = {
        split: (position, finished and split in kept)
        for split, (position, finished) in base.sources[uid].positions.items()
    }
    return replace(base, sources={**base.sources, uid: SourceState(positions)})


def _read(fs: FileSystem, path: str) -> _Cut | None:
    if not fs.exists(path):
        return None
    try:
        parallelism, splits = pickle.loads(fs.read(path))
    except Exception as error:
        raise CheckpointCorruptError.of(path, f"{type(error).__name__}: {error}") from error
    return _Cut(parallelism, splits)


def _pickled(cut: _Cut, head: PhysicalOperator) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(tuple(cut))
    except Exception as error:
        raise UnpicklableError.of(f"what {head.name!r} ({head.location}) reads", error) from error
    return data
