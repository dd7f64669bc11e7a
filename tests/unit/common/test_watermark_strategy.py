"""Watermark strategies are immutable descriptions."""

import datetime as dt
import pickle
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from penstock.common import AssignerWithPeriodicWatermarksWrapper, Duration, Row, WatermarkStrategy
from penstock.common.watermark_strategy import (
    FieldTime,
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkKind,
)
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Punctuated(WatermarkGenerator):
    def on_event(self, event, timestamp, output):
        output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        pass


def test_kinds():
    assert WatermarkStrategy.no_watermarks().kind is WatermarkKind.NONE
    monotonous = WatermarkStrategy.for_monotonous_timestamps()
    assert (monotonous.kind, monotonous.out_of_orderness_millis) == (WatermarkKind.BOUNDED, 0)
    for span in (Duration.of_seconds(2), dt.timedelta(seconds=2), 2000):
        bounded = WatermarkStrategy.for_bounded_out_of_orderness(span)
        assert bounded.out_of_orderness_millis == 2000
    custom = WatermarkStrategy.for_generator(Punctuated)
    assert custom.kind is WatermarkKind.CUSTOM
    assert isinstance(custom.generator(), Punctuated)


def test_with_gives_a_new_strategy():
    base = WatermarkStrategy.for_monotonous_timestamps()
    full = (
        base.with_timestamp_assigner(Second())
        .with_idleness(Duration.of_seconds(1))
        .with_watermark_alignment("g", Duration.of_seconds(3))
    )
    assert base == WatermarkStrategy.for_monotonous_timestamps()
    assert full.timestamp_assigner.extract_timestamp(("a", 5), -1) == 5
    assert full.idle_timeout_millis == 1000
    assert (full.alignment.group, full.alignment.max_drift_millis) == ("g", 3000)
    assert full.alignment.update_interval_millis == 1000


def test_assigner_may_be_a_function():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda v, ts: v * 2)
    assert strategy.timestamp_assigner.extract_timestamp(4, 0) == 8


class Word(NamedTuple):
    count: int  # what a tuple has anyway
    at: int


@pytest.mark.parametrize("field", ["at", 0, 1])
def test_assigner_may_be_a_field(field):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(field)
    assert strategy.timestamp_assigner == FieldTime(field)
    assert strategy != strategy.with_timestamp_assigner("else")
    assert hash(strategy.timestamp_assigner) == hash(FieldTime(field))
    assert pickle.loads(pickle.dumps(strategy)) == strategy


@pytest.mark.parametrize(
    ("field", "record"),
    [
        ("at", {"at": 5}),
        ("at", Word(1, 5)),
        ("count", Word(5, 1)),
        ("at", Row(at=5)),
        ("at", SimpleNamespace(at=5)),
        (1, ("a", 5)),
        (1, ["a", 5]),
        (1, Word(1, 5)),
        (1, Row("a", 5)),
        (1, {1: 5}),
    ],
)
def test_a_field_may_be_asked_for_by_hand(field, record):
    assert FieldTime(field).extract_timestamp(record, -1) == 5


@pytest.mark.parametrize("bad", [True, False, 1.0, None, b"at", ["at"], ("at", 1)])
def test_what_is_neither_assigner_nor_field(bad):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(InvalidArgumentError, match="a function, or a field's name or position"):
        strategy.with_timestamp_assigner(bad)
    with pytest.raises(InvalidArgumentError, match="a position from 0 on or a name"):
        FieldTime(bad)


@pytest.mark.parametrize("bad", ["", -1])
def test_what_no_field_can_be_called(bad):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.raises(InvalidArgumentError, match="a position from 0 on or a name, got"):
        strategy.with_timestamp_assigner(bad)


def test_refuses():
    strategy = WatermarkStrategy.no_watermarks()
    with pytest.raises(InvalidArgumentError, match="an instance of TimestampAssigner"):
        strategy.with_timestamp_assigner(Second)
    with pytest.raises(InvalidArgumentError, match="idle_timeout must be longer than zero"):
        strategy.with_idleness(0)
    with pytest.raises(InvalidArgumentError, match="max_out_of_orderness must be zero or longer"):
        WatermarkStrategy.for_bounded_out_of_orderness(-1)
    for bad in (3, None, Punctuated()):
        with pytest.raises(InvalidArgumentError, match="a WatermarkGenerator class or a function"):
            WatermarkStrategy.for_generator(bad)
    with pytest.raises(InvalidArgumentError, match="max_out_of_orderness"):
        WatermarkStrategy.for_bounded_out_of_orderness("5 s")
    with pytest.raises(InvalidArgumentError, match="idle_timeout must be zero or longer"):
        strategy.with_idleness(Duration.of_seconds(-1))
    with pytest.raises(InvalidArgumentError, match="watermark_group must be a non-empty str"):
        strategy.with_watermark_alignment("", 1)
    with pytest.raises(InvalidArgumentError, match="max_allowed_watermark_drift"):
        strategy.with_watermark_alignment("g", -1)
    with pytest.raises(InvalidArgumentError, match="timestamps from the clock"):
        WatermarkStrategy.for_ingestion_time().with_timestamp_assigner(lambda v, ts: 1)
    with pytest.raises(InvalidArgumentError, match="timestamps from the clock"):
        WatermarkStrategy.for_ingestion_time().with_timestamp_assigner("at")
    with pytest.raises(UnsupportedFeatureError, match="for_generator"):
        AssignerWithPeriodicWatermarksWrapper(None)
