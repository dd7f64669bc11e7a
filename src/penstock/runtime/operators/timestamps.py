"""Timestamps and watermarks: what a WatermarkStrategy says, done."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from penstock.common.watermark_strategy import (
    WatermarkGenerator,
    WatermarkKind,
    WatermarkOutput,
    WatermarkStrategy,
)
from penstock.errors import InvalidArgumentError
from penstock.runtime.codec import dump
from penstock.runtime.operators.base import OpenOperator, OperatorHost, passing
from penstock.runtime.watermarks import (
    ACTIVE,
    IDLE,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    WATERMARK,
    Control,
)


@dataclass(frozen=True)
class AssignTime:
    """Gives records their timestamps and sends watermarks between them."""

    strategy: WatermarkStrategy
    interval_millis: int
    timestamps: bool = True
    """Records that leave have some."""

    def open(self, host: OperatorHost) -> OpenOperator:
        return _OpenAssignTime(self.strategy, self.interval_millis, host)


class _BoundedGenerator(WatermarkGenerator):
    """The newest timestamp, less the bound, less a millisecond."""

    def __init__(self, bound: int) -> None:
        self.newest = MIN_TIMESTAMP + bound + 1
        self._bound = bound

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        self.newest = max(self.newest, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(self.newest - self._bound - 1)


class _NoGenerator(WatermarkGenerator):
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None: ...

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


def _generator(strategy: WatermarkStrategy) -> WatermarkGenerator:
    if strategy.kind is WatermarkKind.BOUNDED:
        return _BoundedGenerator(strategy.out_of_orderness_millis)
    if strategy.generator is not None:
        return strategy.generator()
    return _NoGenerator()


class _OpenAssignTime(OpenOperator, WatermarkOutput):
    """Also where the generator sends its watermarks."""

    def __init__(self, strategy: WatermarkStrategy, interval: int, host: OperatorHost) -> None:
        self._host = host
        self._interval = interval / 1000
        self._next = 0.0
        self._emitted = MIN_TIMESTAMP
        self._idle = False
        self._idle_timeout = strategy.idle_timeout_millis
        self._seen = False
        self._last_seen: int | None = None
        self._make = partial(_generator, strategy)
        self._generator: WatermarkGenerator = self._make()
        restored = None if host.roving else host.restored()
        if restored is not None:
            self._generator, self._emitted, self._last_seen = pickle.loads(restored)
        extract = _extractor(strategy, host)
        scope, emit = host.scope, host.emit
        if isinstance(self._generator, _BoundedGenerator):
            results = self._bounded_results(extract)
        else:

            def results(values: Iterable[Any]) -> Iterator[Any]:
                call = self._generator.on_event
                for value in values:
                    scope.timestamp = stamp = extract(value)
                    yield value
                    call(value, stamp, self)

        def process(value: Any) -> None:
            self._see()
            scope.timestamp = stamp = extract(value)
            emit(value)
            self._generator.on_event(value, stamp, self)

        def run(values: Iterable[Any]) -> None:
            records = iter(values)
            for first in records:
                self._see()
                passed(chain((first,), records))
            self._perhaps_emit()

        passed = passing(results, host.emit_run)
        self.process = process
        self.run = run

    def _bounded_results(
        self, extract: Callable[[Any], int]
    ) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """Without a call per record."""
        scope = self._host.scope

        def results(values: Iterable[Any]) -> Iterator[Any]:
            generator = self._generator
            assert isinstance(generator, _BoundedGenerator)
            newest = generator.newest
            try:
                for value in values:
                    scope.timestamp = stamp = extract(value)
                    if stamp > newest:
                        newest = stamp
                    yield value
            finally:
                generator.newest = newest

        return results

    # What comes from the input, and what the clock asks for

    def begin_epoch(self) -> None:
        if self._host.roving:
            # What the last part of the input had come to says nothing about this one.
            self._generator, self._emitted = self._make(), MIN_TIMESTAMP

    def control(self, control: Control) -> None:
        """Watermarks from upstream end here, but for the last one."""
        kind, at = control
        if kind != WATERMARK:
            self.pass_on(control)
        elif at == MAX_TIMESTAMP:
            self._send(at)

    def end_epoch(self) -> None:
        self._generator.on_periodic_emit(self)
        now = self._host.clock()
        if self._seen or self._last_seen is None:
            self._last_seen, self._seen = now, False
        elif self._idle_timeout is not None and now - self._last_seen >= self._idle_timeout:
            self.mark_idle()

    def _see(self) -> None:
        """A record has come."""
        self._seen = True
        self.mark_active()

    def _perhaps_emit(self) -> None:
        now = time.monotonic()
        if self._interval > 0 and now >= self._next:
            self._next = now + self._interval
            self._generator.on_periodic_emit(self)

    # What the generator says

    def emit_watermark(self, timestamp: int) -> None:
        if timestamp > self._emitted:  # one that goes back says nothing
            self.mark_active()
            self._send(timestamp)

    def mark_idle(self) -> None:
        if not self._idle:
            self._idle = True
            self.pass_on((IDLE, 0))

    def mark_active(self) -> None:
        if self._idle:
            self._idle = False
            self.pass_on((ACTIVE, 0))

    def _send(self, timestamp: int) -> None:
        self._emitted = self.time.watermark = timestamp
        self.pass_on((WATERMARK, timestamp))

    def snapshot(self) -> bytes:
        return dump((self._generator, self._emitted, self._last_seen))


def _extractor(strategy: WatermarkStrategy, host: OperatorHost) -> Callable[[Any], int]:
    """The timestamp of a record, checked."""
    assigner, scope = strategy.timestamp_assigner, host.scope
    if assigner is None:

        def given(value: Any) -> int:
            if scope.timestamp is None:
                raise InvalidArgumentError(
                    "the record has no timestamp: its source gives none; say how to find it with "
                    "WatermarkStrategy.with_timestamp_assigner"
                )
            return scope.timestamp

        return given
    call = assigner.extract_timestamp

    def extract(value: Any) -> int:
        before = scope.timestamp
        found = call(value, MIN_TIMESTAMP if before is None else before)
        if found.__class__ is not int:
            raise InvalidArgumentError.of(
                "the timestamp from the assigner", "an int, in milliseconds", found
            )
        return found

    return extract
