"""The splits of Python sources: made at every start, and fitted to those that positions are for.

A source may find more while the job runs. They are stored before anyone reads them, so that a
position in a manifest is always that of a known split.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Mapping
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
        if stored is None and base is not None and head.uid in base.sources:
            # Made anew, they might be others than those that the positions are for.
            raise CheckpointCorruptError.of(path, "the file is missing")
        cut = _cut(head, stored, vertex.parallelism)
        if plan.settings.batch:
            cut = _whole(head, cut)
        fs.write(path, _pickled(cut, head))
        splits[head.uid] = cut.splits
        if base is not None and stored is not None:
            base = _reopened(base, head.uid, stored.splits, cut.splits)
    return replace(plan, splits=splits), base


class SplitDiscovery:
    """Asks the sources of a plan that have further splits: each at its interval, or when it has
    been read as far as it is known."""

    def __init__(self, plan: PhysicalPlan, fs: FileSystem, layout: CheckpointLayout) -> None:
        self._watched = [
            _Watched(vertex, _path(layout, vertex), fs)
            for vertex in plan.vertices
            if _is_watched(vertex.operators[0], plan)
        ]

    def look(self, is_read: Callable[[str, str], bool]) -> FoundSplits:
        """All that were found since the start; those that are due look for more first.

        `is_read` tells by source and split whether it has been read to its end.
        """
        for watched in self._watched:
            watched.look_if_due(is_read)
        return self.found()

    def found(self) -> FoundSplits:
        """All that were found since the start."""
        return {watched.uid: watched.found for watched in self._watched}

    def more_to_come(self) -> tuple[str, ...]:
        """The sources that have more when all that is known of them has been read."""
        return tuple(watched.uid for watched in self._watched if watched.has_more)


class _Watched:
    """One source that is asked again."""

    def __init__(self, vertex: Vertex, path: str, fs: FileSystem) -> None:
        head = vertex.operators[0]
        self.uid = head.uid
        self.found: dict[str, tuple[int, str]] = {}
        self._head = head
        self._parallelism = vertex.parallelism
        self._path = path
        self._fs = fs
        cut = _read(fs, path)
        assert cut is not None
        self._cut = cut
        self._looked = time.monotonic()
        self.has_more = _has_more(head, cut.splits)

    def look_if_due(self, is_read: Callable[[str, str], bool]) -> None:
        if self._head.operator.discovers:
            self._look_at_intervals()
        if self.has_more and all(is_read(self.uid, s.split_id) for s in self._cut.splits):
            self._add(_next(self._head, self._cut.splits, self._parallelism))

    def _look_at_intervals(self) -> None:
        source = self._head.operator.source
        now = time.monotonic()
        if now - self._looked < source.discovery_interval:
            return
        known = self._cut.splits
        with user_code_of(self._head):
            more = source.discover_splits(known, self._cut.parallelism)
            more = _checked(more, "discover_splits", known)
        self._looked = now
        self._add(more)

    def _add(self, more: tuple[Split, ...]) -> None:
        if not more:
            return
        known = self._cut.splits
        cut = _Cut(self._cut.parallelism, (*known, *more))
        self._fs.write(self._path, _pickled(cut, self._head))
        self._cut = cut
        self.has_more = _has_more(self._head, cut.splits)
        for number, split in enumerate(more, len(known)):
            self.found[split.split_id] = (number, split_text(split))


def _is_watched(head: PhysicalOperator, plan: PhysicalPlan) -> bool:
    if not isinstance(head.operator, PythonSource):
        return False
    return head.operator.discovers or _has_more(head, plan.splits[head.uid])


def _has_more(head: PhysicalOperator, known: tuple[Split, ...]) -> bool:
    with user_code_of(head):
        return bool(head.operator.source.has_more(known))


def _next(head: PhysicalOperator, known: tuple[Split, ...], parallelism: int) -> tuple[Split, ...]:
    with user_code_of(head):
        more = head.operator.source.next_splits(known, parallelism)
        return _checked(more, "next_splits", known)


def _path(layout: CheckpointLayout, vertex: Vertex) -> str:
    return layout.splits(vertex.uid)


def _cut(head: PhysicalOperator, stored: _Cut | None, parallelism: int) -> _Cut:
    source = head.operator.source
    # Under the parallelism of the first start, so that the cuts of an unchanged source are equal.
    parallelism = parallelism if stored is None else stored.parallelism
    with user_code_of(head):
        if stored is None:
            return _Cut(parallelism, _checked(source.create_splits(parallelism), "create_splits"))
        made = source.current_splits(stored.splits, parallelism)
        current = _checked(made, "create_splits")
        splits = _checked(source.resume(list(stored.splits), list(current)), "resume")
    return _Cut(parallelism, splits)


def _whole(head: PhysicalOperator, cut: _Cut) -> _Cut:
    """With all that is to come: one epoch reads it."""
    while _has_more(head, cut.splits):
        more = _next(head, cut.splits, cut.parallelism)
        if not more:
            raise InvalidProgramError(
                f"source {head.name!r} ({head.location}) has more, and next_splits() gives none; "
                "in BATCH mode all splits must be there at the start"
            )
        cut = _Cut(cut.parallelism, (*cut.splits, *more))
    return cut


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
