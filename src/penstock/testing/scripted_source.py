"""A source that follows a script: these records in these epochs, and a failure on cue."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    ReadResult,
    Source,
    SourceReader,
    Split,
)
from penstock.errors import InvalidArgumentError


class ScriptedFailure(RuntimeError):
    """What a source raises where its script says FAIL."""


class _Cue(Enum):
    FAIL = "FAIL"


class _Position(NamedTuple):
    epoch: int
    record: int


class _Script(NamedTuple):
    epochs: tuple[tuple[Any, ...], ...]
    mark: str
    """What the files that remember past failures are called; the same after a restart."""


class ScriptedSource(Source):
    """Gives each list of the script as one epoch, then ends.

    ``ScriptedSource([[1, 2], [3], []])`` makes an epoch of two records, one of one, and one of
    none. ``ScriptedSource.FAIL`` among the records raises `ScriptedFailure` when reading gets
    there, the first time only: after the restart, in this process or another on this machine,
    reading goes on behind it. A job with the default settings fails for good at the first error;
    give it a restart strategy to see it recover.

    A dict makes a split of each of its scripts: ``{"a": [[1], [2]], "b": [[], [3]]}`` gives 1 from
    split a in the first epoch, 2 and 3 from both in the second. A split whose script is shorter
    than the others' comes to its end earlier; one is silent in epochs whose list is empty.

    The epochs are exact as long as each split's are shorter than its part of
    ``penstock.source.max-records-per-epoch``.
    """

    FAIL: Final = _Cue.FAIL

    def __init__(self, script: Iterable[Sequence[Any]] | Mapping[str, Iterable[Any]]) -> None:
        scripts = script if isinstance(script, Mapping) else {"script": script}
        self._scripts = {name: _epochs(found) for name, found in scripts.items()}

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[Split]:
        return [
            Split(name, _Script(epochs, secrets.token_hex(8)), _Position(0, 0))
            for name, epochs in self._scripts.items()
            if epochs
        ]

    def create_reader(self, context: InitContext) -> SourceReader:
        return _ScriptReader()


class _ScriptReader(SourceReader):
    def read(self, split: Split, position: _Position, max_records: int) -> ReadResult:
        script: _Script = split.data
        records = script.epochs[position.epoch]
        at = position.record
        while at < len(records) and records[at] is ScriptedSource.FAIL:
            _fail_once(f"{script.mark}-{position.epoch}-{at}")
            at += 1
        end = at
        while end < len(records) and end - at < max_records and not isinstance(records[end], _Cue):
            end += 1
        if end < len(records):
            return ReadResult(list(records[at:end]), _Position(position.epoch, end))
        after = _Position(position.epoch + 1, 0)
        finished = after.epoch == len(script.epochs)
        return ReadResult(list(records[at:end]), after, finished, paused=True)


def _fail_once(name: str) -> None:
    path = os.path.join(tempfile.gettempdir(), f"penstock-script-{name}")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    raise ScriptedFailure("the script of this source says FAIL here")


def _epochs(script: Any) -> tuple[tuple[Any, ...], ...]:
    if isinstance(script, str | bytes) or not isinstance(script, Iterable):
        raise InvalidArgumentError.of("a script", "a list of lists of records", script)
    return tuple(_records(epoch) for epoch in script)


def _records(epoch: Any) -> tuple[Any, ...]:
    if isinstance(epoch, str | bytes | _Cue) or not isinstance(epoch, Iterable):
        raise InvalidArgumentError.of("an epoch of a script", "a list of records", epoch)
    return tuple(epoch)
