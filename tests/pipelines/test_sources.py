"""Sources: collections, sequences, generators and ones written in Python, read to the end."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import InvalidArgumentError

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def test_collections_come_in_order(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    streams = [
        env.from_collection([3, 1, 2]),
        env.from_elements("a", None, "b"),
        env.from_data([("t", 1), ("t", 2)]),
        env.from_collection({"k": 1}.items()),
    ]
    named = [s.map(lambda value, i=i: (i, value)) for i, s in enumerate(streams)]

    found: list[list[Any]] = [[] for _ in streams]
    for index, value in named[0].union(*named[1:]).execute_and_collect():
        found[index].append(value)

    assert found == [[3, 1, 2], ["a", None, "b"], [("t", 1), ("t", 2)], [("k", 1)]]
    with pytest.raises(InvalidArgumentError, match="collection must be a list"):
        env.from_collection("text")


def test_typed_collections(env: StreamExecutionEnvironment) -> None:
    """As PyFlink's own test_from_collection_with_data_types: ints wrap, floats round."""
    env.set_parallelism(1)
    row = Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()])
    streams = [
        env.from_collection([43878, None], Types.SHORT()),
        env.from_collection([9147483648], Types.INT()),
        env.from_collection([0.1], Types.FLOAT()),
        env.from_collection([(1, "a")], row),
    ]
    pickled = [stream.map(lambda value: value) for stream in streams]

    found = list(pickled[0].union(*pickled[1:]).execute_and_collect())

    expected = [-21658, None, 557549056, 0.10000000149011612, Row(n=1, s="a")]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_sequences_are_read_in_parallel(env: StreamExecutionEnvironment) -> None:
    sequence = env.from_sequence(-5, 5)
    source = env.from_source(NumberSequenceSource(100, 100), NO_WATERMARKS, "numbers")

    assert sorted(sequence.union(source).execute_and_collect()) == [*range(-5, 6), 100]
    with pytest.raises(InvalidArgumentError, match=r"at least start \(2\)"):
        env.from_sequence(2, 1)


class Squares(GeneratorFunction):
    def open(self, context: InitContext) -> None:
        self._add = 1000

    def map(self, index: int) -> int:
        return self._add + index * index


def test_generators(env: StreamExecutionEnvironment) -> None:
    plain = env.from_source(DataGeneratorSource(lambda i: i * 2, count=5))
    with_open = env.from_source(DataGeneratorSource(Squares(), count=3), NO_WATERMARKS)

    stream = plain.union(with_open)

    assert sorted(stream.execute_and_collect()) == [0, 2, 4, 6, 8, 1000, 1001, 1004]


class Letters(Source):
    """Three splits for two subtasks; gives few records at a time, and sometimes none."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(word, word, (0, False)) for word in ("abcde", "fg", "")]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _LetterReader()


class _LetterReader(SourceReader):
    def read(self, split: Split, position: tuple[int, bool], max_records: int) -> ReadResult:
        index, waited = position
        if not waited:
            return ReadResult([], (index, True))
        letters = split.data[index : index + 2]
        index += len(letters)
        return ReadResult(list(letters), (index, False), finished=index == len(split.data))


def test_source_in_python(env: StreamExecutionEnvironment) -> None:
    stream = env.from_source(Letters(), NO_WATERMARKS, "letters")

    assert stream.get_name() == "Source: letters"
    assert sorted(stream.execute_and_collect()) == list("abcdefg")


@pytest.mark.parametrize(
    "make",
    [
        lambda env: env.from_collection(range(100)),
        lambda env: env.from_sequence(0, 99),
        lambda env: env.from_source(DataGeneratorSource(lambda i: i, count=100)),
    ],
    ids=["collection", "sequence", "generator"],
)
def test_resumed_at_its_position(restartable_env: Any, collect_until_error: Any, make: Any) -> None:
    """The first run fails half-way; the second goes on where the last epoch ended."""

    def failing(limit: int) -> Any:
        def check(value: int) -> int:
            if value % 50 >= limit:
                raise RuntimeError("half-way")
            return value

        return check

    first, error = collect_until_error(make(restartable_env()).map(failing(25)))
    second = list(make(restartable_env()).map(failing(100)).execute_and_collect())

    assert "half-way" in str(error)
    assert 20 <= len(first) <= 60
    assert sorted(first + second) == list(range(100))
