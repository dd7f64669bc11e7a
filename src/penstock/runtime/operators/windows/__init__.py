"""Windows of a keyed stream: the description of them and of what is computed over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import Evictor, Trigger, WindowAssigner


@dataclass(frozen=True)
class Windowing:
    """The windows of a keyed stream and what is computed over them."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    """The user's, or the assigner's default."""
    evictor: Evictor[Any, Any] | None
    allowed_lateness: int
    """Milliseconds."""
    late_tag: OutputTag | None
    combine: Any
    """ReduceFunction, callable of two, AggregateFunction; None: all elements are kept."""
    function: Any
    """WindowFunction, ProcessWindowFunction, their forms for all windows, or None."""
    element_type: TypeInformation | None
    """Of what is kept: elements, or the accumulator."""
    all_windows: bool = False
    """One constant key: functions get no key."""
    default_trigger: bool = True
    """The trigger is the assigner's own."""
