"""Row C1: tumbling and sliding windows, their alignment and offsets."""

from __future__ import annotations

from typing import Any

from drawn_runs import Show, StreamHarness, also_on_spark, shown
from drawn_time import Event

from penstock.common import Time
from penstock.datastream.window import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3))


@also_on_spark
def test_tumbling_windows_are_aligned_to_the_epoch(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15   20
        a              1-2                        ; the window does not begin here
        b               3
        a                   |4         5|         ; nor is there one where nothing was
        a fires      [----)                       1 2
        b fires      [----)                       3
        a fires           [----)                  4
        end
        a fires                     [----)        5
        """,
        shown(TUMBLING),
    )


def test_a_window_fires_when_the_watermark_is_at_its_end(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1---|
        a                2|
        a fires      [----)              1 2
        a                      3|
        end
        a fires                [----)    3
        """,
        shown(TUMBLING),
    )


def test_what_is_early_waits(golden: Any) -> None:
    """Elements of later windows do not make earlier ones fire."""
    golden(
        """
        time         0    5    10
        a                  2    3
        a            1
        a                 |
        a fires      [----)              1
        a                      |
        a fires           [----)         2
        end
        a fires                [----)    3
        """,
        shown(TUMBLING),
    )


def test_a_watermark_that_goes_back_is_ignored(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    |
        a fires      [----)              1
        a              |
        a                   2
        a                 |
        end
        a fires           [----)         2
        """,
        shown(TUMBLING),
    )


def test_offset(golden: Any) -> None:
    golden(
        """
        time    -5   0    5    10
        a            1-2---34|
        a fires   [----)                 1
        a fires        [----)            2 3
        end
        a fires             [----)       4
        """,
        shown(TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(2))),
    )


def test_negative_offset(golden: Any) -> None:
    """As for days that begin east of Greenwich."""
    golden(
        """
        time    -5   0    5    10
        a            1--23-------|
        a fires     [----)               1 2
        a fires          [----)          3
        end
        """,
        shown(TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(-1))),
    )


def test_time_before_the_epoch(golden: Any) -> None:
    golden(
        """
        time         -10  -5   0    5
        a               1  2  3 4  |
        a fires      [----)              1
        a fires           [----)         2 3
        end
        a fires                [----)    4
        """,
        shown(TUMBLING),
    )


@also_on_spark
def test_sliding_windows_overlap(golden: Any) -> None:
    golden(
        """
        time    -5   0    5    10
        a             1  2 3
        b                  4
        a                   |
        a fires   [-----)                1
        a fires      [-----)             1 2
        end
        a fires         [-----)          2 3
        a fires            [-----)       3
        b fires         [-----)          4
        b fires            [-----)       4
        """,
        shown(SLIDING),
    )


def test_sliding_windows_with_an_offset(golden: Any) -> None:
    golden(
        """
        time    -5   0    5    10
        a            1
        end
        a fires [-----)                  1
        a fires    [-----)               1
        """,
        shown(SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3), Time.seconds(1))),
    )


def test_a_slide_that_does_not_divide_the_size(golden: Any) -> None:
    golden(
        """
        time    -5   0    5    10
        a            1   2
        end
        a fires   [----)                 1
        a fires      [----)              1 2
        a fires         [----)           2
        """,
        shown(SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(3))),
    )


def test_a_slide_beyond_the_size_leaves_gaps(golden: Any) -> None:
    """What falls between the windows is in none, and not late either."""
    golden(
        """
        time         0    5    10
        a            1-2-3-4|
        a fires      [--)                1 2
        a                   5
        end
        a fires           [--)           4 5
        """,
        shown(SlidingEventTimeWindows.of(Time.seconds(3), Time.seconds(5))),
    )


def test_tumbling_windows_in_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time         0    5    10
        a            1---2
        b             3
        a                 4
        a fires      [----)              1 2
        b fires      [----)              3
        a                      |
        a fires           [----)         4
        b                          5
        end
        """,
        shown(TumblingProcessingTimeWindows.of(Time.seconds(5))),
        leaves=True,
    )


def test_processing_time_with_an_offset(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time    -5   0    5    10
        a             12--|
        a fires   [----)                 1
        a                   |
        a fires        [----)            2
        end
        """,
        shown(TumblingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(2))),
    )


def test_sliding_windows_in_processing_time(golden_by_clock: Any) -> None:
    golden_by_clock(
        """
        time    -5   0    5    10
        a             1
        a                2
        a fires   [-----)                1
        a                   |
        a fires      [-----)             1 2
        a                      |
        a fires         [-----)          2
        end
        """,
        shown(SlidingProcessingTimeWindows.of(Time.seconds(6), Time.seconds(3))),
    )


def test_a_window_of_the_clock_lasts_to_the_end_of_its_last_millisecond(make_env: Any) -> None:
    """What comes in that millisecond belongs to it; were it over, it would give two results."""
    windows = shown(TumblingProcessingTimeWindows.of(Time.milliseconds(100)))
    with StreamHarness.of(windows(make_env().from_collection([]))) as harness:
        harness.advance_processing_time(850)
        harness.process(Event("a", "1", 850))
        harness.advance_processing_time(899)
        harness.process(Event("a", "2", 899))
        assert harness.outputs() == []
        harness.advance_processing_time(900)
        assert harness.outputs() == [("a", TimeWindow(800, 900), "1 2")]


class Joined(Show):
    def process(self, key: str, context: Any, elements: Any) -> Any:
        yield key, context.window(), ",".join(text for _, _, text in elements)


def test_windows_behind_windows(golden_job: Any) -> None:
    """Results have the last timestamp of their window, so windows can follow each other."""
    golden_job(
        """
        time         0    5    10   15
        a            1-2--3----|
        a fires      [---------)         1 2,3
        end
        """,
        lambda stream: (
            shown(TUMBLING)(stream)
            .map(lambda result: result)
            .key_by(lambda result: result[0])
            .window(TumblingEventTimeWindows.of(Time.seconds(10)))
            .process(Joined())
        ),
    )
