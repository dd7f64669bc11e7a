"""Sources: Python ones, which read splits from positions, and Spark ones, whose rows arrive."""

from __future__ import annotations

import base64
import math
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.base import Boundedness, ReadResult, Source, Split
from penstock.runtime.codec import dump
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.operators.base import OpenOperator, OperatorHost, stamped
from penstock.runtime.operators.columns import ColumnOperator
from penstock.runtime.operators.split_time import SplitTime
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.partials import Combined
from penstock.runtime.physical import Vertex
from penstock.runtime.watermarks import MAX_TIMESTAMP, WATERMARK

# Between looks at how much is waiting to be sent.
_CHUNK = 10_000
_CHUNK_OF_COLUMNS = 131_072
# Until a source that has nothing just now is asked again, if its end is waited for.
_WAIT_SECONDS = 0.02


@dataclass(frozen=True)
class PythonSource:
    """A source written in Python. Reads on its own: no rows of Spark's are needed."""

    source: Source
    time: AssignTime | None = None
    """How its records get their timestamps, if that is to be known by split."""
    record_type: TypeInformation | None = None
    combined: Combined | None = None
    """If its records come as batches of columns, which are combined: how."""
    time_column: int = 0
    """Which of the columns then has the timestamps."""

    @property
    def bounded(self) -> bool:
        return self.source.boundedness is Boundedness.BOUNDED

    @property
    def discovers(self) -> bool:
        """Whether it may have further splits at any time."""
        return not self.bounded and self.source.discovery_interval is not None

    @property
    def timestamps(self) -> bool:
        return self.time is not None

    def open(self, host: OperatorHost) -> OpenPythonSource:
        return OpenPythonSource(self, host)


class OpenPythonSource(OpenOperator):
    """Reads the splits of one subtask."""

    def __init__(self, described: PythonSource, host: OperatorHost) -> None:
        self._reader = described.source.create_reader(host.init_context())
        host.checkpoints.enlist(self._reader)
        self._source = described.source
        self._scope = host.scope
        self._records_are = host.records_are
        kind, assigned = described.record_type, described.time
        self._convert = None if kind is None else kind.converter()
        self._discovers = self._more_to_come = described.discovers
        self._uid = host.init_context().operator_uid
        self._order = host.order
        self._time = None
        if assigned is not None:
            self._time = SplitTime(assigned.strategy_of(host), host, self.control)
        self.process = host.emit
        self._combined, self._time_column = described.combined, described.time_column
        self._chunk = _CHUNK if self._combined is None else _CHUNK_OF_COLUMNS
        if self._time is not None and self._combined is not None:
            self._time.take_batches(self._combined.newest, host)
        self._run = host.emit_run if self._time is None else self._time.run
        self._unfinished: set[str] | None = None
        self.cut_off = False
        """Whether the last reading was ended by a limit, not by the sources having no more."""

    def read(
        self,
        splits: list[SplitPosition],
        most: int,
        skip: bool,
        count: Callable[[int], None],
        seconds: float,
    ) -> Iterator[SplitPosition]:
        """Read up to `most` records in all; yields a split's new position after every chunk.

        Every split is asked once, and again as long as its share of the records and of the time
        lasts: a slow one must not starve those behind it. If the source wants to read but some
        of them at once, it is those that share, and further ones get what they leave. With `skip`
        records are read and dropped. `count` is told of them.
        """
        began = time.monotonic()
        self.cut_off = False
        unfinished = [split for split in splits if not split.finished]
        in_order = bool(unfinished) and all(self._source.in_order(s.split) for s in unfinished)
        at_once = 1 if in_order else self._source.splits_at_once
        self._begin([split.split.split_id for split in unfinished], in_order)
        ready = [split for split in unfinished if not self._must_wait(split.split.split_id)]
        sharing = max(1, min(len(ready), at_once or len(ready)))
        share = max(1, most // sharing)
        worth_beginning = share if sharing > 1 else 1
        for number, start in enumerate(ready, 1):
            at, left = start, share
            if number > sharing:
                if most < worth_beginning or time.monotonic() > began + seconds:
                    self.cut_off = True
                    return
                left = min(share, most)
            if self._time is not None:
                self._time.turn_to(at.split.split_id)
            deadline = began + seconds * min(number / sharing, 1)
            while left > 0 and not at.finished:
                result = self._reader.read(at.split, at.position, min(left, self._chunk))
                found = len(result.records) if result.count is None else result.count
                if not skip and found:
                    self._emit(result)
                at = SplitPosition(at.split, result.position, result.finished)
                left -= found
                most -= found
                count(found)
                self._note(at)
                yield at
                if not found or result.paused:
                    break
                if time.monotonic() > deadline:
                    left = 0
            self.cut_off = self.cut_off or (left <= 0 and not at.finished)
            if in_order and not at.finished:
                return

    def read_all(
        self, splits: list[SplitPosition], skip: bool, count: Callable[[int], None]
    ) -> Iterator[SplitPosition]:
        """Read every split to its end, waiting for what is not there yet."""
        found = 0

        def counted(records: int) -> None:
            nonlocal found
            found += records
            count(records)

        while splits := [split for split in splits if not split.finished]:
            found, reached = 0, {split.split.split_id: split for split in splits}
            for at in self.read(splits, self._chunk * len(splits), skip, counted, math.inf):
                reached[at.split.split_id] = at
                yield at
            splits = list(reached.values())
            if not found:
                time.sleep(_WAIT_SECONDS)

    def _begin(self, unfinished: list[str], in_order: bool) -> None:
        self._unfinished = set(unfinished)
        in_turn = self._uid in self._order().more_to_come
        self._more_to_come = self._discovers or in_turn
        if self._time is not None:
            self._time.begin(unfinished, in_order, self._more_to_come, in_turn)

    def _must_wait(self, split: str) -> bool:
        return self._time is not None and self._time.must_wait(split)

    def _emit(self, result: ReadResult) -> None:
        self._scope.timestamp = None
        if self._combined is not None:
            self._run(self._combined.combine(result.records, self._time_column))
            return
        records: Iterable[Any] = result.records
        if self._convert is not None:
            records = map(self._convert, records)
        else:
            self._records_are(getattr(self._reader, "shape", None))
        if result.timestamps is not None:
            records = stamped(result.timestamps, records, self._scope)
        self._run(records)

    def _note(self, at: SplitPosition) -> None:
        """A split has been read up to here."""
        split = at.split.split_id
        if at.finished and self._unfinished is not None:
            self._unfinished.discard(split)
        if self._time is not None:
            if at.finished:
                self._time.finish_split(split)
            else:
                self._time.was_read(split)

    def end_epoch(self) -> None:
        if self._time is not None:
            self._time.end_epoch()
        if self._unfinished is not None and not self._unfinished and not self._more_to_come:
            # As far as this subtask goes, time has come to its end.
            self.control((WATERMARK, MAX_TIMESTAMP))

    def reached(self) -> dict[str, int]:
        return self._time.reached() if self._time is not None else {}

    def snapshot(self) -> bytes | None:
        return self._time.snapshot() if self._time is not None else None

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


def split_text(split: Split) -> str:
    """A split as an order carries it."""
    return base64.b64encode(dump(split)).decode()


def found_splits(uid: str, order: EpochOrder) -> list[tuple[int, Split]]:
    """The splits that a source has found since the plan was made, with their numbers."""
    return [(n, pickle.loads(base64.b64decode(text))) for n, text in order.splits.get(uid, ())]


class SourceRecords(NamedTuple):
    """What a batch of rows gives."""

    number: int
    """How many records the rows stand for."""
    timestamps: list[Any] | None
    records: Iterable[Any]
    shape: str | None
    """What every record is."""
    new_part: bool = False
    """Whether they are in no order with those before."""


@dataclass(frozen=True)
class SparkSource:
    """Rows of a Spark DataFrame. The frame itself stays on the driver, under `name`."""

    name: str
    record: Any
    """Makes records out of an Arrow batch: list of columns' Python values → iterable."""
    bounded: bool
    frame: Any = None
    """Driver only; never pickled."""
    time: AssignTime | None = None
    """How its records get their timestamps."""
    steps: tuple[ColumnOperator, ...] = ()
    """What Spark does with the rows before they come."""
    time_column: Any = None
    """A Column for the timestamps of the records; driver only."""
    has_times: bool = False
    """Whether there is one: then rows end with a timestamp."""
    combined: Combined | None = None
    """Whether rows are partial results, and how they are read."""
    parts_end: bool = False
    """Whether what its tasks read in an epoch ends with it, as files do: of partitions of a log
    each goes on, and may be behind the others."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "frame": None, "time_column": None}

    @property
    def timestamps(self) -> bool:
        return self.time is not None or self.has_times

    def reached(self, watermarks: Iterable[int]) -> int:
        """Where the source is after an epoch, by where its tasks were that had a record."""
        return max(watermarks) if self.parts_end else min(watermarks)

    def read(self, columns: list[list[Any]], types: list[Any]) -> SourceRecords:
        """The records of an Arrow batch, whose columns have these types."""
        times = columns.pop() if self.has_times else None
        rows = len(columns[0]) if columns else 0
        shape = self.record.shape(types[: len(columns)])
        return SourceRecords(rows, times, self.record(columns), shape)

    def read_combined(self, batch: Any) -> SourceRecords:
        """The rows of partial results of an Arrow batch, which they stay in."""
        assert self.combined is not None
        return SourceRecords(self.combined.records_in(batch), None, batch, None)

    @property
    def needs_clock(self) -> bool:
        return self.time is not None and self.time.needs_clock

    def open(self, host: OperatorHost) -> OpenOperator:
        if self.time is not None:
            return self.time.open(host)
        operator = OpenOperator()
        operator.process = host.emit
        operator.run = host.emit_run
        return operator


def spark_source(vertex: Vertex) -> SparkSource | None:
    """The Spark source that a vertex begins with, if it is one."""
    head = vertex.operators[0].operator
    return head if isinstance(head, SparkSource) else None
