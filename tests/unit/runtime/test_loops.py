"""Loops that are put together from steps: the same results as one step after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph.location import Location
from penstock.runtime import loops
from penstock.runtime.attribution import Attribution
from penstock.runtime.loops import (
    ComposedRun,
    LineOwners,
    Step,
    before,
    ending,
    ending_in_strides,
    stamping,
)
from penstock.runtime.physical import PhysicalOperator
from penstock.state.backend import KeyScope

_HERE = Location("job.py", 1)


def _map(call: Callable[[Any], Any]) -> Step:
    return Step("value = $call(value)", call=call)


def _filter(call: Callable[[Any], Any]) -> Step:
    return Step("if not $call(value): continue", call=call)


def _flat_map(call: Callable[[Any], Iterable[Any]]) -> Step:
    return Step("for value in $call(value):", many=True, call=call)


_KINDS: dict[str, tuple[Step, Callable[[list[int]], list[int]]]] = {
    "map": (_map(lambda v: v + 1), lambda values: [v + 1 for v in values]),
    "filter": (_filter(lambda v: v % 3), lambda values: [v for v in values if v % 3]),
    "flat map": (_flat_map(lambda v: [v, -v]), lambda values: [w for v in values for w in (v, -v)]),
}


def _before_all(run: Callable[[Iterable[Any]], None], kinds: list[str]) -> Any:
    for kind in reversed(kinds):
        run = before(run, _KINDS[kind][0])
    return run


def _strides_of_two(gather: Callable[[Iterable[Any]], Any]) -> Callable[[Iterable[Any]], None]:
    def run(values: Iterable[Any]) -> None:
        drawn = list(values)
        for start in range(0, len(drawn), 2):
            gather(drawn[start : start + 2])

    return run


def _ends(taken: list[Any]) -> dict[str, Callable[[Iterable[Any]], None]]:
    step = Step("$take(value)", take=taken.append)
    return {
        "composed": ending(step),
        "in strides": ending_in_strides(step, _strides_of_two),
        "a function": taken.extend,
    }


@given(
    kinds=st.lists(st.sampled_from(sorted(_KINDS)), max_size=6),
    end=st.sampled_from(["composed", "in strides", "a function"]),
    values=st.lists(st.integers(-50, 50), max_size=8),
)
def test_steps_in_a_loop(kinds: list[str], end: str, values: list[int]) -> None:
    taken: list[Any] = []
    expected = values
    for kind in kinds:
        expected = _KINDS[kind][1](expected)

    _before_all(_ends(taken)[end], kinds)(values)

    assert taken == expected


def test_a_record_goes_through_all_steps_before_the_next_enters() -> None:
    said: list[str] = []
    run = ending(Step("$say(f'end {value}')", say=said.append))
    run = before(run, Step("$say(f'second {value}')", say=said.append))
    run = before(run, Step("$say(f'first {value}')", say=said.append))

    run(["a", "b"])

    assert said == ["first a", "second a", "end a", "first b", "second b", "end b"]


def test_results_without_end_are_drawn_one_by_one() -> None:
    """What takes records in strides gets them so, whatever a step makes of one record."""

    def endless(value: int) -> Iterator[int]:
        while True:
            yield (value := value + 1)

    def in_strides(gather: Any) -> Any:
        def run(values: Iterable[int]) -> None:
            drawn = iter(values)
            for _ in range(2):
                gather([next(drawn), next(drawn)])

        return run

    taken: list[int] = []
    end = ending_in_strides(Step("$take(value)", take=taken.append), in_strides)
    before(end, _flat_map(endless))([0])
    assert taken == [1, 2, 3, 4]


def test_more_loops_within_loops_than_python_has() -> None:
    taken: list[int] = []
    run: Any = ending(Step("$take(value)", take=taken.append))
    for _ in range(45):
        run = before(run, _flat_map(lambda v: (v + 1,)))
    run([0])
    assert taken == [45]


def test_timestamps_are_noted() -> None:
    scope = KeyScope()
    taken: list[Any] = []
    run = before(
        ending(Step("$take(value)", take=taken.append)), _map(lambda v: (v, scope.timestamp))
    )
    stamping(run, scope)(zip([7, 8], "ab", strict=True))
    assert taken == [("a", 7), ("b", 8)]
    stamping(taken.extend, scope)([(9, "c")])
    assert (taken[-1], scope.timestamp) == ("c", 9)


def _failing_in(run: ComposedRun, values: Iterable[Any]) -> traceback.FrameSummary:
    """The frame of the loop when something fails in it."""
    with pytest.raises(ZeroDivisionError) as caught:
        run(values)
    trace: Any = caught.tb
    while "owners" not in trace.tb_frame.f_locals:
        trace = trace.tb_next
    owners = trace.tb_frame.f_locals["owners"]
    [summary] = traceback.extract_tb(trace, limit=1)
    summary.locals = {"owner": owners[trace.tb_lineno][0]}
    return summary


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_the_line_tells_whose_it_is(failing: int) -> None:
    calls: list[Any] = [lambda v: v, lambda v: v, lambda v: v]
    calls[failing] = lambda v: 1 // 0
    run: Any = ending(Step("$take(value)", take=print))
    for call in reversed(calls):
        run = before(run, _map(call))

    frame = _failing_in(run, [1])

    assert frame.locals is not None
    assert frame.locals["owner"] is calls[failing]
    assert frame.line == f"value = call_{failing}(value)"


@pytest.mark.parametrize("owners", [{"cat": "Ann"}, ["Ann"], "Ann", None, ()])
def test_variables_of_the_same_name_tell_nothing(owners: Any) -> None:
    """An error is told by all frames that it came through, and the user's may be named alike."""
    attribution = Attribution(PhysicalOperator("map-1", "Map", _HERE, None, None, (), 0))

    def call(value: int) -> float:
        assert owners is not value
        return 1 / value

    run: Any = ending(Step("$call(value)", call=call))
    with pytest.raises(ZeroDivisionError) as caught:
        run([0])
    told = attribution.explain(caught.value)

    assert "'Map (job.py:1)'" in str(told)
    assert "ZeroDivisionError" in str(told)


def test_lines_that_are_nobodys() -> None:
    owners = LineOwners([("call", "emit")])
    assert [owners.at(line) for line in (0, 1, None)] == [("call", "emit"), *[(None, None)] * 2]


def test_a_place_with_braces_in_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_PLACE", "/home/{ann}/{}")
    taken: list[int] = []
    ending(Step("$braces(value)", braces=taken.append))([1])
    assert taken == [1]


def test_a_loop_has_the_same_name_in_every_process() -> None:
    """Whatever was compiled there before."""
    names = set()
    for before_it in (1, 2):
        loops._code_of.cache_clear()
        for number in range(before_it):
            loops.compiled(ending(Step(f"value + {number}")).loop)
        names.add(loops.compiled(ending(Step("value * 2")).loop).__code__.co_filename)
    assert len(names) == 1
