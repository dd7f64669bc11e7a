"""Commits that fail: they are tried again, hold up no other sink, and are never forgotten."""

from __future__ import annotations

from pathlib import Path
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
from penstock.errors import CheckpointMismatchError, SinkCommitError


class Target(Sink):
    """Writes to a file in `folder`, as long as there is none called `down`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create_writer(self, context: InitContext) -> SinkWriter:
        return _Gathers()

    def create_committer(self) -> Committer:
        return _Appends(self.folder)

    def lines(self) -> list[int]:
        """What was committed; what came again counts once."""
        path = self.folder / "lines"
        return sorted({int(line) for line in path.open()}) if path.exists() else []


class _Gathers(SinkWriter):
    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, element: Any, context: WriterContext) -> None:
        self._values.append(element)

    def prepare_commit(self) -> list[Any]:
        return [self._values]


class _Appends(Committer):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit(self, committables: list[Committable]) -> None:
        if (self._folder / "down").exists():
            if (self._folder / "once").exists():
                (self._folder / "down").unlink()
            raise OSError("the target is down")
        with open(self._folder / "lines", "a") as file:
            file.writelines(f"{value}\n" for item in committables for value in item.data)


RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "10 ms",
}
SMALL_EPOCHS = {"penstock.source.max-records-per-epoch": "2"}


def test_results_are_collected_although_a_sink_fails(make_env: Any, tmp_path: Path) -> None:
    target = Target(tmp_path)
    for name in ("down", "once"):
        (tmp_path / name).touch()
    env = make_env({**RESTARTS, **SMALL_EPOCHS})
    numbers = env.from_collection(range(6)).map(lambda n: n)
    numbers.sink_to(target)

    collected = list(numbers.map(lambda n: n * 10).execute_and_collect())

    assert sorted(collected) == [0, 10, 20, 30, 40, 50]
    assert target.lines() == list(range(6))


def program(env: Any, target: Target, filtered: bool) -> None:
    stream = env.from_collection(range(6)).uid("source").map(lambda n: n).uid("map")
    if filtered:
        stream = stream.filter(lambda n: True)
    stream.sink_to(target)


def test_output_of_a_sink_that_is_gone_is_not_dropped(restartable_env: Any, tmp_path: Path) -> None:
    target = Target(tmp_path)
    (tmp_path / "down").touch()
    env = restartable_env({"restart-strategy.type": "none", **SMALL_EPOCHS})
    program(env, target, filtered=False)
    with pytest.raises(SinkCommitError, match="the target is down"):
        env.execute("job")
    (tmp_path / "down").unlink()

    changed = restartable_env(SMALL_EPOCHS)
    program(changed, target, filtered=True)
    with pytest.raises(CheckpointMismatchError, match="start the earlier program once more"):
        changed.execute("job")

    again = restartable_env(SMALL_EPOCHS)
    program(again, target, filtered=False)
    again.execute("job")
    assert target.lines() == list(range(6))
