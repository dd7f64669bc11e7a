"""IntervalJoin: two keyed streams, on their way to be joined by time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.common.time import Duration, Time, to_signed_millis
from penstock.datastream._stream_arguments import instance_of
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.errors import InvalidArgumentError
from penstock.runtime.operators import interval_join

if TYPE_CHECKING:
    from penstock.datastream._data_stream import DataStream, TypeLike
    from penstock.datastream.keyed_stream import KeyedStream

__all__ = ["IntervalJoin", "IntervalJoined"]

Span = Time | Duration | dt.timedelta | int


@dataclass(frozen=True)
class IntervalJoin:
    """Made by `KeyedStream.interval_join`."""

    left: KeyedStream
    right: KeyedStream

    def between(self, lower_bound: Span, upper_bound: Span) -> IntervalJoined:
        """Pairs where left + lower <= right <= left + upper; bounds may be negative."""
        lower = to_signed_millis(lower_bound, "the lower bound of an interval join")
        upper = to_signed_millis(upper_bound, "the upper bound of an interval join")
        if lower > upper:
            raise InvalidArgumentError(
                "the lower bound of an interval join must not be above the upper one, got "
                f"{lower} ms and {upper} ms; between(lower, upper) is relative to the left record"
            )
        return IntervalJoined(self.left, self.right, lower, upper)


@dataclass(frozen=True)
class IntervalJoined:
    """A join with its bounds, in milliseconds."""

    left: KeyedStream
    right: KeyedStream
    lower: int
    upper: int
    lower_exclusive: bool = False
    upper_exclusive: bool = False
    late_left: OutputTag | None = None
    late_right: OutputTag | None = None

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Leave out pairs at the lower bound itself."""
        return replace(self, lower_exclusive=True)

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Leave out pairs at the upper bound itself."""
        return replace(self, upper_exclusive=True)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Where records of the left stream go that come behind the watermark."""
        return replace(self, late_left=_checked(output_tag))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Where records of the right stream go that come behind the watermark."""
        return replace(self, late_right=_checked(output_tag))

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeLike = None
    ) -> DataStream:
        """Call the function with each pair; its outputs have the later of both timestamps."""
        function = instance_of(
            "interval_join(...).process", (ProcessJoinFunction,), process_join_function
        )
        lower, upper = self.lower + self.lower_exclusive, self.upper - self.upper_exclusive
        if lower > upper:
            raise InvalidArgumentError(
                f"no pair is between {self.lower} ms and {self.upper} ms without the bounds "
                "themselves; widen them, or leave one inclusive"
            )
        operator = interval_join.IntervalJoin(
            function, lower, upper, self.late_left, self.late_right
        )
        return self.left._with(self.right, "Interval Join", operator, output_type)


def _checked(tag: OutputTag) -> OutputTag:
    if not isinstance(tag, OutputTag):
        raise InvalidArgumentError.of("the side output for late records", "an OutputTag", tag)
    return tag
