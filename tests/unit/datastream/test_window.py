from __future__ import annotations

import pickle
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.window import (
    MAX_LONG_VALUE,
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    TriggerResult,
)
from penstock.errors import InvalidArgumentError

times = st.integers(-(10**15), 10**15)


@given(times, times, st.integers(1, 10**9))
def test_a_timestamp_lies_in_its_aligned_window(timestamp: int, offset: int, size: int) -> None:
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0


def test_windows_start_at_multiples_of_their_size() -> None:
    starts = [TimeWindow.get_window_start_with_offset(t, 0, 7) for t in (-8, -7, -1, 0, 6, 7)]
    assert starts == [-14, -7, -7, 0, 0, 7]
    assert TimeWindow.get_window_start_with_offset(5, 3, 7) == 3


def test_a_window_needs_a_size() -> None:
    with pytest.raises(InvalidArgumentError, match="window size"):
        TimeWindow.get_window_start_with_offset(5, 0, 0)


def merges(*windows: tuple[int, int]) -> list[tuple[list[TimeWindow], TimeWindow]]:
    class Collect(MergingWindowAssigner.MergeCallback[TimeWindow]):
        def merge(self, to_be_merged: Iterable[TimeWindow], merge_result: TimeWindow) -> None:
            found.append((sorted(to_be_merged), merge_result))

    found: list[tuple[list[TimeWindow], TimeWindow]] = []
    TimeWindow.merge_windows([TimeWindow(*window) for window in windows], Collect())
    return found


def test_overlapping_windows_merge() -> None:
    # 0         5         10        15        20
    # [---------)    [----)
    #       [--------)              [----)
    assert merges((8, 10), (0, 5), (15, 17), (3, 8)) == [
        ([TimeWindow(0, 5), TimeWindow(3, 8), TimeWindow(8, 10)], TimeWindow(0, 10))
    ]
    assert merges((0, 1), (2, 3)) == []


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 10)), max_size=20))
def test_merged_windows_are_disjoint_and_cover_their_parts(spans: list[tuple[int, int]]) -> None:
    windows = [(start, start + length) for start, length in spans]
    results = [cover for _, cover in merges(*windows)]
    for parts, cover in merges(*windows):
        assert cover == TimeWindow(min(p.start for p in parts), max(p.end for p in parts))
    assert not any(
        a.intersects(b) for i, a in enumerate(results) for j, b in enumerate(results) if i != j
    )


def test_windows_are_values() -> None:
    for window in (TimeWindow(0, 5), CountWindow(3), GlobalWindow()):
        copy = pickle.loads(pickle.dumps(window))
        assert copy == window
        assert hash(copy) == hash(window)
    assert len({TimeWindow(0, 5), CountWindow(0), GlobalWindow.get(), GlobalWindow()}) == 3


def test_last_timestamps() -> None:
    assert TimeWindow(0, 5).max_timestamp() == 4
    assert CountWindow(1).max_timestamp() == GlobalWindow().max_timestamp() == MAX_LONG_VALUE


def test_trigger_results() -> None:
    assert [(r.name, r.is_fire(), r.is_purge()) for r in TriggerResult] == [
        ("CONTINUE", False, False),
        ("FIRE_AND_PURGE", True, True),
        ("FIRE", True, False),
        ("PURGE", False, True),
    ]
