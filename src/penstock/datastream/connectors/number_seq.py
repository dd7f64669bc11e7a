"""A source of consecutive integers."""

from __future__ import annotations

import copy
from itertools import pairwise

from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
    StartFrom,
)
from penstock.errors import CheckpointMismatchError, InvalidArgumentError

__all__ = ["NumberSequenceSource", "even_ranges"]


def even_ranges(start: int, stop: int, parts: int) -> list[range]:
    """Cut `range(start, stop)` into at most `parts` contiguous, non-empty, near-equal ranges."""
    count = max(0, stop - start)
    parts = min(parts, count)
    bounds = [start + count * i // parts for i in range(parts + 1)] if parts else []
    return [range(a, b) for a, b in pairwise(bounds)]


class NumberSequenceSource(Source):
    """The integers from `start` to `end`, both included; in order within a split."""

    gives_timestamps = False

    def __init__(self, start: int, end: int) -> None:
        for name, value in (("start", start), ("end", end)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidArgumentError.of(f"{name} of a number sequence", "an int", value)
        if start > end:
            raise InvalidArgumentError.of(
                "end of a number sequence", f"at least start ({start})", end
            )
        self.start = start
        self.end = end
        self.first = start

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        ranges = even_ranges(self.start, self.end + 1, parallelism)
        # Cut from the start, wherever reading begins: a job goes on in the same cuts without it.
        return [
            Split(str(i), (r.start, r.stop), min(max(self.first, r.start), r.stop))
            for i, r in enumerate(ranges)
        ]

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        """The same cuts; with other bounds, positions would be in the wrong ones."""
        if [split.data for split in stored] != [split.data for split in current]:
            raise CheckpointMismatchError.other_source(
                f"a sequence from {self.start} to {self.end}", "keep the bounds"
            )
        return stored

    def starting_at(self, start: StartFrom) -> Source:
        """From this number on."""
        if start.at_position is None:
            raise self.cannot_start(start, "give a number")
        moved = copy.copy(self)
        moved.first = start.at_position
        return moved

    def create_reader(self, context: InitContext) -> SourceReader:
        return _RangeReader()


class _RangeReader(SourceReader):
    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        end = split.data[1]
        stop = min(end, position + max_records)
        return ReadResult(list(range(position, stop)), stop, finished=stop >= end)
