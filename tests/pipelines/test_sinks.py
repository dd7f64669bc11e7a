"""Sinks in Python: a function called per record, and a sink with writers and a committer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import RuntimeContext, SinkFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.base import (
    Committable,
    Committer,
    InitContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.errors import InvalidArgumentError, UserFunctionError


class LinesPerSubtask(SinkFunction):
    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def open(self, runtime_context: RuntimeContext) -> None:
        name = f"{runtime_context.get_index_of_this_subtask()}-{os.getpid()}-{id(self)}"
        self._path = os.path.join(self._folder, name)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        assert context.current_processing_time() > 1_700_000_000_000
        with open(self._path, "a") as file:
            file.write(f"{value}\n")


def test_sink_function(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.from_sequence(1, 20).add_sink(LinesPerSubtask(tmp_path)).name("lines")

    env.execute()

    lines = [int(line) for path in tmp_path.iterdir() if path.is_file() for line in path.open()]
    assert sorted(lines) == list(range(1, 21))


class Files(Sink):
    """A hidden file per writer, shown by the committer; a sum, to see the committable travel."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def create_writer(self, context: InitContext) -> SinkWriter:
        name = f"{context.operator_uid}-{context.epoch}-{context.subtask_index}-{context.attempt}"
        return _Writer(self.folder, name)

    def create_committer(self) -> Committer:
        return _Committer(self.folder)


class _Writer(SinkWriter):
    def __init__(self, folder: str, name: str) -> None:
        self._path, self._name = os.path.join(folder, f".{name}"), name
        self._file = open(self._path, "w")  # noqa: SIM115 - closed below
        self._sum = 0

    def write(self, value: int, context: WriterContext) -> None:
        self._file.write(f"{value}\n")
        self._sum += value

    def prepare_commit(self) -> list[Any]:
        self._file.flush()
        return [(self._name, self._sum)]

    def abort(self) -> None:
        os.unlink(self._path)

    def close(self) -> None:
        self._file.close()


class _Committer(Committer):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def commit(self, committables: list[Committable]) -> None:
        for committable in committables:
            name, total = committable.data
            hidden = os.path.join(self._folder, f".{name}")
            if os.path.exists(hidden):
                shown = f"{committable.epoch}-{committable.subtask_index}-{total}"
                os.rename(hidden, os.path.join(self._folder, shown))


def test_sink_with_commits(restartable_env: Any, tmp_path: Path) -> None:
    """A run that fails shows only whole epochs; the next run shows the rest, each record once."""
    folder = tmp_path / "files"
    folder.mkdir()

    def run(limit: int) -> None:
        def check(n: int) -> int:
            if n >= limit:
                raise RuntimeError("not yet")
            return n

        env = restartable_env()
        env.from_collection(range(60)).map(check).sink_to(Files(folder)).uid("files")
        env.execute()

    def shown() -> dict[str, list[int]]:
        return {
            path.name: [int(line) for line in path.read_text().splitlines()]
            for path in folder.iterdir()
            if not path.name.startswith(".")
        }

    with pytest.raises(UserFunctionError, match="not yet"):
        run(limit=35)
    first = sorted(n for lines in shown().values() for n in lines)
    assert first == list(range(30))

    run(limit=100)
    assert sorted(n for lines in shown().values() for n in lines) == list(range(60))
    for name, lines in shown().items():
        assert int(name.rsplit("-", 1)[1]) == sum(lines)


def test_wrong_kind_of_sink(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"which is a Sink and belongs in sink_to"):
        env.from_elements(1).add_sink(Files(tmp_path))
