"""HybridSource by itself: its turns, what it asks the sources for, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.datastream import CheckpointListener
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.connectors.hybrid_source import HybridSource, HybridSourceBuilder
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

CONTEXT = InitContext("job", "source", 0, 1, 0, "token")


def ids(splits: list[Split]) -> list[str]:
    return [split.split_id for split in splits]


def in_turn(*sources: Any) -> HybridSource:
    builder = HybridSource.builder(sources[0])
    for source in sources[1:]:
        builder = builder.add_source(source)
    return builder.build()


# Building


def test_the_last_one_decides_how_it_ends() -> None:
    bounded, endless = NumberSequenceSource(1, 2), DataGeneratorSource(str)
    assert in_turn(bounded, bounded).boundedness is Boundedness.BOUNDED
    assert in_turn(bounded, endless).boundedness is Boundedness.CONTINUOUS_UNBOUNDED


def test_nothing_follows_what_never_ends() -> None:
    builder = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(DataGeneratorSource(str))
    with pytest.raises(InvalidArgumentError, match="source 2 of a HybridSource never ends"):
        builder.add_source(NumberSequenceSource(1, 2))


@pytest.mark.parametrize("make", [HybridSource.builder, HybridSourceBuilder])
def test_only_sources(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="source must be a Source instance, got list"):
        make([1, 2])


def test_a_builder_may_be_used_further() -> None:
    builder = HybridSource.builder(CollectionSource([1]))
    one = builder.build()
    two = builder.add_source(CollectionSource([2])).build()
    assert not one.has_more(one.create_splits(1))
    assert two.has_more(two.create_splits(1))


@pytest.mark.parametrize("given", [True, False])
def test_timestamps_if_one_of_them_gives_some(given: bool) -> None:
    other = CollectionSource([1]) if given else NumberSequenceSource(1, 2)
    assert in_turn(NumberSequenceSource(1, 2), other).gives_timestamps is given


# Turns


def test_turns_follow_from_the_splits_that_are_known() -> None:
    source = in_turn(NumberSequenceSource(1, 9), CollectionSource([]), NumberSequenceSource(1, 9))
    known = source.create_splits(2)
    assert ids(known) == ["0/0", "0/1"]
    assert [split.position for split in known] == [1, 5]
    assert source.has_more(known)
    known += source.next_splits(known, 2)
    assert ids(known)[2:] == ["1"]  # it has none, and has had its turn
    assert source.has_more(known)
    known += source.next_splits(known, 3)
    assert ids(known)[3:] == ["2/0", "2/1", "2/2"]
    assert not source.has_more(known)


def test_a_job_goes_on_with_the_source_whose_turn_it_is() -> None:
    """The first is not asked; the second says what is new, and what is as it was."""
    first = in_turn(NumberSequenceSource(1, 9), CollectionSource([1, 2, 3]))
    stored = first.create_splits(1)
    stored += first.next_splits(stored, 2)

    now = in_turn(Over(), CollectionSource([1, 2, 3, 4]))
    resumed = now.resume(stored, now.current_splits(stored, 1))
    assert resumed[0] is stored[0]
    assert [(s.split_id, s.data.split.data) for s in resumed[1:]] == [
        ("1/0", [1, 3]),
        ("1/1", [2, 4]),
    ]
    same = in_turn(Over(), Keeping([1, 2, 3]))
    resumed = same.resume(stored, same.current_splits(stored, 1))
    assert all(a is b for a, b in zip(resumed, stored, strict=True))


class Over(CollectionSource):
    def __init__(self) -> None:
        super().__init__([])

    def create_splits(self, parallelism: int) -> list[Split]:
        raise AssertionError("its turn is over")


class Keeping(CollectionSource):
    def resume(self, stored: list[Split], current: list[Split]) -> list[Split]:
        return stored


# Reading


class Noted(CollectionSource):
    """Its reader notes when it is made and closed."""

    def __init__(self, name: str, notes: list[str]) -> None:
        super().__init__([name])
        self._name = name
        self._notes = notes

    def create_reader(self, context: InitContext) -> SourceReader:
        self._notes.append(f"+{self._name}")
        reader = super().create_reader(context)
        reader.close = lambda: self._notes.append(f"-{self._name}")  # type: ignore[method-assign]
        return reader


def test_one_reader_at_a_time() -> None:
    notes: list[str] = []
    source = in_turn(Noted("a", notes), Noted("b", notes))
    known = source.create_splits(1)
    reader = source.create_reader(CONTEXT)
    assert notes == []
    assert reader.read(known[0], 0, 5) == ReadResult(["a"], 1, finished=True)
    assert reader.read(source.next_splits(known, 1)[0], 0, 5).records == ["b"]
    assert notes == ["+a", "-a", "+b"]
    reader.close()
    reader.close()
    assert notes == ["+a", "-a", "+b", "-b"]


class Listening(SourceReader, CheckpointListener):
    def read(self, split: Split, position: Any, max_records: int) -> ReadResult: ...

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None: ...


class Heard(CollectionSource):
    def create_reader(self, context: InitContext) -> SourceReader:
        return Listening()


def test_readers_that_take_part_in_checkpoints_are_refused() -> None:
    source = in_turn(Heard([1]))
    (split,) = source.create_splits(1)
    with pytest.raises(UnsupportedFeatureError, match="a reader that is a CheckpointListener"):
        source.create_reader(CONTEXT).read(split, 0, 1)
