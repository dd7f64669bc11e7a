"""Metrics that user functions register, under PyFlink's names.

Plain values in memory: counting must cost next to nothing, since it happens per record. A task
hands `MetricGroup.snapshot()` to whoever collects them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.errors import InvalidArgumentError

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]

_M = TypeVar("_M", bound="Metric")


class Metric(ABC):
    """Anything that can be reported."""

    @abstractmethod
    def snapshot(self) -> Any:
        """The present value, as numbers that can be pickled."""


class Counter(Metric):
    """Counts up and down."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def snapshot(self) -> int:
        return self._count


class Gauge(Metric):
    """Asks a callable for its value when it is reported."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def snapshot(self) -> Any:
        return self._read()


class Meter(Metric):
    """Counts events and knows their rate over the last `time_span_in_seconds`."""

    __slots__ = ("_clock", "_count", "_seconds", "_span", "_started")

    def __init__(
        self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if time_span_in_seconds <= 0:
            raise InvalidArgumentError.of("the time span", "greater than 0", time_span_in_seconds)
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._started = clock()
        # (second, events in it): bounded by the span, however many events come.
        self._seconds: deque[list[int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += value
        else:
            self._seconds.append([second, value])
            self._forget(second)

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Events per second over the span, or since the start if that is shorter."""
        now = self._clock()
        self._forget(int(now))
        lived = min(float(self._span), max(1.0, now - self._started))
        return sum(events for _, events in self._seconds) / lived

    def _forget(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - self._span:
            self._seconds.popleft()

    def snapshot(self) -> dict[str, float]:
        return {"count": self._count, "rate": self.get_rate()}


class Distribution(Metric):
    """Count, sum, minimum and maximum of integers."""

    __slots__ = ("_count", "_max", "_min", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0
        self._min: int | None = None
        self._max: int | None = None

    def update(self, value: int) -> None:
        self._count += 1
        self._sum += value
        if self._min is None or value < self._min:
            self._min = value
        if self._max is None or value > self._max:
            self._max = value

    def snapshot(self) -> dict[str, float | None]:
        return {
            "count": self._count,
            "sum": self._sum,
            "min": self._min,
            "max": self._max,
            "mean": self._sum / self._count if self._count else None,
        }


class MetricGroup:
    """A named place for metrics; asking twice for one name gives the same metric."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self._scope = scope
        self._groups: dict[tuple[str, ...], MetricGroup] = {}
        self._metrics: dict[str, Metric] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """The group `name` inside this one, or with `extra` the group `name.extra`."""
        key = (name,) if extra is None else (name, extra)
        return self._groups.setdefault(key, MetricGroup(self._scope + key))

    def counter(self, name: str) -> Counter:
        return self._metric(name, Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Report what `obj()` returns; a later gauge of the same name replaces it."""
        if not callable(obj):
            raise InvalidArgumentError.of(f"gauge {name!r}", "a callable without arguments", obj)
        self._metric(name, Gauge, lambda: Gauge(obj))
        self._metrics[name] = Gauge(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._metric(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        return self._metric(name, Distribution)

    def get_scope_components(self) -> tuple[str, ...]:
        """The names that lead here."""
        return self._scope

    def snapshot(self) -> dict[str, Any]:
        """Every metric of this group and those inside, by dotted name."""
        values = {
            ".".join((*self._scope, name)): metric.snapshot()
            for name, metric in self._metrics.items()
        }
        for group in self._groups.values():
            values.update(group.snapshot())
        return values

    def _metric(self, name: str, kind: type[_M], make: Callable[[], _M] | None = None) -> _M:
        found = self._metrics.get(name)
        if found is None:
            found = self._metrics[name] = make() if make else kind()
        if not isinstance(found, kind):
            raise InvalidArgumentError(
                f"metric {'.'.join((*self._scope, name))!r} is already a "
                f"{type(found).__name__.lower()}; give the {kind.__name__.lower()} another name"
            )
        return found
