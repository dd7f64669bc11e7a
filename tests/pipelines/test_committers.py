"""Committers run on the driver: what they raise names the sink, and they are closed at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.datastream.connectors.base import (
    Committable,
    Committer,
    InitContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.errors import InvalidArgumentError, PenstockError, SinkCommitError, UserFunctionError

calls: list[str] = []  # committers live in this process


class Given(Sink):
    """Its committer is what a function gives."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __reduce__(self) -> Any:
        return Given, (None,)  # writers need no committer

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _Writer()

    def create_committer(self) -> Any:
        return self._make()


class _Writer(SinkWriter):
    def write(self, value: Any, context: WriterContext) -> None:
        self._last = value

    def prepare_commit(self) -> list[Any]:
        return [self._last]


class Noting(Committer):
    def commit(self, committables: list[Committable]) -> None:
        calls.extend(f"commit {item.data}" for item in committables)

    def close(self) -> None:
        calls.append("close")


class Exiting(Noting):
    def commit(self, committables: list[Committable]) -> None:
        raise SystemExit("enough")


class Full(Noting):
    def commit(self, committables: list[Committable]) -> None:
        raise OSError("disk full")


def run(env: Any, make: Callable[[], Any]) -> None:
    calls.clear()
    env.from_elements(7).sink_to(Given(make)).name("ledger").uid("some-uid")
    env.execute()


def fails(env: Any, make: Callable[[], Any], kind: type[PenstockError]) -> str:
    with pytest.raises(kind) as caught:
        run(env, make)
    text = str(caught.value)
    assert "ledger" in text
    assert "test_committers.py" in text
    assert "some-uid" not in text
    return text


def test_a_committer_is_closed_at_the_end(env: Any) -> None:
    run(env, Noting)
    assert calls == ["commit 7", "close"]


def test_a_committer_that_cannot_be_made(env: Any) -> None:
    text = fails(env, [].pop, UserFunctionError)
    assert "IndexError: pop from empty list" in text


def test_something_else_than_a_committer(env: Any) -> None:
    assert "a Committer or None, got str 'no'" in fails(env, lambda: "no", InvalidArgumentError)


@pytest.mark.parametrize(("kind", "what"), [(Full, "OSError: disk full"), (Exiting, "SystemExit")])
def test_a_commit_that_fails(env: Any, kind: Any, what: str) -> None:
    text = fails(env, kind, SinkCommitError)
    assert "could not commit epoch 0" in text
    assert what in text
    assert calls == ["close"]
