"""Event-time order: an operator gets its records by their timestamps, once the watermark has passed
them, with its timers in between. How the input was cut into epochs then makes no difference.

Time inside goes from one record or timer to the next: a record of time T finds the watermark at
T - 1 and every timer before T fired, and a timer finds the watermark at its own time. What follows
hears of the watermarks that arrive, not of these steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.base import (
    OpenOperator,
    OperatorDescription,
    OperatorHost,
    one_by_one,
)
from penstock.runtime.watermarks import MAX_TIMESTAMP, WATERMARK, Control
from penstock.state.waiting import WAITING, Record


@dataclass(frozen=True)
class Ordered:
    """An operator of a keyed stream, in event-time order."""

    inner: OperatorDescription

    def open(self, host: OperatorHost) -> OpenOperator:
        return _OpenOrdered(self.inner.open(replace(host, in_order=True)), host)


class _OpenOrdered(OpenOperator):
    """Stands before the operator, in its place: with its state, its time, its outputs.

    The inputs of an operator with several wait together. A record's channel says whose it is.
    """

    def __init__(self, inner: OpenOperator, host: OperatorHost) -> None:
        assert host.keyed_state is not None
        self.inner = inner
        self._scope, self._now = host.scope, host.time
        self._make_room = host.make_room
        self._waiting = host.keyed_state.waiting(WAITING)
        self._late = host.context.get_metrics_group().counter("numLateRecords")
        only = (inner.process, inner.run or one_by_one(inner.process))
        self._inner_inputs = inner.inputs or (only,)
        self._stepping = False
        self._held_up: Record | None = None
        inner.time = host.time
        inner.pass_on = self._pass_on_from_inner

        def process(value: Any) -> None:
            self._add((value,))

        self.process = process
        self.run = self._add
        self.inputs = ((process, self._add),) * len(inner.inputs)

    # Records arrive

    def _add(self, values: Iterable[Any]) -> None:
        self._waiting.add(values, self._now.watermark, self._take_at_once)

    def _take_at_once(self, value: Any) -> None:
        """Time is beyond the record already: there is no order for it any more."""
        timestamp = self._scope.timestamp
        if timestamp is None:
            raise InvalidArgumentError(
                "a record has no timestamp, and its operator handles records in event-time order; "
                "call assign_timestamps_and_watermarks(...) before key_by (what a processing-time "
                "timer emits has no timestamp either)"
            )
        if timestamp > MAX_TIMESTAMP:
            raise InvalidArgumentError.of("a timestamp", "at most 2**63 - 1", timestamp)
        self._late.inc()
        process, _ = self._inner_inputs[self._scope.channel[0]]
        process(value)

    # Time passes

    def control(self, control: Control) -> None:
        kind, time = control
        if kind == WATERMARK:
            self._hand_over(time)
            self._advance(time)
        self.inner.control(control)

    def resume(self, control: Control) -> None:
        self.inner.resume(control)

    def _hand_over(self, until: int) -> None:
        while due := self._waiting.take(until):
            records = iter(due)
            record = next(records, None)
            while record is not None:
                if record[0] - 1 > self._now.watermark:
                    self._advance(record[0] - 1)
                self._held_up = None
                _, run = self._inner_inputs[record[2][0]]
                run(self._together(record, records))
                record = self._held_up or next(records, None)
            self._make_room()

    def _together(self, first: Record, rest: Iterator[Record]) -> Iterator[Any]:
        """The records up to the first that has a timer before it, or goes to another input."""
        scope, now, next_timer = self._scope, self._now, self.inner.next_timer
        at, which = first[0], first[2][0]
        for record in chain((first,), rest):
            time, _, channel, _, key, value = record
            if time != at or channel[0] != which:
                if channel[0] != which or next_timer(time - 1) is not None:
                    self._held_up = record
                    return
                at = time
                now.watermark = time - 1
            scope.timestamp, scope.key = time, key
            yield value

    def _advance(self, to: int) -> None:
        """Let the timers up to a time fire, each when it is that time."""
        inner, now = self.inner, self._now
        while (timer := inner.next_timer(to)) is not None:
            self._stepping = True
            try:
                inner.control((WATERMARK, max(timer, now.watermark)))
            finally:
                self._stepping = False
            if timer >= to:
                break
        now.watermark = to

    def _pass_on_from_inner(self, control: Control) -> None:
        if not self._stepping:
            self.pass_on(control)

    # What only concerns the operator

    def begin_epoch(self) -> None:
        self.inner.begin_epoch()

    def end_epoch(self) -> None:
        self.inner.end_epoch()

    def finish(self) -> None:
        self.inner.finish()

    def snapshot(self) -> bytes | None:
        return self.inner.snapshot()

    def prepare_commit(self) -> list[Any]:
        return self.inner.prepare_commit()

    def parts(self) -> tuple[Any, ...]:
        return self, *self.inner.parts()

    def close(self) -> None:
        self.inner.close()
