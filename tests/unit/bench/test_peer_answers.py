"""The direct computations, against loops that nobody can get wrong."""

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from bench.peers import expected
from bench.peers.expected import Columns, Expected
from bench.peers.functions import (
    GAP_MILLIS,
    NEAR_MILLIS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    added,
    amount_in,
    average_of,
    digest_of,
    end_of_window,
    nothing_yet,
    paired,
    prepared,
)
from hypothesis import given, settings
from hypothesis import strategies as st

_ROW = st.tuples(
    st.sampled_from(["sensor_1", "sensor_2", "sensor_3"]),
    st.integers(10_000, 25_000),
    st.integers(0, 1600).map(lambda sixteenths: sixteenths / 16),
)
_FEW = settings(max_examples=25)
_ROWS = st.lists(_ROW, min_size=1, max_size=40)


def _columns(rows: list[Any]) -> Columns:
    ids, times, temperatures = zip(*rows, strict=True)
    return Columns(pa.table({"id": ids, "ts": times, "temp": temperatures}))


def _summed(answers: list[Any], weight_of: Any) -> Expected:
    return Expected(len(answers), sum(weight_of(answer) for answer in answers))


def _average(readings: list[Any]) -> Any:
    held = nothing_yet()
    for reading in readings:
        held = added(held, reading)
    return average_of(held)


@pytest.mark.parametrize("slide", [SIZE_MILLIS, SLIDE_MILLIS])
@_FEW
@given(rows=_ROWS)
def test_windows(slide: int, rows: list[Any]) -> None:
    windows = defaultdict(list)
    for reading in map(prepared, rows):
        for start in range(0, 30_000, slide):
            if start <= reading[1] < start + SIZE_MILLIS:
                windows[reading[0], start].append(reading)
    answers = [_average(readings) for readings in windows.values()]
    assert expected.windows(_columns(rows), SIZE_MILLIS, slide) == _summed(answers, digest_of)


@_FEW
@given(rows=_ROWS)
def test_sessions(rows: list[Any]) -> None:
    sessions: list[list[Any]] = []
    for reading in sorted(map(prepared, rows)):
        last = sessions[-1][-1] if sessions else ("", 0, 0.0)
        if last[0] == reading[0] and reading[1] - last[1] <= GAP_MILLIS:
            sessions[-1].append(reading)
        else:
            sessions.append([reading])
    answers = [_average(readings) for readings in sessions]
    assert expected.sessions(_columns(rows), GAP_MILLIS) == _summed(answers, digest_of)


@_FEW
@given(rows=_ROWS)
def test_timers(rows: list[Any]) -> None:
    counts: dict[Any, int] = defaultdict(int)
    for sensor, at, _ in rows:
        counts[sensor, end_of_window(at)] += 1
    answers = [(*place, count) for place, count in counts.items()]
    assert expected.timers(_columns(rows)) == _summed(answers, digest_of)


@_FEW
@given(lefts=_ROWS, rights=_ROWS)
def test_interval_join(lefts: list[Any], rights: list[Any]) -> None:
    answers = [
        paired(left, right)
        for left in map(prepared, lefts)
        for right in map(prepared, rights)
        if left[0] == right[0] and 0 <= right[1] - left[1] <= NEAR_MILLIS
    ]
    found = expected.interval_join(_columns(lefts), _columns(rights))
    assert found == _summed(answers, amount_in)
