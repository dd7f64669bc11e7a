"""Sources read to the end, in pieces, and again from a position in the middle."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.connectors import DeliveryGuarantee, Sink, Source, datagen
from penstock.datastream.connectors.base import Boundedness, InitContext, SinkWriter, Split
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource, even_ranges
from penstock.errors import InvalidArgumentError

CONTEXT = InitContext("job", "source", 0, 1, 1, "token")


def read_split(source: Source, split: Split, position: Any, piece: int) -> list[Any]:
    """All records from `position` on; each call is made by a new reader in a new process."""
    records: list[Any] = []
    finished = False
    while not finished:
        reader = pickle.loads(pickle.dumps(source)).create_reader(CONTEXT)
        result = reader.read(pickle.loads(pickle.dumps(split)), position, piece)
        assert len(result.records) <= piece
        assert result.records or result.finished
        records += result.records
        position, finished = pickle.loads(pickle.dumps(result.position)), result.finished
        reader.close()
    return records


def read_all(source: Source, parallelism: int, piece: int) -> list[list[Any]]:
    splits = source.create_splits(parallelism)
    assert len({split.split_id for split in splits}) == len(splits) <= parallelism
    return [read_split(source, split, split.position, piece) for split in splits]


@given(st.integers(-100, 100), st.integers(0, 200), st.integers(1, 20))
def test_ranges_are_contiguous_and_near_equal(start: int, count: int, parts: int) -> None:
    ranges = even_ranges(start, start + count, parts)
    assert [n for r in ranges for n in r] == list(range(start, start + count))
    assert len(ranges) == min(parts, count)
    assert not ranges or max(map(len, ranges)) - min(map(len, ranges)) <= 1


@given(st.integers(-50, 50), st.integers(0, 100), st.integers(1, 8), st.integers(1, 9))
def test_number_sequence(start: int, more: int, parallelism: int, piece: int) -> None:
    parts = read_all(NumberSequenceSource(start, start + more), parallelism, piece)
    assert [n for part in parts for n in part] == list(range(start, start + more + 1))


@given(st.lists(st.integers()), st.integers(1, 8), st.integers(1, 9))
def test_collection(values: list[int], parallelism: int, piece: int) -> None:
    parts = read_all(CollectionSource(values), parallelism, piece)
    assert parts == [values[i :: len(parts)] for i in range(len(parts))]
    assert sum(map(len, parts)) == len(values)


@given(st.integers(0, 60), st.integers(1, 8), st.integers(1, 9))
def test_generator(count: int, parallelism: int, piece: int) -> None:
    parts = read_all(DataGeneratorSource(str, count), parallelism, piece)
    assert sorted(int(n) for part in parts for n in part) == list(range(count))


@pytest.mark.parametrize(
    "source",
    [
        NumberSequenceSource(1, 100),
        CollectionSource([f"value {i}" for i in range(100)]),
        DataGeneratorSource(hex, 100),
    ],
)
def test_reading_resumes_at_a_position(source: Source) -> None:
    split = source.create_splits(2)[1]
    whole = read_split(source, split, split.position, 1000)
    first = source.create_reader(CONTEXT).read(split, split.position, 17)
    assert not first.finished
    assert first.records == whole[:17]
    for piece in (1, 5, 1000):
        assert read_split(source, split, first.position, piece) == whole[17:]


def test_nothing_to_read() -> None:
    assert CollectionSource([]).create_splits(4) == []
    assert DataGeneratorSource(str, 0).create_splits(4) == []


def test_boundedness() -> None:
    assert NumberSequenceSource(0, 1).boundedness is Boundedness.BOUNDED
    assert CollectionSource([]).boundedness is Boundedness.BOUNDED
    assert DataGeneratorSource(str, 5).boundedness is Boundedness.BOUNDED
    assert DataGeneratorSource(str).boundedness is Boundedness.CONTINUOUS_UNBOUNDED


def test_an_endless_generator_goes_on() -> None:
    source = DataGeneratorSource(str)
    split = source.create_splits(1)[0]
    result = source.create_reader(CONTEXT).read(split, (10**9, 0), 3)
    assert result.records == ["1000000000", "1000000001", "1000000002"]
    assert not result.finished


def test_the_rate_is_shared_by_the_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5_000_000
    monkeypatch.setattr(datagen, "_now_millis", lambda: now)
    source = DataGeneratorSource(int, rate=10)
    reader = source.create_reader(CONTEXT)
    positions = {split: split.position for split in source.create_splits(2)}
    seen: list[list[int]] = []
    for step in (0, 100, 100, 0, 1000, 60_000):
        now += step
        seen.append([])
        for split, position in positions.items():
            result = reader.read(split, position, 30)
            positions[split] = result.position
            seen[-1] += result.records
    assert seen[:4] == [[0, 1], [], [2, 3], []]
    assert sorted(seen[4]) == list(range(4, 14))
    assert len(seen[5]) == 60  # it catches up, as far as a read may


def test_a_generator_function_has_a_life_cycle() -> None:
    class Squares(GeneratorFunction):
        calls: list[str] = []  # noqa: RUF012 - the test's own log

        def open(self, context: InitContext) -> None:
            self.calls.append(f"open {context.subtask_index}")

        def map(self, index: int) -> int:
            return index**2

        def close(self) -> None:
            self.calls.append("close")

    source = DataGeneratorSource(Squares(), 4)
    reader = source.create_reader(CONTEXT)
    (split,) = source.create_splits(1)
    assert reader.read(split, split.position, 10).records == [0, 1, 4, 9]
    reader.close()
    assert Squares.calls == ["open 0", "close"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: NumberSequenceSource(3, 2),
        lambda: NumberSequenceSource("1", 2),  # type: ignore[arg-type]
        lambda: DataGeneratorSource(3),  # type: ignore[arg-type]
        lambda: DataGeneratorSource(str, -1),
        lambda: DataGeneratorSource(str, rate=0),
    ],
)
def test_bad_arguments(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be"):
        make()


def test_a_sink_needs_only_a_writer() -> None:
    class Writer(SinkWriter):
        def write(self, value: Any, context: Any) -> None: ...

    class Plain(Sink):
        def create_writer(self, context: InitContext) -> SinkWriter:
            return Writer()

    assert Plain().create_committer() is None
    assert Plain().create_writer(CONTEXT).prepare_commit() == []
    assert [g.name for g in DeliveryGuarantee] == ["EXACTLY_ONCE", "AT_LEAST_ONCE", "NONE"]
