"""Interval join: pairs of records of one key whose times lie within bounds of each other.

Each side holds its records until the watermark says that no partner can come any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.base import (
    FunctionOperator,
    Input,
    OpenOperator,
    OperatorHost,
    open_function,
)
from penstock.runtime.operators.process import element_input, send_aside
from penstock.runtime.watermarks import MAX_TIMESTAMP, WATERMARK, Control
from penstock.state.time_buffer import TimeBuffer
from penstock.state.timers import TimerTable

_KEYS_AT_ONCE = 256
"""After cleaning so many, it is looked whether there is room for more."""


@dataclass(frozen=True)
class IntervalJoin:
    """A ProcessJoinFunction, called where left + lower <= right <= left + upper."""

    function: Any
    lower: int
    upper: int
    late_left: OutputTag | None = None
    late_right: OutputTag | None = None

    def open(self, host: OperatorHost) -> OpenOperator:
        open_function(self.function, host)
        return _OpenIntervalJoin(self, host)


@dataclass
class _Side:
    """One input. Bounds are relative to the time of its record."""

    buffer: TimeBuffer
    partners: TimeBuffer
    first: int
    last: int
    late: OutputTag | None
    name: bytes

    @property
    def is_left(self) -> bool:
        return self.name == b"l"


class _JoinContext(ProcessJoinFunction.Context):
    """The pair at hand. One object serves all of a task."""

    def __init__(self, emit_side: Callable[[OutputTag, Any], None]) -> None:
        self._emit_side = emit_side
        self.left = 0
        self.right = 0

    def get_left_timestamp(self) -> int:
        return self.left

    def get_right_timestamp(self) -> int:
        return self.right

    def get_timestamp(self) -> int:
        return max(self.left, self.right)

    def output(self, tag: OutputTag, value: Any) -> None:
        send_aside(self._emit_side, tag, value)


class _OpenIntervalJoin(FunctionOperator):
    def __init__(self, described: IntervalJoin, host: OperatorHost) -> None:
        assert host.keyed_state is not None
        lower, upper = described.lower, described.upper
        left, right = host.keyed_state.buffer("_left"), host.keyed_state.buffer("_right")
        sides = (
            _Side(left, right, lower, upper, described.late_left, b"l"),
            _Side(right, left, -upper, -lower, described.late_right, b"r"),
        )
        self._sides = {side.name: side for side in sides}
        self._cleaning: TimerTable = host.keyed_state.timers("_cleaning")
        self._host = host
        self._dropped = host.context.get_metrics_group().counter("numLateRecordsDropped")
        inputs = tuple(self._input(described.function.process_element, side) for side in sides)
        super().__init__(described.function, *inputs[0], inputs)

    def _input(self, join: Callable[..., Any], side: _Side) -> Input:
        scope, time = self._host.scope, self._host.time
        mine, partners = side.buffer, side.partners
        first, last, is_left = side.first, side.last, side.is_left

        def joined(value: Any, context: _JoinContext) -> Iterator[Any]:
            at = scope.timestamp
            if at is None:
                raise InvalidArgumentError(
                    "the record has no timestamp, and an interval join needs one; call "
                    "assign_timestamps_and_watermarks on both streams, before key_by"
                )
            if at < time.watermark:
                self._late(side, value)
                return
            if at + last >= time.watermark and mine.add(at, value):
                self._clean_later(side, at)
            for other_at, other in partners.between(at + first, at + last):
                # What is emitted has the time of the later one.
                scope.timestamp = max(at, other_at)
                if is_left:
                    context.left, context.right = at, other_at
                    produced = join(value, other, context)
                else:
                    context.left, context.right = other_at, at
                    produced = join(other, value, context)
                if produced is not None:
                    yield from produced

        return element_input(joined, _JoinContext(self._host.emit_side), self._host)

    def _late(self, side: _Side, value: Any) -> None:
        if side.late is None:
            self._dropped.inc()
        else:
            self._host.emit_side(side.late, value)

    # Cleaning. A key that has records on a side has a timer for them, no later than the end of one
    # of them. (It may have several: a record that is the only one in memory gets one, too.)

    def _clean_later(self, side: _Side, earliest: int) -> None:
        # Behind the end: a record at the watermark itself is not late, and may be a partner.
        self._cleaning.register(min(earliest + side.last + 1, MAX_TIMESTAMP), side.name)

    def control(self, control: Control) -> None:
        kind, until = control
        if kind == WATERMARK:
            self.time.watermark = until
            scope = self._host.scope
            for number, (_, scope.key, name) in enumerate(self._cleaning.due(until), 1):
                self._clean(self._sides[name], until)
                if number % _KEYS_AT_ONCE == 0:
                    self._host.make_room()
        self.pass_on(control)

    def next_timer(self, until: int) -> int | None:
        """None: cleaning emits nothing, so it need not happen between two records."""
        return None

    def _clean(self, side: _Side, watermark: int) -> None:
        at_the_end = watermark == MAX_TIMESTAMP
        left = side.buffer.drop(watermark if at_the_end else watermark - side.last - 1)
        if left is not None:
            self._clean_later(side, left)
