"""Timestamps and watermarks: what a WatermarkStrategy says, done."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import index
from typing import Any

from penstock.common.watermark_strategy import (
    ColumnTime,
    FieldTime,
    TimestampAssigner,
    WatermarkKind,
    WatermarkStrategy,
    extraction,
)
from penstock.errors import InvalidArgumentError
from penstock.runtime.codec import dump
from penstock.runtime.fields import Getter, getter
from penstock.runtime.grouping import numbers_in
from penstock.runtime.operators.base import EmitRun, OpenOperator, OperatorHost, passing
from penstock.runtime.operators.generators import BoundedGenerator, Progress
from penstock.runtime.watermarks import (
    IDLE,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    WATERMARK,
    Control,
)
from penstock.state.backend import KeyScope

_MOST_RECORDS = 8192


@dataclass(frozen=True)
class AssignTime:
    """Gives records their timestamps and sends watermarks between them."""

    strategy: WatermarkStrategy
    timestamps: bool = True
    """Records that leave have some."""
    newest: int | None = None
    """If records were combined: the column of a batch with the newest timestamp of each row."""

    @property
    def column(self) -> Any:
        """The Column that timestamps are taken from, if it is one. On the driver only."""
        assigner = self.strategy.timestamp_assigner
        return assigner.column if isinstance(assigner, ColumnTime) else None

    @property
    def needs_clock(self) -> bool:
        """Whether time may move while no records come."""
        strategy = self.strategy
        own = strategy.kind in (WatermarkKind.CUSTOM, WatermarkKind.INGESTION)
        return own or strategy.idle_timeout_millis is not None

    @property
    def needs_timestamps(self) -> bool:
        """Whether it only goes by the timestamps that records come with."""
        strategy = self.strategy
        return strategy.kind is WatermarkKind.BOUNDED and strategy.timestamp_assigner is None

    def open(self, host: OperatorHost) -> OpenOperator:
        operator = (_OpenRoving if host.roving else _OpenAssignTime)(self.strategy_of(host), host)
        if self.newest is not None:
            operator.take_batches(self.newest, host)
        return operator

    def strategy_of(self, host: OperatorHost) -> WatermarkStrategy:
        """In batch mode there are timestamps, but no watermark before the end."""
        if not host.batch:
            return self.strategy
        ingestion = self.strategy.kind is WatermarkKind.INGESTION
        return replace(
            self.strategy,
            # Of both kinds a generator is only heard when it is asked, and that is never.
            kind=WatermarkKind.INGESTION if ingestion else WatermarkKind.BOUNDED,
            generator=None,
            idle_timeout_millis=None,
            alignment=None,
        )


class Stamper(OpenOperator):
    """Stamps records, and shows them to the generator of `progress`.

    `progress` may be another one for every run. Within a long run, `periodic` is called whenever
    the interval for it has passed.
    """

    progress: Progress
    run: EmitRun

    def __init__(self, strategy: WatermarkStrategy, host: OperatorHost) -> None:
        self._interval = host.watermark_interval / 1000
        self._next = time.monotonic() + self._interval
        self._stride = 16 if self._interval > 0 else None
        scope, emit, clock = host.scope, host.emit, host.clock
        bounded = strategy.kind in (WatermarkKind.BOUNDED, WatermarkKind.INGESTION)

        def ingestion(value: Any) -> int:
            """The clock; but time does not go back if that is put back."""
            return max(clock(), self.progress.watermark + 1)

        taken = strategy.kind is WatermarkKind.INGESTION
        extract = ingestion if taken else _extractor(strategy.timestamp_assigner, scope)

        def results(values: Iterable[Any]) -> Iterator[Any]:
            progress = self.progress
            call = progress.generator.on_event
            for value in values:
                scope.timestamp = stamp = extract(value)
                yield value
                call(value, stamp, progress)
                scope.timestamp = None  # the next record has none, or brings its own

        def bounded_results(values: Iterable[Any]) -> Iterator[Any]:
            """Without a call per record."""
            generator = self.progress.generator
            assert isinstance(generator, BoundedGenerator)
            newest = generator.newest
            try:
                for value in values:
                    scope.timestamp = stamp = extract(value)
                    if stamp > newest:
                        newest = stamp
                    yield value
                    scope.timestamp = None
            finally:
                generator.newest = newest

        def process(value: Any) -> None:
            self.progress.see()
            scope.timestamp = stamp = extract(value)
            emit(value)
            self.progress.generator.on_event(value, stamp, self.progress)
            scope.timestamp = None

        def run(values: Iterable[Any]) -> None:
            records = iter(values)
            for first in records:
                self.progress.see()
                passed(chain((first,), islice(records, self._stride)))
                self._tick()

        passed = passing(bounded_results if bounded else results, host.emit_run)
        self.process = process
        self.run = run

    def take_batches(self, newest: int, host: OperatorHost) -> None:
        """Records come combined, in Arrow batches, and go on as such, without timestamps; column
        `newest` has the newest timestamp of each row."""
        emit_run = host.emit_run
        # What a task of Spark's has combined comes in no order: there it is not over until all is.
        by_epoch = host.roving

        def run(batch: Any) -> None:
            if not batch.num_rows:
                return
            generator = self.progress.generator
            assert isinstance(generator, BoundedGenerator)
            self.progress.see()
            generator.newest = max(generator.newest, int(numbers_in(batch.column(newest)).max()))
            emit_run(batch)
            if not by_epoch:
                self._tick()

        self.run = run

    @abstractmethod
    def periodic(self) -> None:
        """Ask for watermarks."""

    def _tick(self) -> None:
        """After a stride. Strides are kept short against the interval."""
        if self._stride is None:
            return
        now = time.monotonic()
        if now < self._next:
            self._stride = min(self._stride * 2, _MOST_RECORDS)
            return
        self._stride = max(1, self._stride // 2)
        self._next = now + self._interval
        self.periodic()


class _OpenAssignTime(Stamper):
    """One generator for all of a subtask's records."""

    def __init__(self, strategy: WatermarkStrategy, host: OperatorHost) -> None:
        super().__init__(strategy, host)
        self._host = host
        self.progress = Progress(strategy, self._say)
        parts = [] if host.roving else [pickle.loads(part) for part in host.checkpoints.restored]
        if parts:
            # Several after a change of parallelism: whose records come here now is not known.
            self.progress.restore(min(parts, key=lambda state: state[1]))
        self._to_tell = bool(parts)
        self._before_end: int | None = None

    def begin_epoch(self) -> None:
        if self._to_tell:  # what follows is as new as this
            self._to_tell = False
            self._tell()
            self._host.unsay()  # receivers were told

    def _tell(self) -> None:
        self._say((WATERMARK, self.progress.watermark))
        if self.progress.idle:
            self._say((IDLE, 0))

    def control(self, control: Control) -> None:
        """Watermarks from upstream end here, but for the last one."""
        kind, at = control
        if kind != WATERMARK:
            self.pass_on(control)
        elif at == MAX_TIMESTAMP:
            self.periodic()
            if self.progress.watermark < at:
                self._before_end = self.progress.watermark
            self.progress.emit_watermark(at)

    def end_epoch(self) -> None:
        self.periodic()
        self.progress.look(self._host.clock())

    def periodic(self) -> None:
        if self._interval > 0:
            self.progress.periodic(self._host.clock())

    def snapshot(self) -> bytes | None:
        # Whoever goes on from a job's last epoch has more to read: its time has not ended.
        ended = self._host.order().final and self._before_end is not None
        return dump(self.progress.state(self._before_end if ended else None))

    def _say(self, control: Control) -> None:
        if control[0] == WATERMARK:
            self.time.watermark = control[1]
        self.pass_on(control)


class _OpenRoving(_OpenAssignTime):
    """In a task of a Spark source, which has another part of the input in every epoch.

    What the last part had come to says nothing about this one: a task begins where the driver
    knows the whole source to be, and has no say until it has seen a record.
    """

    def __init__(self, strategy: WatermarkStrategy, host: OperatorHost) -> None:
        super().__init__(strategy, host)
        self._uid = host.init_context().operator_uid

    def begin_epoch(self) -> None:
        watermark, _ = self._host.order().times.get(self._uid, (MIN_TIMESTAMP, False))
        self.progress.begin_anew(watermark)
        self.progress.idle = True
        self._tell()

    def reached(self) -> dict[str, int]:
        return {} if self.progress.idle else {"": self.progress.watermark}

    def snapshot(self) -> None:
        return None


def _extractor(assigner: TimestampAssigner | None, scope: KeyScope) -> Callable[[Any], int]:
    """The timestamp of a record, checked."""
    if assigner is None or isinstance(assigner, ColumnTime):
        why = (
            "its source gives none; say how to find it with "
            "WatermarkStrategy.with_timestamp_assigner"
            if assigner is None
            else "the column given to with_timestamp_assigner is null; filter such records out "
            "before, or put a value in its place (coalesce)"
        )

        def given(value: Any) -> int:
            if scope.timestamp is None:
                raise InvalidArgumentError(f"the record has no timestamp: {why}")
            return scope.timestamp

        return given
    if isinstance(assigner, FieldTime):
        return _field_extractor(getter(assigner.field))
    call = extraction(assigner)

    def extract(value: Any) -> int:
        before = scope.timestamp
        found = call(value, MIN_TIMESTAMP if before is None else before)
        return found if found.__class__ is int else _millis(found)

    return extract


def _field_extractor(get: Getter) -> Callable[[Any], int]:
    """As the getter does it, but without a call of it for records of a class that it knows."""
    ways = get.ways

    def extract(value: Any) -> int:
        try:
            found = ways[value.__class__](value)
        except (KeyError, IndexError, AttributeError):
            found = get(value)  # finds the way, or says that there is none
        return found if found.__class__ is int else _millis(found)

    return extract


def _millis(found: Any) -> int:
    """What is as good as an int, of numpy for example."""
    if not isinstance(found, bool) and hasattr(found, "__index__"):
        return index(found)
    wanted = "an int, in milliseconds"
    if isinstance(found, dt.datetime):
        wanted += " (of a datetime: int(t.timestamp() * 1000))"
    raise InvalidArgumentError.of("the timestamp from the assigner", wanted, found)
