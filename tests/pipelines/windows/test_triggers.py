"""Row C7: every trigger, early results, and triggers of one's own with state and timers."""

from __future__ import annotations

from typing import Any

import pytest
from drawn_runs import (
    Show,
    ShowSorted,
    StreamHarness,
    added,
    also_on_spark,
    by_key,
    shown,
    windowed,
)
from drawn_time import Event

from penstock.common import Time, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import ReduceFunction
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(3))
EVERYTHING = GlobalWindows.create()


def test_event_time_trigger_by_name_is_the_default(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a fires      [----)               1 2
        end
        """,
        shown(TUMBLING, trigger=EventTimeTrigger.create()),
    )


@also_on_spark
def test_continuous_event_time_gives_early_results(golden: Any) -> None:
    """Every two seconds of event time, as long as the window lives, and at its end."""
    golden(
        """
        time         0    5    10   15
        a            1|
        a             2|                  ; 2 - 1 ms: not there yet
        a               |
        a fires      [---------)          1 2
        a                3    |           ; past 4, 6 and 8
        a fires      [---------)          1 2 3
        a fires      [---------)          1 2 3
        a fires      [---------)          1 2 3
        a                      |
        a fires      [---------)          1 2 3
        end
        """,
        shown(
            TumblingEventTimeWindows.of(Time.seconds(10)),
            trigger=ContinuousEventTimeTrigger.of(Time.seconds(2)),
        ),
    )


def test_continuous_event_time_of_late_elements(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a                1|
        a fires      [----)               1
        a             2
        a fires      [----)               1 2
        end
        """,
        shown(TUMBLING, trigger=ContinuousEventTimeTrigger.of(Time.seconds(3)), lateness=3000),
    )


def test_continuous_event_time_of_merging_sessions(golden: Any) -> None:
    """The earlier of both next times is kept: 2, not 6."""
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        a               |                 ; 2 has passed
        a fires      [-------)            1 2 3
        a                    |            ; 4 and 6 have passed, and it is over
        a fires      [-------)            1 2 3
        a fires      [-------)            1 2 3
        a fires      [-------)            1 2 3
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=ContinuousEventTimeTrigger.of(Time.seconds(2))),
    )


def test_continuous_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10
        a             1|
        a fires      [----)               1
        a               2|
        a fires      [----)               1 2
        a                 |
        a fires      [----)               1 2
        a                   |
        end
        """,
        shown(
            TumblingProcessingTimeWindows.of(Time.seconds(5)),
            trigger=ContinuousProcessingTimeTrigger.of(Time.seconds(2)),
        ),
    )


def test_continuous_processing_time_at_exact_times(make_env: Any) -> None:
    """A time that the clock is at is not over yet, and not missed."""
    trigger = ContinuousProcessingTimeTrigger.of(Time.seconds(1))
    windows = windowed(
        make_env().from_elements(1), TumblingProcessingTimeWindows.of(Time.days(1)), trigger=trigger
    )
    with StreamHarness.of(windows.process(Show())) as harness:
        for second in range(8):
            harness.advance_processing_time(second * 1000)
            harness.process(Event("a", "1", 0))
        # What comes at 0 is shown when the clock is past 1, at 2, and so on.
        assert [text for _, _, text in harness.outputs()] == [
            " ".join("1" * count) for count in (2, 3, 4, 5, 6, 7)
        ]


def test_processing_time_trigger_on_windows_in_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10
        a             12  |
        a fires      [----)               1 2
        end
        """,
        shown(
            TumblingProcessingTimeWindows.of(Time.seconds(5)),
            trigger=ProcessingTimeTrigger.create(),
        ),
    )


@also_on_spark
def test_count_trigger_keeps_what_it_fired(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12
        a fires  *                        1 2
        b             3
        a              4
        a               5
        a fires  *                        1 2 4 5
        end
        """,
        shown(EVERYTHING, trigger=CountTrigger.of(2)),
        leaves=True,
    )


def test_count_trigger_heeds_no_time(golden: Any) -> None:
    """What has not come to the count when the window is over is dropped with it."""
    golden(
        """
        time         0    5    10
        a            1    3|
        a                  4
        a fires           [----)          3 4
        end
        """,
        shown(TUMBLING, trigger=CountTrigger.of(2)),
    )


def test_count_trigger_counts_each_window(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a             3
        a fires      [----)               1 3
        a                  4
        a fires           [----)          2 4
        end
        """,
        shown(TUMBLING, trigger=CountTrigger.of(2)),
    )


def test_purging_drops_what_was_fired(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12
        a fires  *                        1 2
        a              34
        a fires  *                        3 4
        end
        """,
        shown(EVERYTHING, trigger=PurgingTrigger.of(CountTrigger.of(2))),
    )


def test_purging_of_a_reduced_value(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12
        a gives                           3
        a              34
        a gives                           7
        end
        """,
        lambda stream: windowed(
            stream, EVERYTHING, trigger=PurgingTrigger.of(CountTrigger.of(2))
        ).reduce(added),
    )


def test_purging_of_merging_sessions(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        a fires      [-------)            1 2 3
        a                 4
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=PurgingTrigger.of(CountTrigger.of(3))),
    )


def test_never(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2--|
        end
        """,
        shown(TUMBLING, trigger=NeverTrigger()),
    )


def test_global_windows_fire_only_if_told_to(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2--|
        end
        """,
        shown(EVERYTHING),
        leaves=True,
    )


def test_global_windows_at_the_end_of_the_input(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2--|3
        b             4
        end
        a fires  *                        1 2 3
        b fires  *                        4
        """,
        shown(GlobalWindows.create_with_end_of_stream_trigger()),
    )


def test_delta_trigger(golden: Any) -> None:
    """The first is what others are compared with, then each that fired."""
    golden(
        """
        time         0    5    10
        a            1-3
        a               4                 ; 4 - 1 is above 2
        a fires  *                        1 3 4
        a                 6
        a                   7             ; 7 - 4
        a fires  *                        1 3 4 6 7
        end
        """,
        shown(EVERYTHING, trigger=DeltaTrigger.of(2, lambda old, new: new.number - old.number)),
        leaves=True,
    )


def test_timeout_counts_from_the_first_element(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10   15
        a            1--2
        a                 |               ; 1 has waited for five
        a fires  *                        1 2
        a                  3 4 5          ; three before the time is up
        a fires  *                        1 2 3 4 5
        a                            |
        end
        """,
        shown(
            EVERYTHING,
            trigger=ProcessingTimeoutTrigger.of(CountTrigger.of(3), Time.seconds(5)),
        ),
        leaves=True,
    )


def test_timeout_counts_from_the_last_element(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10   15
        a            1--2
        a                   |             ; seven after the first, four after the second
        a                    |
        a fires  *                        1 2
        end
        """,
        shown(
            EVERYTHING,
            trigger=ProcessingTimeoutTrigger.of(
                CountTrigger.of(3), Time.seconds(5), reset_timer_on_new_record=True
            ),
        ),
        leaves=True,
    )


def test_a_timeout_does_not_keep_a_window_from_ending() -> None:
    """It clears the trigger inside, whose timer is at the time when the window is dropped."""
    env = StreamExecutionEnvironment.get_execution_environment()
    trigger = ProcessingTimeoutTrigger.of(EventTimeTrigger.create(), Time.seconds(2))
    windows = windowed(env.from_elements(1), TUMBLING, trigger=trigger)
    with StreamHarness.of(windows.process(Show())) as harness:
        harness.process(Event("a", "1", 0), 0)
        harness.advance_processing_time(2001)
        assert len(harness.outputs()) == 1
        harness.advance_watermark(4999)
        assert len(harness.outputs()) == 2
        assert harness.entries() == []


class Deletes(EventTimeTrigger):
    """Deletes the timer of the window's end, whenever it is asked."""

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.delete_event_time_timer(window.max_timestamp())
        return super().on_event_time(time, window, ctx)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(timestamp + 1)
        return super().on_element(element, timestamp, window, ctx)


@pytest.mark.parametrize("lateness", [0, 2000])
@pytest.mark.parametrize("assigner", [TUMBLING, SESSIONS])
def test_a_trigger_that_deletes_timers_leaves_nothing(assigner: Any, lateness: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = windowed(env.from_elements(1), assigner, trigger=Deletes(), lateness=lateness)
    with StreamHarness.of(windows.process(Show())) as harness:
        harness.process(Event("a", "1", 0), 0)
        harness.process(Event("a", "2", 1000), 1000)
        harness.advance_watermark(20_000)
        assert harness.entries() == []


class Larger(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return max(value1, value2)


class EarlyOnce(Trigger):
    """Fires on a 9, two seconds after the first element, and in the end; purges on a 0.

    Its own are a state, a timer, and a metric.
    """

    FIRST = ValueStateDescriptor("first", Types.LONG())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        first = ctx.get_partitioned_state(self.FIRST)
        if first.value() is None:
            first.update(timestamp)
            ctx.register_event_time_timer(timestamp + 2000)
        results = {"9": TriggerResult.FIRE, "0": TriggerResult.PURGE}
        return results.get(element.value, TriggerResult.CONTINUE)

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        first = ctx.get_partitioned_state(self.FIRST).value()
        if time == window.max_timestamp():
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.FIRE if time == first + 2000 else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        first = ctx.get_partitioned_state(self.FIRST)
        if first.value() is not None:
            ctx.delete_event_time_timer(first.value() + 2000)
            first.clear()
        ctx.delete_event_time_timer(window.max_timestamp())


@also_on_spark
def test_a_trigger_of_ones_own(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12|
        a              |3
        a               |
        a fires      [----)               1 2 3
        a               9
        a fires      [----)               1 2 3 9
        a               0                 ; dropped, with all before it
        a                4|
        a fires      [----)               4
        b                 5
        end
        b fires           [----)          5
        b fires           [----)          5
        """,
        shown(TUMBLING, trigger=EarlyOnce()),
    )


def test_a_purged_window_is_not_evaluated_empty(golden: Any) -> None:
    """Its timer fires, but there is nothing in it."""
    golden(
        """
        time         0    5    10
        a            1
        a              0
        a                 |
        end
        """,
        shown(TUMBLING, trigger=EarlyOnce()),
    )


class Largest(Trigger):
    """For merging windows: fires when the largest value so far has been doubled."""

    LARGEST = ReducingStateDescriptor("largest", Larger(), Types.LONG())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        largest = ctx.get_partitioned_state(self.LARGEST)
        before = largest.get()
        largest.add(element.number)
        fires = before is not None and element.number >= 2 * before
        return TriggerResult.FIRE if fires else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(self.LARGEST)

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.LARGEST).clear()


def test_a_merging_trigger_of_ones_own(golden: Any) -> None:
    """6 doubles what the first session had, but not what both had together."""
    golden(
        """
        time         0    5    10
        a            3    4
        a               6
        a                 8
        a                9
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=Largest()),
    )
    golden(
        """
        time         0    5    10
        a            3    4
        a               8
        a fires      [-------)            3 4 8
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=Largest()),
    )


class RemembersItsStart(EventTimeTrigger):
    """Has state that does not merge: it must be cleared with the windows that are no more."""

    START = ValueStateDescriptor("start", Types.LONG())

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.get_partitioned_state(self.START).update(window.start)
        return super().on_element(element, timestamp, window, ctx)

    def clear(self, window: Any, ctx: Any) -> None:
        super().clear(window, ctx)
        ctx.get_partitioned_state(self.START).clear()


def test_a_trigger_is_cleared_for_windows_that_were_merged(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    2
        a               3
        a                    |
        a fires      [-------)            1 2 3
        end
        """,
        shown(SESSIONS, ShowSorted(), trigger=RemembersItsStart()),
    )


class Clocked(Trigger):
    """In event-time windows: fires three seconds of the clock after each element."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 3000)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def clear(self, window: Any, ctx: Any) -> None:
        pass


class Told(Show):
    """Also which watermark and which time of the clock the function was shown."""

    def process(self, key: str, context: Any, elements: Any) -> Any:
        for _, window, text in super().process(key, context, elements):
            now = context.current_processing_time()
            yield key, window, f"{text} at {context.current_watermark()} and {now}"


def test_both_clocks(golden_by_hand: Any) -> None:
    golden_by_hand(
        """
        time         0    5    10
        a            1-2|
        clock           |
        a fires      [----)               1 2 at 2999 and 3001
        a               3
        clock               |
        a fires      [----)               1 2 3 at 2999 and 7001
        end
        """,
        shown(TUMBLING, Told(), trigger=Clocked()),
    )


def test_key_by_and_trigger_together(golden: Any) -> None:
    """Each key's window has its own trigger state."""
    golden(
        """
        time         0    5    10
        a            1
        b             2
        a              3
        a gives                           4
        b               4
        b gives                           6
        end
        """,
        lambda stream: (
            stream.key_by(by_key).window(TUMBLING).trigger(CountTrigger.of(2)).reduce(added)
        ),
    )
