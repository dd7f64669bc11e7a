"""Sources that are read one after the other, as one: history first, then what is new.

Each split of ours wraps one of the source whose turn it is. Whose turn it is follows from the
splits that are known, so it is in the checkpoint with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.datastream._checkpointed_functions import (
    CheckpointedFunction,
    CheckpointListener,
    ListCheckpointed,
)
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.errors import (
    CheckpointMismatchError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)

__all__ = ["HybridSource", "HybridSourceBuilder"]


class _Part(NamedTuple):
    """What a split of a HybridSource holds."""

    turn: int
    """The number of the source."""
    parallelism: int
    """What the source was cut for."""
    split: Split | None
    """The source's own; None, if it had none when its turn came."""


class HybridSource(Source):
    """Several sources, each read to its end before the next one is asked for its splits.

    ``HybridSource.builder(first).add_source(second).build()``. All but the last one must be
    bounded. The watermark strategy given to `from_source` is that of all of them.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self.gives_timestamps = any(source.gives_timestamps for source in sources)

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        return HybridSourceBuilder(first_source)

    @property
    def boundedness(self) -> Boundedness:
        return self._sources[-1].boundedness

    # Splits, on the driver

    def create_splits(self, parallelism: int) -> list[Split]:
        return self._made(0, parallelism)

    def has_more(self, known: Sequence[Split]) -> bool:
        turn = _turn(known)
        return turn + 1 < len(self._sources) or self._sources[turn].has_more(_own(known, turn))

    def next_splits(self, known: Sequence[Split], parallelism: int) -> list[Split]:
        turn = _turn(known)
        source, own = self._sources[turn], _own(known, turn)
        if source.has_more(own):
            return _wrapped(source.next_splits(own, parallelism), turn, parallelism)
        return self._made(turn + 1, parallelism)

    @property
    def splits_at_once(self) -> int | None:
        known = [source.splits_at_once for source in self._sources]
        return min((most for most in known if most is not None), default=None)

    def in_order(self, split: Split) -> bool:
        part: _Part = split.data
        return part.split is not None and self._sources[part.turn].in_order(part.split)

    @property
    def discovery_interval(self) -> float | None:
        return self._sources[-1].discovery_interval

    def discover_splits(self, known: Sequence[Split], parallelism: int) -> list[Split]:
        turn = _turn(known)
        if turn + 1 < len(self._sources):
            return []
        found = self._sources[turn].discover_splits(_own(known, turn), parallelism)
        return _wrapped(found, turn, parallelism)

    def current_splits(self, stored: Sequence[Split], parallelism: int) -> list[Split]:
        """Only those of the source whose turn it is: of the others nothing more is read, and
        perhaps they are not there any more."""
        if not all(isinstance(split.data, _Part) for split in stored):
            raise self._other("keep the source")
        turn = _turn(stored)
        if turn >= len(self._sources):
            raise self._other("keep all sources up to the one that is being read")
        cut_for = next(s.data.parallelism for s in stored if s.data.turn == turn)
        source, own = self._sources[turn], _own(stored, turn)
        return _wrapped(source.current_splits(own, cut_for), turn, cut_for)

    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        turn = _turn(stored)
        own = {id(split.data.split): split for split in stored if split.data.turn == turn}
        now = self._sources[turn].resume(_own(stored, turn), _own(current, turn))
        cut_for = next(split.data.parallelism for split in own.values())
        kept = [split for split in stored if split.data.turn < turn or split.data.split is None]
        # What the source gives back as it was must stay the same object: only so it stays finished.
        return [*kept, *(own.get(id(s)) or _wrapped([s], turn, cut_for)[0] for s in now)]

    def _made(self, turn: int, parallelism: int) -> list[Split]:
        splits = _wrapped(self._sources[turn].create_splits(parallelism), turn, parallelism)
        # So that its turn is known to have come.
        return splits or [Split(f"{turn}", _Part(turn, parallelism, None))]

    def _other(self, keep: str) -> CheckpointMismatchError:
        return CheckpointMismatchError.other_source(
            f"a HybridSource of {len(self._sources)} sources", keep
        )

    # Records, in the task

    def create_reader(self, context: InitContext) -> SourceReader:
        return _HybridReader(self._sources, context)


class HybridSourceBuilder:
    """The sources of a `HybridSource`, in their order."""

    def __init__(self, first_source: Source) -> None:
        self._sources: tuple[Source, ...] = ()
        self.add_source(first_source)

    def add_source(self, source: Source) -> HybridSourceBuilder:
        """Read this one when those before have been read to their end."""
        if not isinstance(source, Source):
            raise InvalidArgumentError.of("source", "a Source instance", source)
        if self._sources and self._sources[-1].boundedness is not Boundedness.BOUNDED:
            raise InvalidArgumentError(
                f"source {len(self._sources)} of a HybridSource never ends, so that nothing can "
                "follow it; make it bounded, or add it last"
            )
        self._sources = (*self._sources, source)
        return self

    def build(self) -> HybridSource:
        return HybridSource(self._sources)


class _HybridReader(SourceReader):
    """A reader of the source whose turn it is, made for its first split."""

    def __init__(self, sources: tuple[Source, ...], context: InitContext) -> None:
        self._sources = sources
        self._context = context
        self._reader: tuple[int, SourceReader] | None = None
        self._begun: dict[str, int] = {}
        """The splits that have been read and not to their end, with the turn of their source."""

    def read(self, split: Split, position: Any, max_records: int) -> ReadResult:
        part: _Part = split.data
        if part.split is None:
            return ReadResult([], position, finished=True)
        if any(turn < part.turn for turn in self._begun.values()):
            return ReadResult([], position)  # in batch mode all splits are known at once
        reader = self._reader_of(part.turn)
        result = reader.read(part.split, position, max_records)
        self.shape = reader.shape
        if result.finished:
            self._begun.pop(split.split_id, None)
        else:
            self._begun[split.split_id] = part.turn
        return result

    def _reader_of(self, turn: int) -> SourceReader:
        if self._reader is None or self._reader[0] != turn:
            self.close()
            self._reader = (turn, _plain(self._sources[turn].create_reader(self._context)))
        return self._reader[1]

    def close(self) -> None:
        if self._reader is not None:
            (_, reader), self._reader = self._reader, None
            reader.close()


def _plain(reader: SourceReader) -> SourceReader:
    for kind in (CheckpointedFunction, CheckpointListener, ListCheckpointed):
        if isinstance(reader, kind):
            raise UnsupportedFeatureError.of(
                f"{type(reader).__name__}, a reader that is a {kind.__name__}, in a HybridSource",
                "keep what it needs in the positions that it returns",
            )
    return reader


def _turn(known: Sequence[Split]) -> int:
    """The number of the source whose turn it is."""
    turns: list[int] = [split.data.turn for split in known]
    return max(turns)


def _own(known: Sequence[Split], turn: int) -> list[Split]:
    """The splits of a source as it made them."""
    parts = (split.data for split in known if split.data.turn == turn)
    return [part.split for part in parts if part.split is not None]


def _wrapped(splits: Sequence[Split], turn: int, parallelism: int) -> list[Split]:
    return [
        Split(f"{turn}/{split.split_id}", _Part(turn, parallelism, split), split.position)
        for split in splits
    ]
