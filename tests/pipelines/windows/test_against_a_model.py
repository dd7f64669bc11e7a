"""Random streams, watermarks, lateness, epochs and restarts: windows give what the model says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from drawn_runs import AskedTrigger, StreamHarness
from hypothesis import given, settings
from hypothesis import strategies as st
from window_model import Element, Firing, Model, aligned, session

from penstock.common import Time
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

LATE = OutputTag("late")
EVERY = 3
END = (1 << 63) - 1


class Kept(ProcessWindowFunction):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        values: list[int] = []
        for element in elements:
            values += [element.value] if isinstance(element, Element) else element.values
        window = context.window()
        yield Firing(key, window.start, window.end, tuple(sorted(values)))


class Result(NamedTuple):
    """What no accumulator is: a result of a result would show."""

    values: list[int]


class Gathered(AggregateFunction):
    """Keeps the values apart, so that one that is lost or doubled shows."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Element, accumulator: list[int]) -> list[int]:
        return [*accumulator, value.value]

    def get_result(self, accumulator: list[int]) -> Result:
        return Result(accumulator)

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return a + b


def process(windows: Any) -> Any:
    return windows.process(Kept())


def aggregate(windows: Any) -> Any:
    return windows.aggregate(Gathered(), Kept())


def reduce(windows: Any) -> Any:
    return windows.reduce(_summed, Kept())


def _summed(one: Element, other: Element) -> Element:
    return one._replace(value=one.value + other.value)


ASSIGNERS = {
    "tumbling": (
        lambda: TumblingEventTimeWindows.of(Time.milliseconds(5)),
        aligned(5, 5),
    ),
    "tumbling_with_offset": (
        lambda: TumblingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(-2)),
        aligned(5, 5, -2),
    ),
    "sliding": (
        lambda: SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(2)),
        aligned(6, 2),
    ),
    "sliding_unevenly": (
        lambda: SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(3)),
        aligned(5, 3),
    ),
    "sliding_with_gaps": (
        lambda: SlidingEventTimeWindows.of(Time.milliseconds(3), Time.milliseconds(5)),
        aligned(3, 5),
    ),
    "session": (
        lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
        session(4),
    ),
}
# The default is done by loops of its own; a trigger of another class is asked for every element.
TRIGGERS = {
    "default": None,
    "asked": AskedTrigger(),
    "count": CountTrigger.of(EVERY),
}

times = st.integers(-8, 40)
elements = st.builds(Element, st.sampled_from("ab"), times, st.integers(1, 9))
steps = st.lists(
    st.one_of(
        st.lists(elements, min_size=1, max_size=8),
        st.lists(elements, min_size=1, max_size=8),
        times,
        st.sampled_from(["cut", "restart"]),
    ),
    max_size=15,
)


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("assigner", ASSIGNERS)
@settings(max_examples=60)
@given(
    steps=steps,
    lateness=st.sampled_from([0, 0, 1, 4, 20]),
    compute=st.sampled_from([process, aggregate, reduce]),
)
def test_windows_are_as_modelled(
    assigner: str, trigger: str, steps: list[Any], lateness: int, compute: Any
) -> None:
    make, spans = ASSIGNERS[assigner]
    every = EVERY if trigger == "count" else None
    model = Model(spans, lateness, assigner == "session", every)
    env = StreamExecutionEnvironment.get_execution_environment()
    windows: Any = env.from_elements(1).key_by(lambda element: element.key).window(make())
    windows = windows.allowed_lateness(lateness).side_output_late_data(LATE)
    if TRIGGERS[trigger] is not None:
        windows = windows.trigger(TRIGGERS[trigger])
    harness = StreamHarness.of(compute(windows))
    reached = -(1 << 63)
    for step in [*steps, END]:
        expected: list[Firing] = []
        late: list[Element] = []
        harness.clear_outputs()
        if isinstance(step, list):
            for element in step:
                fired, too_late = model.element(element)
                expected, late = expected + fired, late + too_late
            harness.process_run(step, [element.time for element in step])
        elif isinstance(step, int):
            expected = model.watermark(step)
            reached = max(reached, step)
            harness.advance_watermark(reached)
        elif step == "cut":
            harness.snapshot()
        else:
            harness = StreamHarness.restore(harness.snapshot())
        if compute is reduce:
            expected = [firing._replace(values=(sum(firing.values),)) for firing in expected]
        assert _by_key(harness.outputs()) == _by_key(expected)
        assert harness.side_outputs(LATE) == late
    assert harness.entries() == []


def _by_key(firings: list[Firing]) -> dict[str, list[Firing]]:
    """Each key's in order; between keys there is none."""
    return {
        key: [firing for firing in firings if firing.key == key]
        for key in sorted({firing.key for firing in firings})
    }
