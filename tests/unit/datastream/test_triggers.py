from __future__ import annotations

from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.time import Time
from penstock.common.typeinfo import Types
from penstock.datastream.window import (
    MAX_LONG_VALUE,
    MIN_LONG_VALUE,
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaFunction,
    DeltaTrigger,
    EarlyFiringTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    GlobalWindow,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
)
from penstock.errors import InvalidArgumentError

CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE
PURGE, FIRE_AND_PURGE = TriggerResult.PURGE, TriggerResult.FIRE_AND_PURGE

WINDOW = TimeWindow(0, 100)


class State:
    """A value or reducing state in a dict."""

    def __init__(self, values: dict[str, Any], descriptor: Any) -> None:
        self.values = values
        self.descriptor = descriptor

    def get(self) -> Any:
        return self.values.get(self.descriptor.name)

    value = get

    def update(self, value: Any) -> None:
        self.values[self.descriptor.name] = value

    def add(self, value: Any) -> None:
        before = self.get()
        reduce = self.descriptor.get_reduce_function().reduce
        self.update(value if before is None else reduce(before, value))

    def clear(self) -> None:
        self.values.pop(self.descriptor.name, None)


class Context(Trigger.OnMergeContext):
    """A window with two clocks, timers and state; as windows it is merged of, other contexts."""

    def __init__(self, watermark: int = MIN_LONG_VALUE, now: int = 0) -> None:
        self.watermark = watermark
        self.now = now
        self.event_timers: set[int] = set()
        self.processing_timers: set[int] = set()
        self.state: dict[str, Any] = {}
        self.merged: list[Context] = []

    def get_current_processing_time(self) -> int:
        return self.now

    def get_metric_group(self) -> Any: ...

    def get_current_watermark(self) -> int:
        return self.watermark

    def register_processing_time_timer(self, time: int) -> None:
        self.processing_timers.add(time)

    def register_event_time_timer(self, time: int) -> None:
        self.event_timers.add(time)

    def delete_processing_time_timer(self, time: int) -> None:
        self.processing_timers.discard(time)

    def delete_event_time_timer(self, time: int) -> None:
        self.event_timers.discard(time)

    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        return State(self.state, state_descriptor)

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        for context in self.merged:
            value = context.state.pop(state_descriptor.name, None)
            if value is not None:
                self.get_partitioned_state(state_descriptor).add(value)

    @property
    def is_clean(self) -> bool:
        return not (self.event_timers or self.processing_timers or self.state)


class Driver:
    """Feeds a trigger and moves its clocks, as the window operator does."""

    def __init__(self, trigger: Any, window: Any = WINDOW, **clocks: int) -> None:
        self.trigger = cloudpickle.loads(cloudpickle.dumps(trigger))
        self.window = window
        self.ctx = Context(**clocks)

    def element(self, value: Any = None, timestamp: int = 0) -> TriggerResult:
        result: TriggerResult = self.trigger.on_element(value, timestamp, self.window, self.ctx)
        return result

    def watermark(self, time: int) -> list[tuple[int, TriggerResult]]:
        """The timers that fire on the way."""
        self.ctx.watermark = time
        fired = []
        while due := [t for t in self.ctx.event_timers if t <= time]:
            timer = min(due)
            self.ctx.event_timers.remove(timer)
            fired.append((timer, self.trigger.on_event_time(timer, self.window, self.ctx)))
        return fired

    def clock(self, time: int) -> list[tuple[int, TriggerResult]]:
        self.ctx.now = time
        fired = []
        while due := [t for t in self.ctx.processing_timers if t <= time]:
            timer = min(due)
            self.ctx.processing_timers.remove(timer)
            fired.append((timer, self.trigger.on_processing_time(timer, self.window, self.ctx)))
        return fired

    def clear(self) -> bool:
        """Clears, and says whether nothing is left."""
        self.trigger.clear(self.window, self.ctx)
        return self.ctx.is_clean


def merged(trigger: Any, *parts: Driver, window: TimeWindow = WINDOW, **clocks: int) -> Driver:
    whole = Driver(trigger, window, **clocks)
    whole.ctx.merged = [part.ctx for part in parts]
    whole.trigger.on_merge(window, whole.ctx)
    return whole


# Event time


def test_event_time_fires_at_the_end() -> None:
    driver = Driver(EventTimeTrigger.create())
    assert driver.element(timestamp=5) is CONTINUE
    assert driver.watermark(98) == []
    assert driver.watermark(99) == [(99, FIRE)]


def test_event_time_fires_for_each_late_element() -> None:
    driver = Driver(EventTimeTrigger(), watermark=99)
    assert [driver.element(), driver.element()] == [FIRE, FIRE]
    assert driver.ctx.is_clean


def test_event_time_heeds_only_its_own_timer() -> None:
    driver = Driver(EventTimeTrigger())
    driver.element()
    assert driver.trigger.on_event_time(50, WINDOW, driver.ctx) is CONTINUE
    assert driver.trigger.on_processing_time(99, WINDOW, driver.ctx) is CONTINUE
    assert driver.clear()


def test_event_time_merges() -> None:
    assert merged(EventTimeTrigger()).ctx.event_timers == {99}
    assert merged(EventTimeTrigger(), watermark=99).ctx.event_timers == set()


def test_the_end_of_the_stream() -> None:
    driver = Driver(EndOfStreamTrigger(), GlobalWindow.get())
    assert driver.element() is CONTINUE
    assert driver.watermark(MAX_LONG_VALUE - 1) == []
    assert driver.watermark(MAX_LONG_VALUE) == [(MAX_LONG_VALUE, FIRE_AND_PURGE)]
    driver.element()
    assert driver.clear()


# Processing time


def test_processing_time_fires_at_the_end() -> None:
    driver = Driver(ProcessingTimeTrigger.create())
    assert driver.element() is CONTINUE
    assert driver.watermark(1000) == []
    assert driver.clock(98) == []
    assert driver.clock(99) == [(99, FIRE)]


def test_processing_time_merges_and_clears() -> None:
    driver = merged(ProcessingTimeTrigger(), now=50)
    assert driver.ctx.processing_timers == {99}
    assert driver.trigger.on_event_time(99, WINDOW, driver.ctx) is CONTINUE
    assert driver.clear()
    assert merged(ProcessingTimeTrigger(), now=99).ctx.is_clean


# Again and again


def test_continuous_event_time_fires_at_multiples_and_at_the_end() -> None:
    driver = Driver(ContinuousEventTimeTrigger.of(Time.milliseconds(30)))
    assert driver.element(timestamp=35) is CONTINUE
    assert driver.element(timestamp=5) is CONTINUE  # does not fire earlier than planned
    assert driver.watermark(59) == []
    assert driver.watermark(60) == [(60, FIRE)]
    assert driver.watermark(200) == [(90, FIRE), (99, FIRE)]
    assert driver.element(timestamp=7) is FIRE
    assert driver.clear()


def test_continuous_event_time_of_negative_times() -> None:
    driver = Driver(ContinuousEventTimeTrigger.of(30), TimeWindow(-100, 0))
    driver.element(timestamp=-50)
    assert driver.watermark(-20) == [(-30, FIRE)]


def test_continuous_event_time_merges_to_the_earlier_firing() -> None:
    trigger = ContinuousEventTimeTrigger.of(30)
    early, late = Driver(trigger), Driver(trigger)
    early.element(timestamp=5)
    late.element(timestamp=70)
    both = merged(trigger, early, late)
    assert 30 in both.ctx.event_timers
    assert both.watermark(30) == [(30, FIRE)]
    assert (early.ctx.state, late.ctx.state) == ({}, {})
    assert both.clear()


def test_continuous_event_time_clears_before_it_fired() -> None:
    driver = Driver(ContinuousEventTimeTrigger.of(30))
    driver.element(timestamp=5)
    assert driver.ctx.event_timers == {30, 99}
    assert driver.trigger.on_event_time(29, WINDOW, driver.ctx) is CONTINUE
    assert driver.trigger.on_processing_time(30, WINDOW, driver.ctx) is CONTINUE
    assert driver.clear()


def test_continuous_processing_time_fires_at_multiples() -> None:
    driver = Driver(ContinuousProcessingTimeTrigger.of(30), now=35)
    assert driver.element() is CONTINUE
    assert driver.watermark(1000) == []
    assert driver.clock(60) == [(60, FIRE)]
    assert driver.clock(95) == [(90, FIRE)]
    assert driver.ctx.processing_timers == {99}
    assert driver.clear()


def test_continuous_processing_time_does_not_make_up_for_what_it_missed() -> None:
    driver = Driver(ContinuousProcessingTimeTrigger.of(10), TimeWindow(0, 10_000), now=5)
    driver.element()
    assert driver.clock(1_234) == [(10, FIRE)]
    assert driver.ctx.processing_timers == {1_240}


def test_continuous_processing_time_of_windows_in_the_past() -> None:
    driver = Driver(ContinuousProcessingTimeTrigger.of(30), TimeWindow(0, 10), now=1_000)
    driver.element()
    assert driver.clock(1_051) == [(1_020, FIRE)]
    assert driver.ctx.processing_timers == {1_080}


def test_continuous_processing_time_merges() -> None:
    trigger = ContinuousProcessingTimeTrigger.of(30)
    early, late = Driver(trigger, now=5), Driver(trigger, now=35)
    early.element()
    late.element()
    both = merged(trigger, early, late, now=40)
    assert both.ctx.processing_timers == {30}
    assert merged(trigger).ctx.is_clean


# Early results


def test_an_early_result_each_interval_with_news_and_the_exact_one_at_the_end() -> None:
    driver = Driver(EarlyFiringTrigger.of(Time.seconds(1)), now=5_000)
    assert driver.element() is CONTINUE
    assert driver.clock(5_999) == []
    assert driver.element() is CONTINUE
    assert driver.clock(6_000) == [(6_000, FIRE)]
    assert driver.clock(60_000) == []  # no news
    driver.element()
    assert driver.clock(61_000) == [(61_000, FIRE)]
    driver.element()
    assert driver.watermark(99) == [(99, FIRE)]
    assert driver.clock(99_000) == []  # the exact result told of it
    assert driver.element() is FIRE
    assert driver.ctx.is_clean


def test_early_results_merge_and_clear() -> None:
    trigger = EarlyFiringTrigger.of(10)
    early, late = Driver(trigger, now=5), Driver(trigger, now=8)
    early.element()
    late.element()
    both = merged(trigger, early, late)
    assert (both.ctx.event_timers, both.ctx.processing_timers) == ({99}, {15})
    assert both.trigger.on_processing_time(14, WINDOW, both.ctx) is CONTINUE
    assert both.clear()


# By elements


@given(st.integers(1, 7), st.integers(0, 40))
def test_count_fires_with_every_nth(size: int, elements: int) -> None:
    driver = Driver(CountTrigger.of(size))
    fired = [driver.element().is_fire() for _ in range(elements)]
    assert fired == [number % size == 0 for number in range(1, elements + 1)]
    assert driver.clear()


def test_counts_add_up_in_a_merge() -> None:
    trigger = CountTrigger.of(5)
    one, two = Driver(trigger), Driver(trigger)
    for part in (one, two, two):
        part.element()
    both = merged(trigger, one, two)
    assert [both.element(), both.element()] == [CONTINUE, FIRE]
    assert both.watermark(1000) == both.clock(1000) == []


class Distance(DeltaFunction[int]):
    def get_delta(self, old_data_point: int, new_data_point: int) -> float:
        return new_data_point - old_data_point


@pytest.mark.parametrize("delta", [Distance(), lambda old, new: new - old])
def test_delta_fires_beyond_the_threshold(delta: Any) -> None:
    driver = Driver(DeltaTrigger.of(20, delta, Types.INT()))
    # The last that fired is what others are compared with: 10, then 31, then 52.
    fired = [driver.element(value).is_fire() for value in (10, 30, 31, 51, 40, 52)]
    assert fired == [False, False, True, False, False, True]
    assert not driver.trigger.can_merge()
    assert driver.clear()


def test_never() -> None:
    driver = Driver(NeverTrigger(), GlobalWindow.get())
    assert {driver.element() for _ in range(5)} == {CONTINUE}
    assert driver.trigger.on_event_time(MAX_LONG_VALUE, driver.window, driver.ctx) is CONTINUE
    assert driver.trigger.on_processing_time(0, driver.window, driver.ctx) is CONTINUE
    assert driver.clear()


# Around others


class Saying(Trigger[Any, Any]):
    """Says always the same."""

    def __init__(self, result: TriggerResult) -> None:
        self.result = result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self.result

    def clear(self, window: Any, ctx: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("said", "result"),
    [(CONTINUE, CONTINUE), (FIRE, FIRE_AND_PURGE), (PURGE, PURGE), (FIRE_AND_PURGE,) * 2],
)
def test_purging(said: TriggerResult, result: TriggerResult) -> None:
    driver = Driver(PurgingTrigger.of(Saying(said)))
    assert driver.element() is result
    assert driver.trigger.on_event_time(5, WINDOW, driver.ctx) is result
    assert driver.trigger.on_processing_time(5, WINDOW, driver.ctx) is result


def test_purging_merges_and_clears_what_is_inside() -> None:
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    one, two = Driver(trigger), Driver(trigger)
    one.element()
    two.element()
    both = merged(trigger, one, two)
    assert both.element() is FIRE_AND_PURGE
    both.element()
    assert both.clear()
    assert trigger.can_merge()
    assert not PurgingTrigger.of(NeverTrigger()).can_merge()


def test_timeout_fires_if_the_count_is_not_reached() -> None:
    driver = Driver(ProcessingTimeoutTrigger.of(CountTrigger.of(3), Time.milliseconds(100)), now=5)
    driver.element()
    driver.ctx.now = 50
    driver.element()
    assert driver.clock(105) == [(105, FIRE)]
    # The count begins anew, and so does the time.
    assert [driver.element(), driver.element(), driver.element()] == [CONTINUE, CONTINUE, FIRE]
    assert driver.ctx.is_clean


def test_timeout_from_the_last_element() -> None:
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 100, reset_timer_on_new_record=True)
    driver = Driver(trigger, now=5)
    driver.element()
    driver.ctx.now = 50
    driver.element()
    assert driver.ctx.processing_timers == {150}
    assert driver.clear()


def test_timeout_that_lets_the_count_go_on() -> None:
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), 100, should_clear_on_timeout=False)
    driver = Driver(trigger)
    driver.element()
    driver.element()
    assert driver.clock(100) == [(100, FIRE)]
    assert driver.element() is FIRE


def test_timeout_fires_with_any_timer_and_purges_if_the_one_inside_does() -> None:
    driver = Driver(ProcessingTimeoutTrigger.of(Saying(PURGE), 100))
    assert driver.element() is PURGE
    assert driver.trigger.on_event_time(5, WINDOW, driver.ctx) is FIRE_AND_PURGE
    assert not driver.trigger.can_merge()
    plain = Driver(ProcessingTimeoutTrigger.of(EventTimeTrigger(), 100))
    plain.element()
    assert plain.watermark(99) == [(99, FIRE)]
    assert plain.ctx.is_clean


# What triggers say about themselves


@pytest.mark.parametrize(
    ("trigger", "text", "merges"),
    [
        (EventTimeTrigger(), "EventTimeTrigger()", True),
        (ProcessingTimeTrigger(), "ProcessingTimeTrigger()", True),
        (ContinuousEventTimeTrigger.of(5), "ContinuousEventTimeTrigger(5)", True),
        (ContinuousProcessingTimeTrigger.of(5), "ContinuousProcessingTimeTrigger(5)", True),
        (EarlyFiringTrigger.of(5), "EarlyFiringTrigger(5)", True),
        (EndOfStreamTrigger(), "EndOfStreamTrigger()", False),
        (CountTrigger.of(5), "CountTrigger(5)", True),
        (DeltaTrigger.of(0.5, max), "DeltaTrigger(0.5)", False),
        (NeverTrigger(), "NeverTrigger()", False),
        (PurgingTrigger.of(CountTrigger.of(5)), "PurgingTrigger(CountTrigger(5))", True),
        (
            ProcessingTimeoutTrigger.of(CountTrigger.of(5), 9),
            "ProcessingTimeoutTrigger(CountTrigger(5), 9)",
            False,
        ),
        (Saying(FIRE), "Saying()", False),
    ],
)
def test_triggers_describe_themselves(trigger: Any, text: str, merges: bool) -> None:
    assert repr(trigger) == text
    assert trigger.can_merge() is merges


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CountTrigger.of(0), "count of CountTrigger.*got int 0"),
        (lambda: CountTrigger.of("3"), "count of CountTrigger"),
        (lambda: ContinuousEventTimeTrigger.of(0), "interval of ContinuousEventTimeTrigger"),
        (lambda: ContinuousProcessingTimeTrigger.of(-5), "at least one millisecond"),
        (lambda: EarlyFiringTrigger.of("1 s"), "a Time, a Duration"),
        (lambda: DeltaTrigger.of("5", max), "threshold of DeltaTrigger must be a number"),
        (lambda: DeltaTrigger.of(float("nan"), max), "threshold of DeltaTrigger"),
        (lambda: DeltaTrigger.of(5, 7), "DeltaFunction or a callable"),
        (lambda: DeltaTrigger.of(5, Distance), "DeltaFunction or a callable"),
        (lambda: PurgingTrigger.of(CountTrigger), "inside PurgingTrigger"),
        (lambda: ProcessingTimeoutTrigger.of(None, 5), "inside ProcessingTimeoutTrigger"),
        (lambda: ProcessingTimeoutTrigger.of(NeverTrigger(), 0), "the timeout of"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        make()
