"""Sources: Python ones, which read splits from positions, and Spark ones, whose rows arrive."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.connectors.base import Boundedness, ReadResult, Source, Split
from penstock.runtime.operators.base import OpenOperator, OperatorHost

# Between looks at how much is waiting to be sent.
_CHUNK = 10_000


@dataclass(frozen=True)
class PythonSource:
    """A source written in Python. Reads on its own: no rows of Spark's are needed."""

    source: Source

    @property
    def bounded(self) -> bool:
        return self.source.boundedness is Boundedness.BOUNDED

    def open(self, host: OperatorHost) -> OpenPythonSource:
        return OpenPythonSource(self.source, host)


class OpenPythonSource(OpenOperator):
    """Reads the splits of one subtask."""

    def __init__(self, source: Source, host: OperatorHost) -> None:
        self._reader = source.create_reader(host.init_context())
        self._host = host
        self.process = host.emit
        self.run = host.emit_run

    def read(
        self,
        splits: list[SplitPosition],
        most: int,
        skip: bool,
        count: Callable[[int], None],
    ) -> Iterator[SplitPosition]:
        """Read up to `most` records in all; yields a split's new position after every chunk.

        With `skip` they are read and dropped. `count` is told of them.
        """
        waiting = [split for split in splits if not split.finished]
        share = max(1, most // max(1, len(waiting)))
        for start in waiting:
            at, left = start, share
            while left > 0 and not at.finished:
                result = self._reader.read(at.split, at.position, min(left, _CHUNK))
                if not skip:
                    self._emit(result)
                at = SplitPosition(at.split, result.position, result.finished)
                left -= len(result.records)
                count(len(result.records))
                yield at
                if not result.records:
                    break

    def _emit(self, result: ReadResult) -> None:
        call = self._host.emit
        scope = self._host.scope
        if result.timestamps is None:
            scope.timestamp = None
            self._host.emit_run(result.records)
        else:
            for scope.timestamp, value in zip(result.timestamps, result.records, strict=True):
                call(value)

    def close(self) -> None:
        self._reader.close()


@dataclass(frozen=True)
class SplitPosition:
    """A split and how far it has been read."""

    split: Split
    position: Any
    finished: bool = False

    def to_text(self) -> str:
        return base64.b64encode(pickle.dumps(self.position, 5)).decode()

    @staticmethod
    def position_from(text: str) -> Any:
        return pickle.loads(base64.b64decode(text))


@dataclass(frozen=True)
class SparkSource:
    """Rows of a Spark DataFrame. The frame itself stays on the driver, under `name`."""

    name: str
    record: Any
    """Makes records out of an Arrow batch: list of columns' Python values → iterable."""
    bounded: bool
    frame: Any = None
    """Driver only; never pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "frame": None}

    def open(self, host: OperatorHost) -> OpenOperator:
        operator = OpenOperator()
        operator.process = host.emit
        operator.run = host.emit_run
        return operator
