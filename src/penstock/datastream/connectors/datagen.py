"""A source that makes its records from their index."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
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
from penstock.errors import CheckpointMismatchError, InvalidArgumentError

__all__ = ["DataGeneratorSource", "GeneratorFunction"]


class GeneratorFunction(ABC):
    """Makes the record of an index. The same index must always give the same record."""

    def open(self, context: InitContext) -> None:  # noqa: B027 - a hook
        """Called once before the first record."""

    @abstractmethod
    def map(self, index: int) -> Any:
        """The record number `index`, counted from 0 over the whole source."""

    def close(self) -> None:  # noqa: B027 - a hook
        """Called after the last record."""


class DataGeneratorSource(Source):
    """`generator(index)` for index 0, 1, 2, …; `count` of them, or without end if it is None.

    `rate` limits the records per second over all subtasks. The pace is kept against the time of a
    split's first read, which is part of its position: after a pause the source catches up.
    Subtask i of n makes the records i, i + n, i + 2n, …, so that a rate-limited stream comes in
    index order, near enough, whatever the parallelism.
    """

    def __init__(
        self,
        generator: Callable[[int], Any] | GeneratorFunction,
        count: int | None = None,
        rate: float | None = None,
    ) -> None:
        if not callable(generator) and not isinstance(generator, GeneratorFunction):
            raise InvalidArgumentError.of(
                "the generator", "a callable of the index or a GeneratorFunction", generator
            )
        if count is not None and count < 0:
            raise InvalidArgumentError.of("count", "at least 0, or None for no end", count)
        if rate is not None and not rate > 0:
            raise InvalidArgumentError.of("rate", "greater than 0, or None for no limit", rate)
        self.generator = generator
        self.count = count
        self.rate = rate
        self.first = 0

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        parts = parallelism if self.count is None else min(parallelism, self.count)
        return [
            # The index from where reading begins is no part of the cut: a job goes on without it.
            Split(str(i), (i, parts), (i + parts * len(range(i, self.first, parts)), None))
            for i in range(parts)
        ]

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        """The same cuts; if there are more records now, those that were at their end go on."""
        if [split.data for split in stored] != [split.data for split in current]:
            raise CheckpointMismatchError.other_source(
                f"a generator of {self.count} records in {len(current)} splits", "keep the count"
            )
        return current

    def starting_at(self, start: StartFrom) -> Source:
        """From the record with this index on."""
        if start.at_position is None:
            raise self.cannot_start(start, "give the index of a record")
        moved = copy.copy(self)
        moved.first = start.at_position
        return moved

    def create_reader(self, context: InitContext) -> SourceReader:
        return _GeneratorReader(self, context)


_LONGEST_BACKLOG_SECONDS = 10


class _GeneratorReader(SourceReader):
    """A position is (next index, milliseconds at which the split was first read)."""

    def __init__(self, source: DataGeneratorSource, context: InitContext) -> None:
        self._source = source
        self._function = (
            source.generator if isinstance(source.generator, GeneratorFunction) else None
        )
        if self._function is not None:
            self._function.open(context)
            self._generate: Callable[[int], Any] = self._function.map
        elif callable(source.generator):
            self._generate = source.generator

    def read(self, split: Split, position: tuple[int, int | None], max_records: int) -> ReadResult:
        index, started_at = position
        first, step = split.data
        now = _now_millis()
        stop = index + max_records * step
        if self._source.rate is not None:
            made, rate = (index - first) // step, self._source.rate / step
            # As if those before the first had been made at this pace.
            started_at = now - int(made * 1000 / rate) if started_at is None else started_at
            started_at = _without_backlog(started_at, now, made, rate)
            stop = min(stop, first + _due(now - started_at, rate) * step)
        started_at = now if started_at is None else started_at
        if self._source.count is not None:
            stop = min(stop, self._source.count)
        indexes = range(index, max(index, stop), step)
        index += len(indexes) * step
        return ReadResult(
            [self._generate(i) for i in indexes],
            (index, started_at),
            finished=self._source.count is not None and index >= self._source.count,
        )

    def close(self) -> None:
        if self._function is not None:
            self._function.close()


def _without_backlog(started_at: int, now: int, made: int, rate: float) -> int:
    """A start so late that little is owed: a job that rested does not make up for it."""
    owed = _due(now - started_at, rate) - made
    if owed <= rate * _LONGEST_BACKLOG_SECONDS:
        return started_at
    return now - int(made * 1000 / rate) - _LONGEST_BACKLOG_SECONDS * 1000


def _due(elapsed_millis: int, rate: float) -> int:
    """How many records are due after some time; the first is due at once."""
    return int(max(0, elapsed_millis) * rate / 1000) + 1


def _now_millis() -> int:
    return time.time_ns() // 1_000_000
