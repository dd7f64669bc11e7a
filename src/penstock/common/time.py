"""Spans and points of time as Flink's API names them, and the one way to turn a span into ms.

Knows nothing of clocks, timers or windows.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, TypeAlias

from penstock.errors import InvalidArgumentError

__all__ = ["Duration", "Instant", "Time", "parse_duration", "to_millis", "to_signed_millis"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000
_MILLIS_PER_SECOND = 1_000
_MILLIS_PER_MINUTE = 60 * _MILLIS_PER_SECOND
_MILLIS_PER_HOUR = 60 * _MILLIS_PER_MINUTE
_MILLIS_PER_DAY = 24 * _MILLIS_PER_HOUR


@total_ordering
class Time:
    """A span in milliseconds: the size of a window, the gap of a session."""

    __slots__ = ("_millis",)

    def __init__(self, milliseconds: int) -> None:
        self._millis = _whole("Time", milliseconds)

    def to_milliseconds(self) -> int:
        return self._millis

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        return Time(_whole("seconds", seconds) * _MILLIS_PER_SECOND)

    @staticmethod
    def minutes(minutes: int) -> Time:
        return Time(_whole("minutes", minutes) * _MILLIS_PER_MINUTE)

    @staticmethod
    def hours(hours: int) -> Time:
        return Time(_whole("hours", hours) * _MILLIS_PER_HOUR)

    @staticmethod
    def days(days: int) -> Time:
        return Time(_whole("days", days) * _MILLIS_PER_DAY)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._millis == other._millis

    def __lt__(self, other: Time) -> bool:
        return self._millis < other._millis if isinstance(other, Time) else NotImplemented

    def __hash__(self) -> int:
        return hash((Time, self._millis))

    def __repr__(self) -> str:
        return f"Time({self._millis} ms)"


@total_ordering
class Duration:
    """A span in nanoseconds. Usable wherever a `Time` is."""

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = _whole("Duration", nanos)

    @staticmethod
    def of_days(days: int) -> Duration:
        return Duration.of_millis(_whole("days", days) * _MILLIS_PER_DAY)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        return Duration.of_millis(_whole("hours", hours) * _MILLIS_PER_HOUR)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        return Duration.of_millis(_whole("minutes", minutes) * _MILLIS_PER_MINUTE)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        return Duration.of_millis(_whole("seconds", seconds) * _MILLIS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        return Duration(_whole("millis", millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        return Duration(nanos)

    def to_nanos(self) -> int:
        return self._nanos

    def to_millis(self) -> int:
        return self._nanos // _NANOS_PER_MILLI

    def to_milliseconds(self) -> int:
        """The name that `Time` uses, so that either fits where a window size is asked."""
        return self.to_millis()

    def to_timedelta(self) -> dt.timedelta:
        return dt.timedelta(microseconds=self._nanos // 1000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __lt__(self, other: Duration) -> bool:
        return self._nanos < other._nanos if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash((Duration, self._nanos))

    def __repr__(self) -> str:
        millis, rest = divmod(self._nanos, _NANOS_PER_MILLI)
        return f"Duration({self._nanos} ns)" if rest else f"Duration({millis} ms)"


@dataclass(frozen=True, order=True, init=False, repr=False)
class Instant:
    """A point on the UTC time line; `nanos` counts forward from `seconds`, also before 1970."""

    __slots__ = ("nanos", "seconds")

    seconds: int
    nanos: int

    def __init__(self, seconds: int, nanos: int) -> None:
        carry, rest = divmod(_whole("nanos", nanos), _NANOS_PER_SECOND)
        object.__setattr__(self, "seconds", _whole("seconds", seconds) + carry)
        object.__setattr__(self, "nanos", rest)

    def to_epoch_milli(self) -> int:
        return self.seconds * _MILLIS_PER_SECOND + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        seconds, millis = divmod(_whole("epoch_milli", epoch_milli), _MILLIS_PER_SECOND)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __reduce__(self) -> tuple[Any, ...]:
        return Instant, (self.seconds, self.nanos)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


Span: TypeAlias = Time | Duration | dt.timedelta | int


def to_millis(value: Span, what: str) -> int:
    """`value` in milliseconds; `what` names it in the error if it is no span, or a negative one."""
    millis = to_signed_millis(value, what)
    if millis < 0:
        raise InvalidArgumentError.of(what, "zero or longer", value)
    return millis


def to_signed_millis(value: Time | Duration | dt.timedelta | int, what: str) -> int:
    """The same for what may lie on either side of something, such as an offset."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, (Time, Duration)):
        return value.to_milliseconds()
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    raise InvalidArgumentError.of(
        what, "a Time, a Duration, a datetime.timedelta or whole milliseconds", value
    )


_UNITS_IN_NANOS = {
    unit: nanos
    for units, nanos in (
        ("ns nano nanos nanosecond nanoseconds", 1),
        ("us µs micro micros microsecond microseconds", 1_000),
        ("ms milli millis millisecond milliseconds", _NANOS_PER_MILLI),
        ("s sec secs second seconds", _NANOS_PER_SECOND),
        ("m min mins minute minutes", 60 * _NANOS_PER_SECOND),
        ("h hour hours", 3_600 * _NANOS_PER_SECOND),
        ("d day days", 86_400 * _NANOS_PER_SECOND),
    )
    for unit in units.split()
}


def parse_duration(text: str, what: str) -> int:
    """Milliseconds from text such as ``10 s``, ``200ms``, ``1 min``; a bare number is ms."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-zµ]*)\s*", text.lower())
    nanos = _UNITS_IN_NANOS.get(match[2] or "ms") if match else None
    if match is None or nanos is None:
        raise InvalidArgumentError.of(what, "a duration such as '10 s', '200ms' or '1 min'", text)
    return int(match[1]) * nanos // _NANOS_PER_MILLI


def _whole(what: str, value: int) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgumentError.of(what, "a whole number", value)
    return int(value)
