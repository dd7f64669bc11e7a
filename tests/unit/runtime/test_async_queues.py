"""The order in which answers leave, against what must hold for any order of answers."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.operators.async_io.queues import Call, OrderedQueue, UnorderedQueue
from penstock.runtime.watermarks import WATERMARK

# What comes: a record, a control event, or an answer to one of the calls under way.
STEPS = st.lists(st.sampled_from(["record", "control"]) | st.integers(0, 9), max_size=60)


def left_after(queue: Any, steps: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What came, what was answered, and what left: records as numbers, control events as such."""
    came: list[Any] = []
    answered: list[int] = []
    left: list[Any] = []
    under_way: list[Call] = []

    def answer(call: Call) -> None:
        under_way.remove(call)
        call.results = []
        answered.append(call.value)
        queue.answered(call)

    def look() -> None:
        while True:
            while (call := queue.take()) is not None:
                left.append(call.value)
            if (control := queue.take_control()) is None:
                break
            left.append(control)

    for number, step in enumerate(steps):
        if step == "record":
            came.append(number)
            under_way.append(Call(number, None))
            queue.add(under_way[-1])
        elif step == "control":
            came.append((WATERMARK, number))
            queue.add_control(came[-1])
        elif under_way:
            answer(under_way[step % len(under_way)])
        look()
        assert queue.size == len([v for v in came if v not in left and isinstance(v, int)])
    while under_way:
        answer(under_way[-1])
        look()
    return came, answered, left


@given(STEPS)
def test_ordered(steps: list[Any]) -> None:
    came, _, left = left_after(OrderedQueue(), steps)
    assert left == came


@given(STEPS)
def test_unordered(steps: list[Any]) -> None:
    """Between two control events the order is that of the answers."""
    came, answered, left = left_after(UnorderedQueue(), steps)
    expected: list[Any] = []
    for is_record, group in groupby(came, key=lambda item: isinstance(item, int)):
        items = list(group)
        expected.extend(sorted(items, key=answered.index) if is_record else items)
    assert left == expected


def test_an_answer_leaves_at_once_if_nothing_is_before_it() -> None:
    for queue, first_out in ((OrderedQueue(), None), (UnorderedQueue(), "second")):
        first, second = Call("first", None), Call("second", None)
        queue.add(first)
        queue.add(second)
        second.results = []
        queue.answered(second)
        assert getattr(queue.take(), "value", None) == first_out
