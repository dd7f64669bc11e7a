"""Sliding windows put together from slices, each as long as the slide.

A record goes into one slice instead of into every window that it belongs to; when a window fires,
its slices are merged. So a record costs the same whatever the overlap. It takes an aggregate
function, which says how to merge; a reduce function only says how to go on with the next record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.datastream.functions import AggregateFunction
from penstock.errors import InvalidProgramError, short_repr
from penstock.options import WINDOW_SLICES
from penstock.runtime.codec import constant, own_copy
from penstock.runtime.operators.base import OperatorHost
from penstock.runtime.operators.windows.aligned import AlignedWindows

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_END = object()
_MOST_FIRST = 1000
"""Keys of which one is to come again soon."""


def can_slice(combine: Any, size: int, slide: int) -> bool:
    """Whether windows of this kind are made of whole slices that can be merged.

    Only sessions had to merge so far, so there are functions whose `merge` is not meant to be
    called: it raises, or returns nothing.
    """
    if not isinstance(combine, AggregateFunction) or slide >= size or size % slide:
        return False
    try:
        merged = combine.merge(combine.create_accumulator(), combine.create_accumulator())
    except Exception:
        return False
    return merged is not None


def check_merge(function: AggregateFunction, first: Any, second: Any) -> None:
    """Refuse a `merge` that gives something else than adding the records one after the other."""

    def added(*values: Any) -> Any:
        accumulator = function.create_accumulator()
        for value in values:
            accumulator = function.add(own_copy(value, "a record"), accumulator)
        return accumulator

    merged, together = function.merge(added(first), added(second)), added(first, second)
    if not _alike(merged, together):
        name = type(function).__name__
        raise InvalidProgramError(
            f"{name}.merge gives {short_repr(merged)} for the accumulators of two records, and "
            f"{name}.add gives {short_repr(together)} for one after the other; sliding windows are "
            f"put together by merge: correct it, or set {WINDOW_SLICES.key} to false"
        )


def _alike(one: Any, other: Any) -> bool:
    """Whether two accumulators may stand for the same: rounding is allowed for, and what cannot
    be compared counts as equal."""
    if isinstance(one, float) or isinstance(other, float):
        try:
            return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9) or (
                one != one and other != other
            )
        except TypeError:
            return False
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    plain = isinstance(one, str | bytes | int | set | frozenset | None)
    return not plain or one == other


class SlicedWindows(AlignedWindows):
    """A pane is a slice. The last window that a slice belongs to begins with it."""

    layout = "sliding windows in slices"

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        super().__init__(windowing, host)
        self._dumps, self._loads = windowing.contents_type.serializer()
        self._windows: set[int] = set()
        """Starts of the windows that will fire or be cleaned up."""
        self._aggregate: AggregateFunction = windowing.combine
        self._first: dict[Any, Any] | None = {}
        """By key the first record, until merging has been checked."""
        assert self.run is not None
        self._add_run = self.run
        self.run = self._checking

    # Records

    def _checking(self, values: Iterable[Any]) -> None:
        """Compare merging with adding for the first two records of a key. Those of different keys
        never come together: what they have alike within a key, a function may take from either."""
        records = iter(values)
        while self._first is not None:
            value = next(records, _END)
            if value is _END:
                return
            key, copy = self._host.scope.key, own_copy(value, "a record")
            self._add_run((value,))
            if key in self._first:
                check_merge(self._aggregate, self._first[key], copy)
                self._first = None
            elif len(self._first) < _MOST_FIRST:
                self._first[key] = copy
        self._add_run(records)

    def _windows_of(
        self, timestamp: int, newest: int
    ) -> tuple[list[tuple[int, dict[Any, Any]]], list[int]]:
        ended_until = self._ended_until(self.time.watermark)
        ended = [start for start in self._covering(newest) if start <= ended_until]
        if newest <= ended_until - self._lateness:
            return [], ended
        return [(newest, self._pane(newest))], ended

    def _panes_of_a_record(self) -> int:
        return 1

    def _covering(self, slice_start: int) -> range:
        """The windows that a slice belongs to."""
        return range(slice_start, slice_start - self._size, -self._slide)

    def _add_late(
        self, value: Any, timestamp: int, key: Any, ended: list[int], added: bool
    ) -> None:
        gone_until = self._ended_until(self.time.watermark) - self._lateness
        for start in ended:
            if start > gone_until:
                self._fire(start, [(key, self._held_by(start, key))])
        super()._add_late(value, timestamp, key, [], added)

    # Time

    def _begun(self, start: int) -> None:
        gone_until = self._ended_until(self.time.watermark) - self._lateness
        for window in self._covering(start):
            if window > gone_until:
                self._expect(window)

    def _open_windows(self) -> Iterable[int]:
        gone_until = self._ended_until(self.time.watermark) - self._lateness
        return {
            window
            for start in self._table.panes
            for window in self._covering(start)
            if window > gone_until
        }

    def _expect(self, start: int) -> None:
        if start not in self._windows:
            self._windows.add(start)
            super()._expect(start)

    # What windows hold

    def _slices(self, window: int) -> list[int]:
        panes = self._table.panes
        slices = range(window, window + self._size, self._slide)
        return [start for start in slices if start in panes]

    def _all_held(self, start: int) -> Iterable[tuple[Any, Any]]:
        merge = self._merge
        merged: dict[Any, Any] = {}
        for begin in self._slices(start):
            held = dict(self._table.contents(begin))
            if not constant(held.values()):
                held = {key: self._copied(value) for key, value in held.items()}
            if not merged:
                merged = held
                continue
            for key, value in held.items():
                before = merged.get(key)
                merged[key] = value if before is None else merge(before, value)
        return merged.items()

    def _held_by(self, start: int, key: Any) -> Any:
        found = None
        for begin in self._slices(start):
            value = self._table.of_key(begin, key)
            if value is not None:
                value = self._copied(value)
                found = value if found is None else self._merge(found, value)
        return found

    def _copied(self, value: Any) -> Any:
        """A merge may change what it gets, and other windows have the slice too."""
        return self._loads(self._dumps(value))

    def _forget(self, start: int) -> None:
        self._windows.discard(start)
        if start in self._table.panes:
            self._table.drop(start)
