"""Row C10: assigners of one's own, merging ones too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drawn_runs import ShowSorted, also_on_spark, shown

from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    CountTrigger,
    CountWindow,
    EventTimeTrigger,
    MergingWindowAssigner,
    PurgingTrigger,
    TimeWindow,
    WindowAssigner,
)


class UpToValue(WindowAssigner):
    """An element is in as many windows as its value says, each a second longer; 0 is in none."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        for n in range(element.number):
            yield TimeWindow(0, 1000 * (n + 1))

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


@also_on_spark
def test_windows_of_any_length(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            3
        a            1
        a            0                    ; in no window at all, and not late
        a              |
        a fires      [)                   3 1
        a fires      [-)                  3
        end
        a fires      [--)                 3
        """,
        shown(UpToValue()),
    )


class Chapters(WindowAssigner):
    """Every 9 begins a new chapter of its key: the assigner has state of its own."""

    CHAPTER = ValueStateDescriptor("chapter")

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        chapter = context.get_runtime_context().get_state(self.CHAPTER)
        if element.value == "9":
            chapter.update((chapter.value() or 0) + 1)
        return [CountWindow(chapter.value() or 0)]

    def get_default_trigger(self, env: Any) -> Any:
        return PurgingTrigger.of(CountTrigger.of(2))

    def is_event_time(self) -> bool:
        return False


def test_an_assigner_with_state(golden: Any) -> None:
    golden(
        """
        time         0    5    10
        a            1
        b             2
        a              9
        b               3
        b fires  #0                       2 3
        a                4
        a fires  #1                       9 4
        end
        """,
        shown(Chapters()),
        leaves=True,
    )


class ByTens(MergingWindowAssigner):
    """Neighbours grow together as long as they are in the same ten seconds."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return [TimeWindow(timestamp, timestamp + 1000)]

    def merge_windows(self, windows: Iterable[Any], callback: Any) -> None:
        tens: dict[int, set[Any]] = {}
        for window in windows:
            tens.setdefault(window.start // 10_000, set()).add(window)
        for group in tens.values():
            if len(group) > 1:
                start = min(window.start for window in group)
                callback.merge(group, TimeWindow(start, max(window.end for window in group)))

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger.create()

    def is_event_time(self) -> bool:
        return True


@also_on_spark
def test_a_merging_assigner(golden: Any) -> None:
    golden(
        """
        time         0    5    10   15
        a              1     2 3
        a               4
        a                       |
        a fires        [------)           1 2 4
        a fires                [)         3
        end
        """,
        shown(ByTens(), ShowSorted()),
    )
