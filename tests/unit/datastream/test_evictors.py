from __future__ import annotations

from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.time import Time
from penstock.datastream.window import (
    CountEvictor,
    DeltaEvictor,
    DeltaFunction,
    Evictor,
    TimeEvictor,
    TimestampedValue,
    TimeWindow,
)
from penstock.errors import InvalidArgumentError

WINDOW = TimeWindow(0, 100)
CONTEXT: Any = None


def elements(*values: Any, timestamps: Any = None) -> list[TimestampedValue]:
    times = range(len(values)) if timestamps is None else timestamps
    return [TimestampedValue(v, t) for v, t in zip(values, times, strict=True)]


def kept(evictor: Any, given: list[TimestampedValue]) -> list[Any]:
    """What stays, whichever of the two methods evicts: the other one must not."""
    copy = cloudpickle.loads(cloudpickle.dumps(evictor))
    before = list(given)
    results = [
        method(given, len(given), WINDOW, CONTEXT)
        for method in (copy.evict_before, copy.evict_after)
    ]
    assert given == before
    evicting, other = reversed(results) if copy.do_evict_after else results
    assert other is None
    return [element.value for element in (given if evicting is None else evicting)]


@pytest.mark.parametrize("after", [False, True])
def test_count_keeps_the_last(after: bool) -> None:
    evictor = CountEvictor.of(3, after)
    assert kept(evictor, elements(1, 2, 3, 4, 5)) == [3, 4, 5]
    assert kept(evictor, elements(1, 2, 3)) == [1, 2, 3]
    assert kept(evictor, []) == []


@pytest.mark.parametrize("after", [False, True])
def test_time_keeps_the_young(after: bool) -> None:
    evictor = TimeEvictor.of(Time.milliseconds(10), after)
    # Measured from the largest timestamp, wherever it stands; exactly that old is too old.
    given = elements("a", "b", "c", "d", timestamps=[5, 20, 11, 10])
    assert kept(evictor, given) == ["b", "c"]
    assert kept(evictor, []) == []


def test_time_leaves_elements_without_timestamps() -> None:
    assert kept(TimeEvictor.of(10), elements("a", "b", timestamps=[None, None])) == ["a", "b"]
    assert kept(TimeEvictor.of(10), elements("a", "b", "c", timestamps=[1, None, 50])) == ["b", "c"]


class Distance(DeltaFunction[float]):
    def get_delta(self, old_data_point: float, new_data_point: float) -> float:
        return abs(new_data_point - old_data_point)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("delta", [Distance(), lambda old, new: abs(new - old)])
def test_delta_keeps_what_is_near_the_last(delta: Any, after: bool) -> None:
    evictor = DeltaEvictor.of(5, delta, after)
    assert kept(evictor, elements(10, 1, 4, 9, 5)) == [1, 4, 9, 5]
    assert kept(evictor, elements(5)) == [5]
    assert kept(evictor, []) == []


@given(st.lists(st.integers(-100, 100)), st.integers(1, 50))
def test_what_is_kept_is_in_order(values: list[int], limit: int) -> None:
    given = elements(*values, timestamps=values)
    newest = max(values, default=0)
    assert kept(TimeEvictor.of(limit), given) == [v for v in values if newest - v < limit]
    assert kept(CountEvictor.of(limit), given) == values[max(0, len(values) - limit) :]
    near = [v for v in values if abs(values[-1] - v) < limit]
    assert kept(DeltaEvictor.of(limit, Distance()), given) == near


def test_evictors_describe_themselves() -> None:
    class Own(Evictor[Any, Any]):
        def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            elements.clear()

        def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> None: ...

    assert repr(CountEvictor.of(3)) == "CountEvictor(3)"
    assert repr(TimeEvictor.of(Time.seconds(1), True)) == "TimeEvictor(1000, after)"
    assert repr(DeltaEvictor.of(0.5, max)) == "DeltaEvictor(0.5)"
    assert repr(Own()) == "Own()"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CountEvictor.of(0), "count of CountEvictor.*got int 0"),
        (lambda: TimeEvictor.of(0), "time of TimeEvictor"),
        (lambda: TimeEvictor.of(None), "a Time, a Duration"),
        (lambda: DeltaEvictor.of(None, max), "threshold of DeltaEvictor"),
        (lambda: DeltaEvictor.of(3, "max"), "delta function of DeltaEvictor"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence):
        make()
