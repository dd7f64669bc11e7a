"""What cannot work is refused where it is written, or the error names the operator and its line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drawn_runs import AskedTrigger

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import (
    AggregateFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import ProcessAllWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from penstock.errors import (
    InvalidArgumentError,
    InvalidProgramError,
    PenstockError,
    UnsupportedFeatureError,
    UserFunctionError,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(5))
TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1]
)


def keyed(timed: bool = True) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([("a", 1), ("a", 2)])
    if timed:
        stream = stream.assign_timestamps_and_watermarks(TIMED)
    return stream.key_by(lambda record: record[0])


class Elements(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        yield from elements


class AllElements(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield from elements


# Refused where it is written


class SaysItMerges(NeverTrigger):
    def can_merge(self) -> bool:
        return True


SECOND = Time.seconds(1)

REFUSED: list[tuple[Callable[[], Any], str]] = [
    # Sizes
    (lambda: TumblingEventTimeWindows.of(Time.seconds(-5)), r"size of TumblingEvent.*-5000 ms"),
    (lambda: TumblingEventTimeWindows.of(Time.seconds(0)), "size.*at least one millisecond"),
    (lambda: TumblingProcessingTimeWindows.of(Time.seconds(-5)), "size of TumblingProcessing"),
    (lambda: TumblingEventTimeWindows.of("5 s"), "size.*must be a Time, a Duration.*got str '5 s'"),
    (lambda: SlidingEventTimeWindows.of(SECOND, Time.seconds(0)), "slide.*one millisecond"),
    (lambda: SlidingEventTimeWindows.of(Time.seconds(-1), SECOND), "size of SlidingEvent"),
    (lambda: SlidingProcessingTimeWindows.of(SECOND, Time.seconds(-1)), "slide of SlidingProc"),
    (lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)), "gap.*one millisecond"),
    (lambda: ProcessingTimeSessionWindows.with_gap(Time.seconds(-1)), "gap of Processing"),
    (lambda: EventTimeSessionWindows.with_dynamic_gap(5), "a SessionWindowTimeGapExtractor or"),
    (lambda: keyed().count_window(0), "at least 1, got int 0"),
    (lambda: keyed().count_window("3"), "whole number of elements.*got str '3'"),
    (lambda: keyed().count_window(3, -1), "slide.*at least 1, got int -1"),
    # Offsets
    (lambda: TumblingEventTimeWindows.of(SECOND, SECOND), r"offset.*shorter than the size \(1000"),
    (
        lambda: TumblingProcessingTimeWindows.of(SECOND, Time.seconds(-2)),
        r"offset.*either direction.*-2000 ms",
    ),
    (
        lambda: SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2), Time.seconds(2)),
        r"offset.*shorter than the slide \(2000 ms\)",
    ),
    # Triggers and evictors
    (lambda: CountTrigger.of(0), "count of CountTrigger.*at least 1"),
    (lambda: ContinuousEventTimeTrigger.of(Time.seconds(0)), "interval of ContinuousEvent"),
    (lambda: DeltaTrigger.of("much", lambda old, new: 1), "threshold.*a number, got str"),
    (lambda: CountEvictor.of(0), "count of CountEvictor"),
    (lambda: TimeEvictor.of(Time.seconds(0)), "time of TimeEvictor"),
    (
        lambda: keyed().window(SESSIONS).trigger(NeverTrigger()),
        r"EventTimeSessionWindows\(5000\) merges windows, and NeverTrigger.* use a trigger whose",
    ),
    (
        lambda: keyed().window(SESSIONS).trigger(DeltaTrigger.of(1, lambda old, new: 1)),
        r"DeltaTrigger\(1\) cannot follow",
    ),
    (
        lambda: keyed().window(SESSIONS).trigger(SaysItMerges()),
        "SaysItMerges.* has no on_merge; write one",
    ),
    # What is of another kind
    (lambda: keyed().window(TumblingEventTimeWindows), "itself; pass an instance"),
    (lambda: keyed().window(5), "needs a WindowAssigner, got int 5"),
    (lambda: keyed().window(TUMBLING).trigger(EventTimeTrigger), "pass an instance"),
    (lambda: keyed().window(TUMBLING).evictor(CountEvictor), "pass an instance"),
    (lambda: keyed().window(TUMBLING).allowed_lateness(-1), "lateness must be zero or longer"),
    (lambda: keyed().window(TUMBLING).allowed_lateness("1 s"), "lateness.*got str '1 s'"),
    (lambda: keyed().window(TUMBLING).side_output_late_data("late"), "an OutputTag, got str"),
    (lambda: keyed().window(TUMBLING).process(lambda *_: []), "needs a ProcessWindowFunction"),
    (lambda: keyed().window(TUMBLING).process(AllElements()), "needs a ProcessWindowFunction"),
    (lambda: keyed().window_all(TUMBLING).process(Elements()), "needs a ProcessAllWindowFunc"),
    (lambda: keyed().window(TUMBLING).aggregate(lambda a, b: a), "needs an AggregateFunction"),
    (lambda: keyed().window(TUMBLING).reduce(5), "needs a callable or a ReduceFunction, got int"),
    (lambda: keyed().join(5), "must be a DataStream, got int 5"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_where_it_is_written(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        make()
    # The innermost line of the user's is the one to look at.
    ours = [entry for entry in caught.traceback if str(entry.path) == __file__]
    assert ours[-1].frame.code.raw.co_filename == __file__
    assert ours[-1].lineno + 1 in range(*_lines(make))


def _lines(function: Any) -> tuple[int, int]:
    lines, first = inspect.getsourcelines(function)
    return first, first + len(lines)


# Found out while it runs


def fails(stream: Any, kind: type[PenstockError], message: str) -> None:
    """The job fails, and the message names this file and the line where `stream` was made."""
    line = inspect.stack()[1].lineno
    with pytest.raises(kind, match=message) as caught:
        list(stream.execute_and_collect())
    named = [int(n) for n in re.findall(r"test_bad_windows\.py:(\d+)", str(caught.value))]
    assert any(line - 8 <= number <= line for number in named), str(caught.value)


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")


@pytest.mark.parametrize(
    "assigner", [TUMBLING, SESSIONS, SlidingEventTimeWindows.of(Time.seconds(2), SECOND)]
)
@pytest.mark.parametrize("trigger", [None, AskedTrigger()])
def test_records_without_timestamps(assigner: Any, trigger: Any) -> None:
    windows = keyed(timed=False).window(assigner)
    if trigger is not None:
        windows = windows.trigger(trigger)
    stream = windows.process(Elements())
    fails(stream, InvalidProgramError, r"need timestamps.*call assign_timestamps_and_watermarks")


def test_windows_that_need_no_timestamps() -> None:
    windows = keyed(timed=False).count_window(2)
    assert list(windows.process(Elements()).execute_and_collect()) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("stamp", [None, "1000", 1.5])
def test_timestamps_that_are_none(stamp: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = keyed(timed=False).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: stamp)
    )
    stream = timed.key_by(lambda record: record[0]).window(TUMBLING).process(Elements())
    fails(stream, InvalidArgumentError, "an int, in milliseconds, got")


@pytest.mark.parametrize("gap", [0, -5, "1", None])
def test_a_dynamic_gap_that_is_none(gap: Any) -> None:
    sessions = EventTimeSessionWindows.with_dynamic_gap(lambda record: gap)
    stream = keyed().window(sessions).process(Elements())
    fails(stream, InvalidArgumentError, "session gap of an element must be a positive int")


class Says(Trigger):
    def __init__(self, result: Any) -> None:
        self._result = result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        if self._result == "raise":
            raise LookupError("nothing to say")
        return self._result

    def on_event_time(self, time: int, window: Any, ctx: Any) -> Any:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> Any:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


@pytest.mark.parametrize("result", [None, True, "FIRE"])
def test_a_trigger_that_says_nothing(result: Any) -> None:
    """As when a `return` was forgotten."""
    stream = keyed().window(TUMBLING).trigger(Says(result)).process(Elements())
    fails(stream, InvalidArgumentError, r"methods of Says\(\) return must be a TriggerResult")


class SessionState(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        context.window_state().get_state(ValueStateDescriptor("state")).update(1)
        yield key


@pytest.mark.parametrize("trigger", [None, AskedTrigger()])
def test_state_of_windows_that_merge(trigger: Any) -> None:
    windows = keyed().window(SESSIONS)
    if trigger is not None:
        windows = windows.trigger(trigger)
    stream = windows.process(SessionState())
    fails(stream, UnsupportedFeatureError, "state of windows that merge.*global_state")


class FailingAssigner(WindowAssigner):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        raise LookupError("no windows")

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


class FailingEvictor(Evictor):
    def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> Any:
        raise LookupError("no elements")

    def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> Any:
        return None


class FailingSum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        raise LookupError("no sum")

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class FailingFunction(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        raise LookupError("no result")


class FailingClear(Elements):
    def clear(self, context: Any) -> None:
        raise LookupError("not cleared")


@pytest.mark.parametrize("assigner", [TUMBLING, SESSIONS])
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda windows: windows.process(FailingFunction()), "FailingFunction.*no result"),
        (lambda windows: windows.process(FailingClear()), "FailingClear.*not cleared"),
        (lambda windows: windows.aggregate(FailingSum()), "FailingSum.*no sum"),
        (lambda windows: windows.reduce(lambda a, b: 1 // 0), "Reduce.*ZeroDivisionError"),
        (
            lambda windows: windows.evictor(FailingEvictor()).process(Elements()),
            "FailingEvictor.*no elements",
        ),
    ],
    ids=["process", "clear", "aggregate", "reduce", "evictor"],
)
def test_an_error_in_a_function_names_the_operator_and_the_line(
    assigner: Any, asked: bool, compute: Any, message: str
) -> None:
    windows = keyed().window(assigner)
    if asked:
        windows = windows.trigger(AskedTrigger())
    with pytest.raises(UserFunctionError, match=message) as caught:
        list(compute(windows).execute_and_collect())
    named = re.search(r"failed at .*test_bad_windows\.py:(\d+)", str(caught.value))
    assert named is not None
    line = Path(__file__).read_text().splitlines()[int(named[1]) - 1]
    assert "raise LookupError" in line or "1 // 0" in line


def test_an_error_in_a_trigger_or_an_assigner() -> None:
    stream = keyed().window(TUMBLING).trigger(Says("raise")).process(Elements())
    fails(stream, UserFunctionError, "Says.*nothing to say")
    stream = keyed().window(FailingAssigner()).process(Elements())
    fails(stream, UserFunctionError, "FailingAssigner.*no windows")


def test_a_side_output_that_nobody_declared() -> None:
    """Late elements go where the tag says; another tag of the same stream is just empty."""
    stream = keyed().window(TUMBLING).side_output_late_data(OutputTag("late")).process(Elements())
    assert list(stream.get_side_output(OutputTag("other")).execute_and_collect()) == []
