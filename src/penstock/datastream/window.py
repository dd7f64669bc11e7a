"""Windows under PyFlink's module path, with evictors and triggers that only Flink's Java has.

Each kind of thing has a module of its own. All of it travels to workers by pickle, so nothing here
may import the driver or the runtime.
"""

from __future__ import annotations

from penstock.datastream._evictors import CountEvictor, DeltaEvictor, TimeEvictor
from penstock.datastream._other_assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from penstock.datastream._time_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EarlyFiringTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from penstock.datastream._triggers import (
    CountTrigger,
    DeltaTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)
from penstock.datastream._window_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.datastream._window_contracts import (
    DeltaFunction,
    Evictor,
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    TimestampedValue,
    Trigger,
    TriggerResult,
    WindowAssigner,
)
from penstock.datastream._window_serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from penstock.datastream._windows import (
    MAX_LONG_VALUE,
    MIN_LONG_VALUE,
    CountWindow,
    GlobalWindow,
    TimeWindow,
    Window,
)
from penstock.pyflink_names import missing_name

__all__ = [
    "MAX_LONG_VALUE",
    "MIN_LONG_VALUE",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "DeltaEvictor",
    "DeltaFunction",
    "DeltaTrigger",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EarlyFiringTrigger",
    "EndOfStreamTrigger",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
]

__getattr__ = missing_name(__name__)
