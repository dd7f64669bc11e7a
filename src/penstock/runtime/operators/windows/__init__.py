"""Windows of a keyed stream: which operator does the work, by what the user asks for.

Tumbling, sliding and session windows in event time with nothing special about them have loops of
their own, many times as fast as the general operator, which knows every assigner, trigger and
evictor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from penstock.runtime.operators.base import OpenOperator, OperatorHost
from penstock.runtime.operators.windows.aligned import AlignedWindows
from penstock.runtime.operators.windows.combined import (
    CombinedAligned,
    CombinedSliced,
    CombinedTumbling,
)
from penstock.runtime.operators.windows.general import GeneralWindows
from penstock.runtime.operators.windows.sessions import SessionWindows
from penstock.runtime.operators.windows.sliced import SlicedWindows, can_slice
from penstock.runtime.partials import Combined

__all__ = ["Windowing"]

_WITHOUT_CLOCK = (
    ContinuousEventTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
)


@dataclass(frozen=True)
class Windowing:
    """The windows of a keyed stream and what is computed over them."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    """The user's, or the assigner's default."""
    evictor: Evictor[Any, Any] | None
    allowed_lateness: int
    """In milliseconds."""
    late_tag: OutputTag | None
    combine: Any
    """A ReduceFunction, a callable of two, an AggregateFunction; None keeps all elements."""
    function: Any
    """One of the four kinds of window function, or None."""
    element_type: TypeInformation | None
    """The type of what is kept: elements, or the accumulator."""
    all_windows: bool = False
    """The windows of a whole stream, under one constant key: functions get no key."""
    slices: bool = True
    """Whether sliding windows may be put together from slices."""
    combined: Combined | None = None
    """Of partial results that come instead of records: which."""

    @property
    def needs_clock(self) -> bool:
        """Whether the trigger may set timers of processing time; that of a user may."""
        trigger: Any = self.trigger
        while type(trigger) is PurgingTrigger:
            trigger = trigger.nested_trigger
        return type(trigger) not in _WITHOUT_CLOCK

    @property
    def contents_type(self) -> TypeInformation:
        return self.element_type or Types.PICKLED_BYTE_ARRAY()

    def open(self, host: OperatorHost) -> OpenOperator:
        lane = self._lane()
        assert host.keyed_state is not None
        elements = self.combine is None or self.evictor is not None
        kept = "elements" if elements else "values"
        # Each keeps open windows in its own way: from one to another they would be lost.
        host.keyed_state.declared.add_layout(
            "_windows",
            f"{lane.layout} with {kept}",
            self.contents_type,
            None if self.evictor is not None else lane.held(elements),
        )
        return lane(self, host)

    def _lane(self) -> type[AlignedWindows | SlicedWindows | SessionWindows | GeneralWindows]:
        if type(self.trigger) is EventTimeTrigger and self.evictor is None:
            assigner: Any = self.assigner
            if type(assigner) is SlidingEventTimeWindows:
                sliced = self.slices and can_slice(self.combine, assigner.size, assigner.slide)
                if self.combined is not None:
                    return CombinedSliced if sliced else CombinedAligned
                return SlicedWindows if sliced else AlignedWindows
            if type(assigner) is TumblingEventTimeWindows:
                return AlignedWindows if self.combined is None else CombinedTumbling
            if type(assigner) is EventTimeSessionWindows and self.combine is not None:
                return SessionWindows
        return GeneralWindows
