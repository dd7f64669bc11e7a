"""Row C9: late elements update results, or go to the side output, or are dropped and counted."""

from __future__ import annotations

from typing import Any

from drawn_runs import ShowSorted, added, also_on_spark, shown, windowed

from penstock.common import Time
from penstock.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SLIDING = SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(3))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(3))


@also_on_spark
def test_too_late_is_dropped_and_counted(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    |
        a fires      [----)               1
        a             2  34               ; two late ones, and one in time
        b               5                 ; late as well, though b had nothing before
        end
        a fires           [----)          4
        """,
        shown(TUMBLING),
        dropped=3,
    )


@also_on_spark
def test_too_late_goes_to_the_side_output(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    |
        a fires      [----)               1
        a             2  34
        a late        2  3
        b               5
        b late          5
        end
        a fires           [----)          4
        """,
        shown(TUMBLING, aside=True),
    )


def test_late_begins_at_the_very_end_of_a_window(golden: Any) -> None:
    """The watermark has not reached the last millisecond: nothing is late yet."""
    golden(
        """
        time         0    5    10
        a            1---|
        a             2
        a                 |
        a fires      [----)               1 2
        a             3
        a late        3
        end
        """,
        shown(TUMBLING, aside=True),
    )


@also_on_spark
def test_a_late_element_within_the_lateness_fires_at_once(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1    |
        a fires      [----)               1
        a             2
        a fires      [----)               1 2
        a                 3 |             ; 7: still there
        a             4
        a fires      [----)               1 2 4
        a                    |            ; 8: kept until 5 + 3
        a             5
        a late        5
        end
        a fires           [----)          3
        """,
        shown(TUMBLING, lateness=3000, aside=True),
    )


def test_the_first_element_of_a_window_may_be_late(golden: Any) -> None:
    """Its window is made, fires at once, and goes at its time like any other."""
    golden(
        """
        time         0    5    10
        b                 |
        a             1
        a fires      [----)               1
        a              2
        a fires      [----)               1 2
        b                    |
        a               3
        a late          3
        end
        """,
        shown(TUMBLING, lateness=3000, aside=True),
    )


def test_late_updates_of_a_reduced_value(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a gives                           3
        a             4
        a gives                           7
        end
        """,
        lambda stream: windowed(stream, TUMBLING, lateness=3000).reduce(added),
    )


def test_an_element_may_be_late_for_some_of_its_windows(golden: Any) -> None:
    """It is late, and goes aside, only if it is too late for all of them."""
    golden(
        """
        time    -5   0    5    10
        a             1  |
        a fires   [-----)                 1
        a              2                  ; too late for the window until 3 only
        a                  |
        a fires      [-----)              1 2
        a              3
        a late         3
        end
        """,
        shown(SLIDING, aside=True),
    )


def test_lateness_of_overlapping_windows(golden: Any) -> None:
    golden(
        """
        time    -5   0    5    10
        a             1  |
        a fires   [-----)                 1
        a              2                  ; the first one is kept until 3 + 2
        a fires   [-----)                 1 2
        a                 |               ; and has gone now
        a               3
        a                  |
        a fires      [-----)              1 2 3
        end
        a fires         [-----)           3
        """,
        shown(SLIDING, lateness=2000, aside=True),
    )


def test_purged_contents_do_not_come_back(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2  |
        a fires      [----)               1 2
        a             3
        a fires      [----)               3
        a              4
        a fires      [----)               4
        end
        """,
        shown(TUMBLING, lateness=3000, trigger=PurgingTrigger.of(EventTimeTrigger.create())),
    )


# Sessions


def test_a_late_element_of_a_session_that_has_fired(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1   |
        a fires      [--)                 1
        a             2
        a fires      [---)                1 2
        end
        """,
        shown(SESSIONS, ShowSorted(), lateness=5000, aside=True),
    )


def test_a_late_element_that_prolongs_a_session(golden: Any) -> None:
    """The session has fired, but now it ends later: it fires again when that is reached."""
    golden(
        """
        time         0    5    10
        a            1   |
        a fires      [--)                 1
        a              2
        a                 |
        a fires      [----)               1 2
        end
        """,
        shown(SESSIONS, ShowSorted(), lateness=5000, aside=True),
    )


@also_on_spark
def test_a_late_element_makes_two_sessions_one(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a            1    2|
        a fires      [--)                 1
        a               3                 ; bridges what has fired and what has not
        a                    |
        a fires      [-------)            1 2 3
        end
        """,
        shown(SESSIONS, ShowSorted(), lateness=5000, aside=True),
    )


def test_a_late_element_joins_two_sessions_that_have_fired(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a            1    2    |
        a fires      [--)                 1
        a fires           [--)            2
        a               3                 ; both are kept, until 3 + 9 and 8 + 9
        a fires      [-------)            1 2 3
        end
        """,
        shown(SESSIONS, ShowSorted(), lateness=9000, aside=True),
    )


def test_a_late_element_of_a_session_that_is_gone(golden: Any) -> None:
    """It is too late for a session of its own, and there is none that it could join."""
    golden(
        """
        time         0    5    10   15
        a            1         |
        a fires      [--)                 1
        a             2
        a late        2
        a                    3            ; a session until 11, which is not over
        a                     |
        end
        a fires              [--)         3
        """,
        shown(SESSIONS, lateness=2000, aside=True),
    )


def test_a_late_element_is_saved_by_a_live_session(golden: Any) -> None:
    """Alone it would be too late; what counts is the session that it joins."""
    golden(
        """
        time         0    5    10   15
        a                   1-2|
        a                  3              ; its own session would be over at 9
        end
        a fires            [-----)        1 2 3
        """,
        shown(SESSIONS, ShowSorted(), aside=True),
    )


def test_dropped_elements_leave_sessions_as_they_were(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a                      1|
        a             2
        a                 3
        end
        a fires                [--)       1
        """,
        shown(SESSIONS),
        dropped=2,
    )
