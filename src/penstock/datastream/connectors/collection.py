"""A source of values given in the program."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
    StartFrom,
)
from penstock.errors import CheckpointMismatchError

__all__ = ["CollectionSource"]


class CollectionSource(Source):
    """The values of a collection, dealt out to the splits in turn; in order within a split."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)
        self.first = 0

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        parts = min(parallelism, len(self.values))
        # Those before the first are in the splits too, so that positions count from the same value
        # wherever a job once began.
        return [
            Split(str(i), self.values[i::parts], len(range(i, self.first, parts)))
            for i in range(parts)
        ]

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        """The values as the program has them now: a mistake in them may have been put right."""
        if not all(isinstance(split.data, list) for split in stored):
            raise CheckpointMismatchError.other_source("a collection", "keep the source")
        return current

    def starting_at(self, start: StartFrom) -> Source:
        """From the value with this index on."""
        if start.at_position is None:
            raise self.cannot_start(start, "give the index of a value")
        moved = copy.copy(self)
        moved.first = min(start.at_position, len(self.values))
        return moved

    def create_reader(self, context: InitContext) -> SourceReader:
        return _ListReader()


class _ListReader(SourceReader):
    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        records = split.data[position : position + max_records]
        position += len(records)
        return ReadResult(records, position, finished=position >= len(split.data))
