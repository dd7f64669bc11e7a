"""Plans as drawings."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import CoMapFunction, ProcessFunction
from penstock.plan.svg import explain_svg
from penstock.plan.svg_layout import ChainBox, Drawing, layout_of
from penstock.runtime.physical import PhysicalPlan

SVG = "{http://www.w3.org/2000/svg}"


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return None


class Join(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> StreamExecutionEnvironment:
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "local")
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


@pytest.fixture
def plan(env: StreamExecutionEnvironment) -> PhysicalPlan:
    """With all that is hard to draw: branches, an arrow past a stage, two inputs, a loop."""
    numbers = env.from_sequence(1, 10).name('numbers <"1..10"> & more')
    rates = env.from_collection([1]).name("rates")
    split = numbers.process(Split()).name("split")
    split.get_side_output(OutputTag("odd")).print().name("odd ones")
    total = split.key_by(lambda n: n).reduce(lambda a, b: a + b).name("total")
    joined = total.connect(rates.broadcast()).map(Join()).name("joined")
    both = joined.union(numbers.rebalance().map(lambda n: n).name("copy"))
    both.key_by(lambda n: n).reduce(lambda a, b: a).name("last").print().name("out")
    loop = rates.map(lambda n: n).iterate()
    turned = loop.key_by(lambda n: n).reduce(lambda a, b: a).name("turned")
    loop.close_with(turned.filter(lambda n: n > 9).set_parallelism(1))
    turned.print().name("from the loop")
    return env._plan()


def _overlap(one: ChainBox, other: ChainBox) -> bool:
    apart = (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )
    return not apart


def test_everything_is_in_it(plan: PhysicalPlan) -> None:
    tree = ET.fromstring(explain_svg(plan))
    texts = {element.text for element in tree.iter(f"{SVG}text")}
    names = {operator.name for vertex in plan.vertices for operator in vertex.operators}
    assert names <= texts
    assert {"REBALANCE", "HASH", "1: FORWARD", "2: BROADCAST", "parallelism 2, keyed"} <= texts
    assert {"Stage 0 · 2 tasks", "Stage 4 · 1 task"} <= texts
    hints = "".join(str(element.text) for element in tree.iter(f"{SVG}title"))
    for vertex in plan.vertices:
        for operator in vertex.operators:
            assert f"uid {operator.uid}\n{operator.location}" in hints
    arrows = [e for e in tree.iter(f"{SVG}path") if "arrow" in e.get("class", "")]
    assert len(arrows) == len(plan.edges)
    assert sum("feedback" in e.get("class", "") for e in arrows) == 1
    assert "prefers-color-scheme:dark" in explain_svg(plan)


def test_no_box_lies_over_another(plan: PhysicalPlan) -> None:
    drawing = layout_of(plan)
    for one, other in itertools.combinations(drawing.chains, 2):
        assert not _overlap(one, other)
    for chain in drawing.chains:
        assert chain.x >= 0
        assert chain.x + chain.width <= drawing.width
        assert chain.y + chain.height <= drawing.height
        for operator in chain.operators:
            assert chain.x < operator.x
            assert operator.x + operator.width < chain.x + chain.width
            assert chain.y < operator.y
            assert operator.y + operator.height < chain.y + chain.height


def test_arrows_end_at_their_boxes_apart_from_each_other(plan: PhysicalPlan) -> None:
    drawing = layout_of(plan)
    ends = [arrow.points[-1] for arrow in drawing.arrows]
    assert len(set(ends)) == len(ends)
    for x, y in ends:
        assert any(c.x == x and c.y <= y <= c.y + c.height for c in drawing.chains)


def test_an_arrow_past_a_stage_runs_through_no_box(plan: PhysicalPlan) -> None:
    drawing = layout_of(plan)
    passing = [arrow for arrow in drawing.arrows if len(arrow.points) > 4 and not arrow.feedback]
    assert passing
    for arrow in passing:
        for (x1, y1), (x2, y2) in itertools.pairwise(arrow.points):
            if y1 == y2 and x2 - x1 > 100:
                assert not _in_a_box(drawing, x1, x2, y1)


def _in_a_box(drawing: Drawing, left: float, right: float, y: float) -> bool:
    return any(
        c.y < y < c.y + c.height and left < c.x + c.width and c.x < right for c in drawing.chains
    )


def test_labels_lie_apart(plan: PhysicalPlan) -> None:
    labels = [(*arrow.label_at, arrow.label_width) for arrow in layout_of(plan).arrows]
    for (x1, y1, w1), (x2, y2, w2) in itertools.combinations(labels, 2):
        assert abs(y1 - y2) >= 18 or x1 + w1 <= x2 or x2 + w2 <= x1


def test_explain(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).print()
    assert env.explain("svg").startswith("<svg ")
