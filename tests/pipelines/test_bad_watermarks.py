"""Row B2: strategies that are wrong, or go wrong, are refused with the user's line."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError, UserFunctionError
from penstock.testing import ScriptedSource


def running(
    env: StreamExecutionEnvironment, strategy: WatermarkStrategy, place: str, records: Any = (1,)
) -> None:
    if place == "source":
        list(env.from_source(ScriptedSource([list(records)]), strategy, "in").execute_and_collect())
    else:
        stream = env.from_collection(list(records)).map(lambda n: n)
        list(stream.assign_timestamps_and_watermarks(strategy).execute_and_collect())


WHERE = {
    "source": r"'Source: in' \(.*test_bad_watermarks.py:\d+.*",
    "later": r"'Timestamps/Watermarks' \(.*test_bad_watermarks.py:\d+.*",
}
everywhere = pytest.mark.parametrize("place", ["source", "later"])


@pytest.mark.parametrize(
    ("stamp", "place"), [(None, "source"), ("1", "later"), (1.5, "source"), (True, "later")]
)
def test_a_timestamp_that_is_none(env: StreamExecutionEnvironment, stamp: Any, place: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: stamp
    )
    message = WHERE[place] + "an int, in milliseconds"
    with pytest.raises(InvalidArgumentError, match=message):
        running(env, strategy, place)


@everywhere
@pytest.mark.parametrize(
    ("field", "records", "message"),
    [
        ("at", [{"time": 5}], "there is no field 'at' .*its fields are 'time'"),
        (2, [("a", 5)], "there is no position 2 .*it has 2 fields"),
        ("at", [5], "there is no field 'at' .*at position 0"),
        (1, [("a", "5")], "must be an int, in milliseconds, got str '5'"),
        ("at", [{"at": dt.datetime(2026, 1, 2)}], r"in milliseconds \(of a datetime: "),
        ("at", [{"at": 5}, {"at": 6}, {}], "there is no field 'at' .*it has no fields"),
    ],
)
def test_a_field_that_is_no_timestamp(
    env: StreamExecutionEnvironment, field: Any, records: Any, message: str, place: str
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(field)
    with pytest.raises(InvalidArgumentError, match=WHERE[place] + message):
        running(env, strategy, place, records)


@everywhere
def test_records_without_timestamps(env: StreamExecutionEnvironment, place: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(InvalidArgumentError, match=WHERE[place] + "with_timestamp_assigner"):
        running(env, strategy, place)


@everywhere
def test_an_assigner_that_raises(env: StreamExecutionEnvironment, place: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record["time"]
    )
    where = WHERE[place].replace("'", "").split(" \\(")[0]
    with pytest.raises(UserFunctionError, match=where + ".*TypeError"):
        running(env, strategy, place)


class Says(WatermarkGenerator):
    """Says what it is given, to records or when it is asked."""

    def __init__(self, what: Any, to_records: bool) -> None:
        self._what, self._to_records = what, to_records

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        if self._to_records:
            output.emit_watermark(self._what)

    def on_periodic_emit(self, output: Any) -> None:
        if not self._to_records:
            output.emit_watermark(self._what)


@pytest.mark.parametrize(
    ("watermark", "to_records", "place"),
    [(None, True, "source"), ("5", False, "source"), (5.0, True, "later"), (True, False, "later")],
)
def test_a_watermark_that_is_none(
    env: StreamExecutionEnvironment, watermark: Any, to_records: bool, place: str
) -> None:
    strategy = WatermarkStrategy.for_generator(lambda: Says(watermark, to_records))
    strategy = strategy.with_timestamp_assigner(lambda record, _: 1)
    message = WHERE[place] + "a watermark from the generator must be an int, in milliseconds"
    with pytest.raises(InvalidArgumentError, match=message):
        running(env, strategy, place)


@everywhere
def test_a_function_that_makes_no_generator(env: StreamExecutionEnvironment, place: str) -> None:
    strategy = WatermarkStrategy.for_generator(lambda: Says)  # type: ignore[arg-type, return-value]
    strategy = strategy.with_timestamp_assigner(lambda record, _: 1)
    with pytest.raises(
        InvalidArgumentError, match=WHERE[place] + "a WatermarkGenerator, got ABCMeta"
    ):
        running(env, strategy, place)


def test_alignment_needs_a_reader_that_can_wait(env: StreamExecutionEnvironment) -> None:
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_seconds(1)
    )
    with pytest.raises(
        UnsupportedFeatureError, match=r"alignment.*give the strategy to from_source"
    ):
        env.from_elements(1).assign_timestamps_and_watermarks(aligned)


def test_what_is_no_strategy(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(InvalidArgumentError, match="a WatermarkStrategy, got int 5"):
        env.from_source(ScriptedSource([[1]]), 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a WatermarkStrategy, got NoneType"):
        env.from_elements(1).assign_timestamps_and_watermarks(None)  # type: ignore[arg-type]
