"""Rows C3 and C4: windows by count, in PyFlink's way and in Java's; windows over all keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from drawn_runs import Show, ShowAll, added, also_on_spark, by_key, shown

from penstock.common import Configuration, Time
from penstock.datastream.functions import AllWindowFunction
from penstock.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    GlobalWindows,
    TumblingEventTimeWindows,
)


@also_on_spark
def test_tumbling_by_count(golden: Any) -> None:
    """Per key, whatever the time; a window that is never full never fires."""
    golden(
        """
        time         0    5    10
        a            12
        b             3
        a             4
        a fires  #0                       1 2 4
        a                 567
        a fires  #1                       5 6 7
        a            8
        end
        """,
        lambda stream: stream.key_by(by_key).count_window(3).process(Show()),
        leaves=True,
    )


@also_on_spark
def test_sliding_by_count_fires_full_windows(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12
        a              3
        a fires  #0                       1 2 3
        a               4
        a                5
        a fires  #1                       3 4 5
        a                 6
        end
        """,
        lambda stream: stream.key_by(by_key).count_window(3, 2).process(Show()),
        leaves=True,
    )


def test_a_slide_beyond_the_size_leaves_some_out(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        a fires  #0                       1 2
        a               3 4 5
        a fires  #1                       4 5
        end
        """,
        lambda stream: stream.key_by(by_key).count_window(2, 3).process(Show()),
        leaves=True,
    )


def _in_javas_way(stream: Any) -> Any:
    """The option is asked when the windows are made."""
    configuration = Configuration()
    configuration.set_string("penstock.count-window.semantics", "java")
    stream.get_execution_environment().configure(configuration)
    return stream


def test_sliding_by_count_in_javas_way(golden: Any) -> None:
    """Fires every second element, with up to three."""
    drawing = """
        time         0    5    10
        a            12
        a fires  *                        1 2
        a              34
        a fires  *                        2 3 4
        a                5
        end
        """
    golden(
        drawing,
        lambda stream: _in_javas_way(stream).key_by(by_key).count_window(3, 2).process(Show()),
        leaves=True,
    )
    golden(
        drawing,
        shown(GlobalWindows.create(), evictor=CountEvictor.of(3), trigger=CountTrigger.of(2)),
        leaves=True,
    )


def test_tumbling_by_count_in_javas_way(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            12
        a fires  *                        1 2
        a              34
        a fires  *                        3 4
        end
        """,
        lambda stream: _in_javas_way(stream).key_by(by_key).count_window(2).process(Show()),
    )


@pytest.mark.parametrize(
    "assigner", [CountTumblingWindowAssigner.of(2), CountSlidingWindowAssigner.of(2, 2)]
)
def test_assigners_by_name(golden: Any, assigner: Any) -> None:
    golden(
        """
        time         0    5    10
        a            123
        a fires  #0                       1 2
        end
        """,
        shown(assigner),
        leaves=True,
    )


def test_counted_and_reduced(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            123
        a gives                           6
        a               456
        a gives                           15
        end
        """,
        lambda stream: stream.key_by(by_key).count_window(3).reduce(added),
        leaves=True,
    )


# Over all keys


@also_on_spark
def test_windows_over_all_keys(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        b             3
        a                 |
        all fires    [----)               1 2 3
        end
        """,
        lambda stream: stream.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).process(
            ShowAll()
        ),
    )


class Size(AllWindowFunction):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        yield "all", window, f"{len(list(inputs))} elements"


def test_apply_over_all_keys(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        b             3   |
        all fires    [----)               3 elements
        end
        """,
        lambda stream: stream.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).apply(
            Size()
        ),
    )


def test_reduce_over_all_keys(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1-2
        b             3   |
        all fires    [----)               6
        end
        """,
        lambda stream: stream.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(
            added, ShowAll()
        ),
    )


def test_counts_over_all_keys(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1
        b             2
        all fires  #0                     1 2
        a              3
        b               4
        all fires  #1                     3 4
        end
        """,
        lambda stream: stream.count_window_all(2).process(ShowAll()),
        leaves=True,
    )
