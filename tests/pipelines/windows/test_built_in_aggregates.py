"""Built-in aggregates in windows of every kind, on records of Python sources."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream import aggregates as agg
from penstock.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

_RECORDS = [("a", 100, 1.0), ("b", 300, 9.0), ("a", 900, 3.0), ("a", 1500, None), ("a", 2900, 8.0)]
_AGGREGATE = agg.of(n=agg.count(), mean=agg.avg(2), last=agg.max_by(2, 1))
_SECOND, _TWO = Duration.of_seconds(1), Duration.of_seconds(2)


def _stream(env: StreamExecutionEnvironment) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[1]
    )
    return env.from_collection(_RECORDS).assign_timestamps_and_watermarks(strategy)


def _with_window(key: str, window: Any, results: Any) -> list[Any]:
    return [(key, window.start, *result) for result in results]


@pytest.mark.parametrize(
    ("assigner", "of_a"),
    [
        (
            TumblingEventTimeWindows.of(_SECOND),
            [(0, 2, 2.0, 3.0), (1000, 1, None, None), (2000, 1, 8.0, 8.0)],
        ),
        (
            EventTimeSessionWindows.with_gap(_SECOND),
            [(100, 3, 2.0, None), (2900, 1, 8.0, 8.0)],
        ),
        (
            SlidingEventTimeWindows.of(_TWO, _SECOND),
            [
                (-1000, 2, 2.0, 3.0),
                (0, 3, 2.0, None),
                (1000, 2, 8.0, 8.0),
                (2000, 1, 8.0, 8.0),
            ],
        ),
    ],
)
def test_windows_of_a_key(
    env: StreamExecutionEnvironment, assigner: Any, of_a: list[tuple[Any, ...]]
) -> None:
    windowed = _stream(env).key_by(0).window(assigner).aggregate(_AGGREGATE, _with_window)

    found = sorted(result for result in windowed.execute_and_collect() if result[0] == "a")

    assert found == [("a", *result) for result in of_a]


@pytest.mark.parametrize("executor", ["local"], indirect=True)
def test_windows_over_everything_and_with_an_evictor(env: StreamExecutionEnvironment) -> None:
    windows = _stream(env).window_all(TumblingEventTimeWindows.of(Duration.of_seconds(3)))

    assert list(windows.aggregate(_AGGREGATE).execute_and_collect()) == [(5, 5.25, 8.0)]
    last_two = windows.evictor(CountEvictor.of(2)).aggregate(_AGGREGATE)
    assert list(last_two.execute_and_collect()) == [(2, 8.0, 8.0)]
