"""Spans, points of time, and their way to milliseconds."""

import copy
import datetime as dt
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.time import (
    Duration,
    Instant,
    Time,
    parse_duration,
    to_millis,
    to_signed_millis,
)
from penstock.errors import InvalidArgumentError


def test_time_units():
    assert Time.milliseconds(5).to_milliseconds() == 5
    assert Time.seconds(5).to_milliseconds() == 5_000
    assert Time.minutes(2).to_milliseconds() == 120_000
    assert Time.hours(1).to_milliseconds() == 3_600_000
    assert Time.days(1).to_milliseconds() == 86_400_000


def test_duration_units():
    assert Duration.of_days(1).to_millis() == 86_400_000
    assert Duration.of_hours(1).to_millis() == 3_600_000
    assert Duration.of_minutes(1).to_millis() == 60_000
    assert Duration.of_seconds(1).to_millis() == 1_000
    assert Duration.of_millis(1).to_nanos() == 1_000_000
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Duration.of_millis(1500).to_timedelta() == dt.timedelta(seconds=1.5)


def test_spans_compare_hash_and_print():
    assert Time.seconds(60) == Time.minutes(1)
    assert Time.seconds(1) < Time.seconds(2) <= Time.seconds(2)
    assert len({Duration.of_millis(1000), Duration.of_seconds(1)}) == 1
    assert max(Duration.of_seconds(1), Duration.of_millis(999)) == Duration.of_seconds(1)
    assert Time.seconds(1) != Duration.of_seconds(1)
    assert repr(Time.seconds(1)) == "Time(1000 ms)"
    assert repr(Duration.of_seconds(1)) == "Duration(1000 ms)"
    assert repr(Duration.of_nanos(1)) == "Duration(1 ns)"


@pytest.mark.parametrize("value", [Time.seconds(1), Duration.of_nanos(7), Instant(-3, 9)])
def test_pickle_and_copy(value):
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_instant_before_the_epoch():
    assert Instant(-1, 500_000_000).to_epoch_milli() == -500
    assert Instant.of_epoch_milli(-500) == Instant(-1, 500_000_000)
    assert Instant(0, -1) == Instant(-1, 999_999_999)
    assert repr(Instant(1, 2)) == "Instant<1, 2>"


@given(st.integers(-(2**60), 2**60))
def test_instant_keeps_every_millisecond(millis):
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis


@given(st.lists(st.integers(-(10**15), 10**15)))
def test_instants_order_like_their_milliseconds(millis):
    instants = sorted(Instant.of_epoch_milli(m) for m in millis)
    assert [i.to_epoch_milli() for i in instants] == sorted(millis)


@pytest.mark.parametrize(
    ("value", "millis"),
    [
        (Time.seconds(2), 2000),
        (Duration.of_seconds(2), 2000),
        (dt.timedelta(seconds=2, microseconds=999), 2000),
        (2000, 2000),
        (0, 0),
    ],
)
def test_to_millis(value, millis):
    assert to_millis(value, "size") == millis


@pytest.mark.parametrize("value", [True, 1.5, "1 s", None, -1, Time(-1), dt.timedelta(days=-1)])
def test_to_millis_rejects(value):
    with pytest.raises(InvalidArgumentError, match=r"^size must be .* got "):
        to_millis(value, "size")


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10 s", 10_000),
        ("200ms", 200),
        ("1 min", 60_000),
        ("2 h", 7_200_000),
        ("1d", 86_400_000),
        ("15", 15),
        ("3 Minutes", 180_000),
        ("1500 us", 1),
    ],
)
def test_parse_duration(text, millis):
    assert parse_duration(text, "delay") == millis


@pytest.mark.parametrize("text", ["", "s", "1.5 s", "-1 s", "10 parsecs", "1 s 2"])
def test_parse_duration_rejects(text):
    with pytest.raises(InvalidArgumentError, match="delay must be a duration such as"):
        parse_duration(text, "delay")


def test_time_takes_whole_numbers_only():
    with pytest.raises(InvalidArgumentError, match="seconds must be a whole number, got float"):
        Time.seconds(0.5)


@pytest.mark.parametrize("span", [-1500, Time(-1500), Duration.of_millis(-1500)])
def test_a_signed_span(span):
    assert to_signed_millis(span, "it") == -1500
    with pytest.raises(InvalidArgumentError, match="it must be zero or longer"):
        to_millis(span, "it")
