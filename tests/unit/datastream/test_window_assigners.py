from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.time import Duration, Time
from penstock.datastream.window import (
    MIN_LONG_VALUE,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    CountWindowSerializer,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from penstock.errors import InvalidArgumentError, InvalidProgramError

times = st.integers(-(10**6), 10**6)
spans = st.integers(1, 5_000)


class Counter:
    """A value state of one key."""

    def __init__(self) -> None:
        self.count: int | None = None

    def value(self) -> int | None:
        return self.count

    def update(self, value: int) -> None:
        self.count = value


class Context(WindowAssigner.WindowAssignerContext):
    """A clock that stands still, and the state of one key."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.counters: dict[str, Counter] = {}

    def get_current_processing_time(self) -> int:
        return self.now

    def get_runtime_context(self) -> Any:
        return self

    def get_state(self, descriptor: Any) -> Counter:
        return self.counters.setdefault(descriptor.name, Counter())


def windows(assigner: Any, timestamp: int, element: Any = None, now: int = 0) -> list[Any]:
    return list(assigner.assign_windows(element, timestamp, Context(now)))


@st.composite
def sliding(draw: Any) -> tuple[int, int, int]:
    size, slide = draw(spans), draw(spans)
    return size, slide, draw(st.integers(-slide + 1, slide - 1))


# Tumbling and sliding windows against their definition: all [offset + k * slide, + size) around


def direct(time: int, size: int, slide: int, offset: int) -> set[TimeWindow]:
    first = (time - size - offset) // slide - 1
    last = (time - offset) // slide + 1
    starts = (offset + k * slide for k in range(first, last + 1))
    return {TimeWindow(s, s + size) for s in starts if s <= time < s + size}


@given(times, sliding())
def test_sliding_windows_are_all_that_hold_the_timestamp(
    time: int, shape: tuple[int, int, int]
) -> None:
    size, slide, offset = shape
    found = windows(SlidingEventTimeWindows.of(size, slide, offset), time)
    assert set(found) == direct(time, size, slide, offset)
    assert len(found) == len(set(found))
    assert set(windows(SlidingProcessingTimeWindows.of(size, slide, offset), 5, now=time)) == set(
        found
    )


@given(times, spans, st.data())
def test_a_tumbling_window_is_a_sliding_one_that_slides_by_its_size(
    time: int, size: int, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    expected = direct(time, size, size, offset)
    assert set(windows(TumblingEventTimeWindows.of(size, offset), time)) == expected
    by_clock = TumblingProcessingTimeWindows.of(size, offset)
    assert set(windows(by_clock, 5, now=time)) == expected


def test_windows_by_hand() -> None:
    # -10       0         10        20
    # [---------)[--------)[--------)
    tumbling = TumblingEventTimeWindows.of(10)
    assert [windows(tumbling, t)[0].start for t in (-11, -10, -1, 0, 9, 10)] == [
        -20, -10, -10, 0, 0, 10,
    ]  # fmt: skip
    assert windows(TumblingEventTimeWindows.of(10, 3), 2) == [TimeWindow(-7, 3)]
    assert windows(TumblingEventTimeWindows.of(10, -3), 8) == [TimeWindow(7, 17)]
    # The latest comes first.
    assert windows(SlidingEventTimeWindows.of(10, 4), 9) == [
        TimeWindow(8, 18), TimeWindow(4, 14), TimeWindow(0, 10),
    ]  # fmt: skip


def test_a_slide_longer_than_the_size_leaves_gaps() -> None:
    #  0    5    10   15
    #  [-)       [-)
    gaps = SlidingEventTimeWindows.of(2, 10)
    assert [len(windows(gaps, t)) for t in (-1, 0, 1, 2, 9, 10)] == [0, 1, 1, 0, 0, 1]


def test_days_of_a_time_zone() -> None:
    eight_hours_ahead = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    midnight = dt.datetime(2024, 5, 1, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    start = int(midnight.timestamp() * 1000)
    assert windows(eight_hours_ahead, start + 1) == [TimeWindow(start, start + 86_400_000)]


@pytest.mark.parametrize(
    "span", [60_000, Time.minutes(1), Duration.of_minutes(1), dt.timedelta(minutes=1)]
)
def test_sizes_are_given_as_any_span(span: Any) -> None:
    tumbling = TumblingEventTimeWindows.of(span)
    sliding = SlidingProcessingTimeWindows.of(span, span)
    assert (tumbling.size, tumbling.offset) == (60_000, 0)
    assert (sliding.size, sliding.slide, sliding.offset) == (60_000, 60_000, 0)
    assert EventTimeSessionWindows.with_gap(span).gap == 60_000
    assert ProcessingTimeSessionWindows.with_gap(span).gap == 60_000


@pytest.mark.parametrize("offset", [Time.seconds(-5), dt.timedelta(seconds=-5), -5_000])
def test_offsets_may_be_negative(offset: Any) -> None:
    assert TumblingEventTimeWindows.of(60_000, offset).offset == -5_000


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TumblingEventTimeWindows.of(0), "size of TumblingEventTimeWindows"),
        (lambda: TumblingEventTimeWindows.of(Time.seconds(-1)), r"at least one millisecond.*-1000"),
        (lambda: TumblingProcessingTimeWindows.of("1 min"), "a Time, a Duration"),
        (lambda: TumblingEventTimeWindows.of(True), "a Time, a Duration"),
        (lambda: TumblingEventTimeWindows.of(dt.timedelta(microseconds=10)), "one millisecond"),
        (lambda: TumblingEventTimeWindows.of(10, 10), r"shorter than the size \(10 ms\)"),
        (lambda: TumblingEventTimeWindows.of(10, -10), r"offset.*got int -10"),
        (lambda: SlidingEventTimeWindows.of(10, 0), "slide of SlidingEventTimeWindows"),
        (lambda: SlidingEventTimeWindows.of(0, 10), "size of SlidingEventTimeWindows"),
        (lambda: SlidingEventTimeWindows.of(10, 5, 5), r"shorter than the slide \(5 ms\)"),
        (lambda: SlidingProcessingTimeWindows.of(10, 5, -7), "shorter than the slide"),
        (lambda: EventTimeSessionWindows.with_gap(0), "gap of EventTimeSessionWindows"),
        (lambda: ProcessingTimeSessionWindows.with_gap(-5), "gap of ProcessingTimeSession"),
        (lambda: EventTimeSessionWindows.with_dynamic_gap(5), "SessionWindowTimeGapExtractor"),
        (lambda: DynamicEventTimeSessionWindows(int), "SessionWindowTimeGapExtractor"),
        (lambda: CountTumblingWindowAssigner.of(0), "size of CountTumbling.*got int 0"),
        (lambda: CountTumblingWindowAssigner.of(2.5), "whole number of elements"),
        (lambda: CountSlidingWindowAssigner.of(3, -1), "slide of CountSliding.*got int -1"),
        (lambda: CountSlidingWindowAssigner.of(True, 1), "size of CountSliding"),
        (lambda: GlobalWindows(5), "default trigger of GlobalWindows"),
    ],
)
def test_wrong_shapes_are_refused_at_once(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        make()


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(10),
        SlidingEventTimeWindows.of(10, 5),
        EventTimeSessionWindows.with_gap(10),
        EventTimeSessionWindows.with_dynamic_gap(lambda _: 10),
    ],
)
@pytest.mark.parametrize("timestamp", [MIN_LONG_VALUE, None])
def test_event_time_windows_need_timestamps(assigner: Any, timestamp: Any) -> None:
    with pytest.raises(InvalidProgramError, match="assign_timestamps_and_watermarks"):
        windows(assigner, timestamp)


# Sessions


class Words(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return len(element)


def test_an_element_opens_a_session_of_the_gap() -> None:
    assert windows(EventTimeSessionWindows.with_gap(7), 5, now=99) == [TimeWindow(5, 12)]
    assert windows(ProcessingTimeSessionWindows.with_gap(7), 5, now=99) == [TimeWindow(99, 106)]


def test_an_element_may_have_its_own_gap() -> None:
    by_event = EventTimeSessionWindows.with_dynamic_gap(Words())
    by_clock = ProcessingTimeSessionWindows.with_dynamic_gap(len)
    assert isinstance(by_event, DynamicEventTimeSessionWindows)
    assert isinstance(by_clock, DynamicProcessingTimeSessionWindows)
    assert windows(by_event, 5, "word") == [TimeWindow(5, 9)]
    assert windows(by_clock, 5, "word", now=99) == [TimeWindow(99, 103)]
    again = DynamicEventTimeSessionWindows.with_dynamic_gap(Words())
    assert windows(again, 5, "word") == [TimeWindow(5, 9)]
    both = DynamicProcessingTimeSessionWindows.with_dynamic_gap(Words())
    assert windows(both, 5, "word") == [TimeWindow(0, 4)]


@pytest.mark.parametrize("gap", [0, -3, 2.5, None, True, "5"])
def test_a_gap_that_is_none_is_refused_when_it_is_met(gap: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="session gap of an element"):
        windows(EventTimeSessionWindows.with_dynamic_gap(lambda _: gap), 5)


@pytest.mark.parametrize(
    "assigner",
    [EventTimeSessionWindows.with_gap(5), DynamicProcessingTimeSessionWindows(Words())],
)
def test_sessions_merge(assigner: Any) -> None:
    class Collect(MergingWindowAssigner.MergeCallback[TimeWindow]):
        def merge(self, to_be_merged: Any, merge_result: TimeWindow) -> None:
            merged.append((sorted(to_be_merged), merge_result))

    merged: list[Any] = []
    assigner.merge_windows([TimeWindow(4, 9), TimeWindow(0, 5), TimeWindow(20, 25)], Collect())
    assert merged == [([TimeWindow(0, 5), TimeWindow(4, 9)], TimeWindow(0, 9))]


# Windows by count


def ids(assigner: Any, elements: int) -> list[list[int]]:
    context = Context()
    return [
        [window.id for window in assigner.assign_windows(None, 0, context)] for _ in range(elements)
    ]


def test_every_so_many_elements_are_a_window() -> None:
    assert ids(CountTumblingWindowAssigner.of(3), 7) == [[0], [0], [0], [1], [1], [1], [2]]


def test_count_windows_that_overlap() -> None:
    # elements  0 1 2 3 4 5
    # window 0  [---)
    #        1      [---)
    #        2          [---
    assert ids(CountSlidingWindowAssigner.of(3, 2), 6) == [
        [0], [0], [1, 0], [1], [2, 1], [2],
    ]  # fmt: skip


def test_count_windows_with_gaps() -> None:
    assert ids(CountSlidingWindowAssigner.of(1, 3), 5) == [[0], [], [], [1], []]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 60))
def test_a_count_window_holds_its_elements(size: int, slide: int, elements: int) -> None:
    found = ids(CountSlidingWindowAssigner.of(size, slide), elements)
    for number, windows_of_it in enumerate(found):
        expected = [k for k in range(elements + 1) if k * slide <= number < k * slide + size]
        assert sorted(windows_of_it) == expected


# What assigners say about themselves


@pytest.mark.parametrize(
    ("assigner", "text", "event_time", "trigger"),
    [
        (TumblingEventTimeWindows.of(60_000), "TumblingEventTimeWindows(60000)",
         True, EventTimeTrigger),
        (TumblingEventTimeWindows.of(60, -5), "TumblingEventTimeWindows(60, offset=-5)",
         True, EventTimeTrigger),
        (TumblingProcessingTimeWindows.of(60), "TumblingProcessingTimeWindows(60)",
         False, ProcessingTimeTrigger),
        (SlidingEventTimeWindows.of(60, 30), "SlidingEventTimeWindows(60, 30)",
         True, EventTimeTrigger),
        (SlidingProcessingTimeWindows.of(60, 30, 7),
         "SlidingProcessingTimeWindows(60, 30, offset=7)", False, ProcessingTimeTrigger),
        (EventTimeSessionWindows.with_gap(9), "EventTimeSessionWindows(9)",
         True, EventTimeTrigger),
        (ProcessingTimeSessionWindows.with_gap(9), "ProcessingTimeSessionWindows(9)",
         False, ProcessingTimeTrigger),
        (DynamicEventTimeSessionWindows(len), "DynamicEventTimeSessionWindows()",
         True, EventTimeTrigger),
        (DynamicProcessingTimeSessionWindows(len), "DynamicProcessingTimeSessionWindows()",
         False, ProcessingTimeTrigger),
        (CountTumblingWindowAssigner.of(3), "CountTumblingWindowAssigner(3)",
         False, PurgingTrigger),
        (CountSlidingWindowAssigner.of(3, 2), "CountSlidingWindowAssigner(3, 2)",
         False, PurgingTrigger),
        (GlobalWindows.create(), "GlobalWindows()", False, NeverTrigger),
        (GlobalWindows.create_with_end_of_stream_trigger(), "GlobalWindows()",
         False, EndOfStreamTrigger),
    ],
)  # fmt: skip
def test_assigners_describe_themselves_and_survive_pickling(
    assigner: Any, text: str, event_time: bool, trigger: type
) -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(assigner))
    assert repr(copy) == repr(assigner) == text
    assert copy.is_event_time() is event_time
    assert type(copy.get_default_trigger(None)) is trigger
    assert windows(copy, 123, "abc", now=55) == windows(assigner, 123, "abc", now=55)


def test_full_count_windows_are_not_kept() -> None:
    trigger: Any = CountSlidingWindowAssigner.of(3, 2).get_default_trigger(None)
    assert isinstance(trigger.nested_trigger, CountTrigger)
    assert trigger.nested_trigger.window_size == 3


def test_there_is_one_global_window() -> None:
    assert windows(GlobalWindows.create(), MIN_LONG_VALUE) == [GlobalWindow.get()]


def test_a_custom_assigner_has_a_short_name() -> None:
    class Nightly(TumblingEventTimeWindows[Any]):
        pass

    class Odd(WindowAssigner[Any, GlobalWindow]):
        def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any: ...
        def get_default_trigger(self, env: Any) -> Any: ...
        def is_event_time(self) -> bool: ...  # type: ignore[empty-body]

    assert repr(Nightly(5)) == "Nightly(5)"
    assert repr(Odd()) == "Odd()"


@pytest.mark.parametrize(
    ("window", "serializer", "assigner"),
    [
        (TimeWindow(-5, 2**62), TimeWindowSerializer(), TumblingEventTimeWindows.of(5)),
        (CountWindow(7), CountWindowSerializer(), CountTumblingWindowAssigner.of(5)),
        (GlobalWindow.get(), GlobalWindowSerializer(), GlobalWindows.create()),
    ],
)
def test_windows_as_bytes(window: Any, serializer: Any, assigner: Any) -> None:
    assert serializer.from_bytes(serializer.to_bytes(window)) == window
    assert serializer.to_bytes(window) != b""
    assert assigner.get_window_serializer() == pickle.loads(pickle.dumps(serializer))
