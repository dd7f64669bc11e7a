"""What a job that goes on from a checkpoint reads, if the program's source has changed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.errors import CheckpointMismatchError, UserFunctionError


def failing_at(bad: Any) -> Any:
    def check(value: Any) -> Any:
        if value == bad:
            raise RuntimeError("half-way")
        return value

    return check


def test_a_corrected_collection(restartable_env: Any, collect_until_error: Any) -> None:
    pairs = Types.TUPLE([Types.STRING(), Types.INT()])
    wrong = [(str(n), n) for n in range(15)] + [("b", "two")]
    right = [(str(n), -n) for n in range(15)] + [("b", 2), ("c", 3)]

    first, error = collect_until_error(restartable_env().from_collection(wrong, pairs))
    second = list(restartable_env().from_collection(right, pairs).execute_and_collect())

    assert "got str 'two'" in str(error)
    assert sorted(first) == sorted(wrong[:10])
    assert sorted(second) == sorted(right[10:])


def test_a_collection_that_fails_in_its_first_epoch(
    restartable_env: Any, collect_until_error: Any
) -> None:
    pairs = Types.TUPLE([Types.STRING(), Types.INT()])
    wrong, right = [("a", 1), ("b", "two")], [("a", 1), ("b", 2)]
    assert collect_until_error(restartable_env().from_collection(wrong, pairs))[0] == []
    found = restartable_env().from_collection(right, pairs).execute_and_collect()
    assert sorted(found) == right


def test_a_collection_that_has_grown_behind_its_end(
    restartable_env: Any, collect_until_error: Any
) -> None:
    """The first run reads this one to its end, and fails because of the other."""

    def both(env: Any, extra: list[int], bad: int) -> Any:
        other = env.from_collection(range(100, 130)).map(failing_at(bad))
        return env.from_collection([1, 2, 3, *extra]).union(other)

    first, _ = collect_until_error(both(restartable_env(), [], bad=125))
    second = list(both(restartable_env(), [4, 5], bad=-1).execute_and_collect())
    assert sorted(first) == [1, 2, 3, *range(100, 120)]
    assert sorted(second) == [4, 5, *range(120, 130)]


def test_a_sequence_with_other_bounds(restartable_env: Any, collect_until_error: Any) -> None:
    env = restartable_env()
    first, _ = collect_until_error(env.from_sequence(1, 40).map(failing_at(15)))

    with pytest.raises(CheckpointMismatchError) as caught:
        list(restartable_env().from_sequence(1, 80).execute_and_collect())
    assert "test_resumed_sources.py" in str(caught.value)
    assert "start anew with another penstock.job-id" in str(caught.value)

    more = {"parallelism.default": "3"}  # the cuts stay those of the first start
    second = list(restartable_env(more).from_sequence(1, 40).execute_and_collect())
    assert sorted(first + second) == list(range(1, 41))
    other = {"penstock.job-id": "other"}
    assert len(list(restartable_env(other).from_sequence(1, 80).execute_and_collect())) == 80


def test_a_generator_with_more_records(restartable_env: Any, collect_until_error: Any) -> None:
    def records(env: Any, count: int, bad: int) -> Any:
        return env.from_source(DataGeneratorSource(lambda i: i, count)).map(failing_at(bad))

    first, _ = collect_until_error(records(restartable_env(), 40, bad=35))
    second = list(
        records(restartable_env({"parallelism.default": "3"}), 70, -1).execute_and_collect()
    )
    assert sorted(first + second) == list(range(70))


class Topics(Source):
    """A split per topic of twenty numbers, as the program names them."""

    def __init__(self, *topics: int) -> None:
        self._topics = topics

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(f"topic {topic}", topic, 0) for topic in self._topics]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _TopicReader()


class _TopicReader(SourceReader):
    def read(self, split: Split, position: int, max_records: int) -> ReadResult:
        end = min(20, position + max_records)
        records = [split.data * 100 + n for n in range(position, end)]
        return ReadResult(records, end, finished=end == 20)


def test_splits_that_come_and_go(restartable_env: Any, collect_until_error: Any) -> None:
    """A new one is read, one that is gone from the program is read to its end."""
    env = restartable_env({"parallelism.default": "1"})
    first, _ = collect_until_error(env.from_source(Topics(1, 2)).map(failing_at(112)))
    second = list(restartable_env().from_source(Topics(2, 3)).execute_and_collect())
    assert 0 < len(first) < 40
    assert sorted(first + second) == [t * 100 + n for t in (1, 2, 3) for n in range(20)]


class Broken(Topics):
    def create_splits(self, parallelism: int) -> list[Split]:
        return [Split(str(i), 1 // i, 0) for i in range(2)]


def test_create_splits_that_raises(env: Any) -> None:
    stream = env.from_source(Broken(), source_name="broken")
    with pytest.raises(UserFunctionError) as caught:
        list(stream.execute_and_collect())
    assert caught.value.original_type == "ZeroDivisionError"
    assert "operator 'Source: broken (" in str(caught.value)
    assert str(caught.value).count("test_resumed_sources.py") == 2
