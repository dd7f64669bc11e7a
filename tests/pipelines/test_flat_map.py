"""flat_map: any number of records out for each one in."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.datastream import FlatMapFunction, StreamExecutionEnvironment


class Words(FlatMapFunction):
    def flat_map(self, value: str) -> Iterator[str]:
        yield from value.split()


def repeated(word: str) -> list[str] | None:
    """Nothing for 'c', which may be said by None."""
    return None if word == "c" else [word] * 2


def test_flat_map(env: StreamExecutionEnvironment) -> None:
    stream = (
        env.from_collection(["a b", "", "c a"])
        .flat_map(Words())
        .flat_map(repeated)
        .flat_map(lambda word: (letter for letter in word))
    )

    assert sorted(stream.execute_and_collect()) == ["a", "a", "a", "a", "b", "b"]
