"""Ready-made evictors: by number, by time and by distance."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from penstock.datastream._time_triggers import Span, positive_millis
from penstock.datastream._triggers import Delta, delta_of, number, positive_count
from penstock.datastream._window_contracts import Evictor, TimestampedValue
from penstock.datastream._windows import Window

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class _Once(Evictor[T, W]):
    """Evicts before the function, or if so wanted after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    @abstractmethod
    def _keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        """What stays, of at least one element."""

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: W, ctx: Evictor.EvictorContext
    ) -> list[TimestampedValue] | None:
        return None if self.do_evict_after or not elements else self._keep(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: W, ctx: Evictor.EvictorContext
    ) -> list[TimestampedValue] | None:
        return self._keep(elements) if self.do_evict_after and elements else None

    def _shown(self, value: object) -> str:
        after = ", after" if self.do_evict_after else ""
        return f"{type(self).__name__}({value}{after})"


class CountEvictor(_Once[T, W]):
    """Keeps so many elements, the last ones."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.max_count = positive_count(max_count, "the count of CountEvictor")

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor[Any, Any]:
        return CountEvictor(max_count, do_evict_after)

    def _keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        return elements[-self.max_count :]

    def __repr__(self) -> str:
        return self._shown(self.max_count)


class TimeEvictor(_Once[T, W]):
    """Keeps what is younger than so much, seen from the largest timestamp in the window.

    A window whose first element has no timestamp is left as it is.
    """

    def __init__(self, window_size: Span, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.window_size = positive_millis(window_size, "the time of TimeEvictor")

    @staticmethod
    def of(window_size: Span, do_evict_after: bool = False) -> TimeEvictor[Any, Any]:
        return TimeEvictor(window_size, do_evict_after)

    def _keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        if elements[0].timestamp is None:
            return elements
        newest = max(e.timestamp for e in elements if e.timestamp is not None)
        cutoff = newest - self.window_size
        return [e for e in elements if e.timestamp is None or e.timestamp > cutoff]

    def __repr__(self) -> str:
        return self._shown(self.window_size)


class DeltaEvictor(_Once[T, W]):
    """Keeps what is nearer than the threshold to the last element."""

    def __init__(
        self, threshold: float, delta_function: Delta, do_evict_after: bool = False
    ) -> None:
        super().__init__(do_evict_after)
        self.threshold = number(threshold, "the threshold of DeltaEvictor")
        self._delta = delta_of(delta_function, "the delta function of DeltaEvictor")

    @staticmethod
    def of(
        threshold: float, delta_function: Delta, do_evict_after: bool = False
    ) -> DeltaEvictor[Any, Any]:
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        last = elements[-1].value
        return [e for e in elements if self._delta(e.value, last) < self.threshold]

    def __repr__(self) -> str:
        return self._shown(self.threshold)
