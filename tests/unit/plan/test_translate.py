"""From programs to plans: chains, levels, uids, parallelism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.common.digests import text_digest
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import Source
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.data_stream import DataStream
from penstock.datastream.functions import ProcessFunction
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import InvalidProgramError
from penstock.graph.location import user_location
from penstock.graph.partitioning import ByKey, Forward, Rebalance
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import JobSettings, PhysicalPlan, Vertex

SETTINGS = JobSettings("id", "job", "run", "/root", "/local", "hashmap", 1000, 1000, 10.0, False)


class Program:
    """A program as streams see it, and its plan."""

    def __init__(self) -> None:
        self._graph = StreamGraph()
        self._configuration = Configuration()

    def source(
        self, name: str = "Source", fixed: int | None = None, source: Source | None = None
    ) -> DataStream:
        node = self._graph.add(
            name,
            PythonSource(source or CollectionSource([1])),
            (),
            location=user_location(),
            fixed_parallelism=fixed,
        )
        return DataStream(self, (Edge(node.id),))  # type: ignore[arg-type]

    def plan(
        self, parallelism: int = 2, most: int | None = None, chaining: bool = True
    ) -> PhysicalPlan:
        nodes = self._graph.upstream_of([node.id for node in self._graph.sinks])
        return translate(nodes, PlanDefaults(parallelism, most, chaining), SETTINGS)


@pytest.fixture
def program() -> Program:
    return Program()


def chains(plan: PhysicalPlan) -> list[str]:
    return [vertex.name for vertex in plan.vertices]


def at(plan: PhysicalPlan, name: str) -> Vertex:
    (found,) = [v for v in plan.vertices if name in [o.name for o in v.operators]]
    return found


def uids(plan: PhysicalPlan) -> dict[str, str]:
    return {o.name: o.uid for v in plan.vertices for o in v.operators}


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


# Chains


def test_forward_edges_are_chained(program: Program) -> None:
    program.source().map(str).filter(bool).print()
    plan = program.plan()
    assert chains(plan) == ["Source -> Map -> Filter -> Sink: Print"]
    assert plan.edges == ()
    assert plan.levels == 0


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (lambda s: s.map(str).start_new_chain(), ["Source", "Map -> Sink: Print"]),
        (lambda s: s.map(str).disable_chaining(), ["Source", "Map", "Sink: Print"]),
        (lambda s: s.rebalance().map(str), ["Source", "Map -> Sink: Print"]),
        (lambda s: s.key_by(str).map(str), ["Source", "Map -> Sink: Print"]),
        (lambda s: s.map(str).set_parallelism(3), ["Source", "Map", "Sink: Print"]),
        (lambda s: s.map(str).set_max_parallelism(9), ["Source", "Map", "Sink: Print"]),
        (lambda s: s.union(s).map(str), ["Source", "Map -> Sink: Print"]),
        (lambda s: s.forward().map(str), ["Source -> Map -> Sink: Print"]),
    ],
)
def test_what_breaks_a_chain(
    program: Program, between: Callable[[Any], Any], expected: list[str]
) -> None:
    between(program.source()).print()
    assert chains(program.plan()) == expected


def test_chaining_can_be_switched_off(program: Program) -> None:
    program.source().map(str).print()
    plan = program.plan(chaining=False)
    assert chains(plan) == ["Source", "Map", "Sink: Print"]
    assert [type(edge.partitioning) for edge in plan.edges] == [Forward, Forward]


def test_branches_run_in_one_chain(program: Program) -> None:
    """
    Source ─┬─ Map ─── Sink: Print
            └─ Filter ─ Sink: Print
    """
    source = program.source()
    source.map(str).print()
    source.filter(bool).print()
    (vertex,) = program.plan().vertices
    targets = [[output.operator for output in o.outputs] for o in vertex.operators]
    assert [o.name for o in vertex.operators] == [
        "Source", "Map", "Sink: Print", "Filter", "Sink: Print",
    ]  # fmt: skip
    assert targets == [[1, 3], [2], [], [4], []]


def test_side_outputs_are_told_apart(program: Program) -> None:
    split = program.source().process(Split())
    split.print().name("main")
    split.get_side_output(OutputTag("near")).print().name("near")
    split.get_side_output(OutputTag("far")).rebalance().print().name("far")
    plan = program.plan()
    process = plan.vertices[0].operators[1]
    assert [(o.tag, o.operator, o.edge) for o in process.outputs] == [
        (None, 2, None),
        ("near", 3, None),
        ("far", None, 0),
    ]
    assert chains(plan) == ["Source -> PROCESS -> main -> near", "far"]


# Levels


def test_a_level_for_every_exchange_on_the_longest_way(program: Program) -> None:
    """
    A ── key ── Map ── key ── Reduce ──┐
    B ─────────────────────────────────┴── Join (level 3) ── Sink
    """
    long = program.source("A").key_by(str).map(str).key_by(str).reduce(max)
    long.union(program.source("B")).map(str).name("Join").print()
    plan = program.plan()
    levels = {vertex.name: vertex.level for vertex in plan.vertices}
    assert levels == {"A": 0, "Map": 1, "Reduce": 2, "B": 0, "Join -> Sink: Print": 3}
    assert plan.levels == 3
    assert [v.name for v in plan.at_level(0)] == ["A", "B"]


def test_a_stage_has_the_tasks_of_its_widest_chain(program: Program) -> None:
    program.source("A", fixed=1).print()
    program.source("B").set_parallelism(5).print()
    assert program.plan(parallelism=2).partitions(0) == 5


def test_edges_know_their_ends_and_lines(program: Program) -> None:
    keyed = program.source().key_by(str)
    keyed.map(str).print()
    plan = program.plan()
    (edge,) = plan.edges
    assert (edge.source, edge.target, edge.name) == (0, 1, "key_by")
    assert isinstance(edge.partitioning, ByKey)
    assert plan.vertices[0].outputs == plan.vertices[1].inputs == (0,)
    assert edge.location.file == __file__


def test_only_what_sinks_need_is_planned(program: Program) -> None:
    source = program.source()
    source.map(str).name("unused")
    source.print()
    assert chains(program.plan()) == ["Source -> Sink: Print"]


# Parallelism


def test_parallelism_comes_from_the_operator_or_the_environment(program: Program) -> None:
    program.source(fixed=1).map(str).set_parallelism(4).key_by(str).reduce(max).print()
    plan = program.plan(parallelism=2)
    assert [(v.name, v.parallelism) for v in plan.vertices] == [
        ("Source", 1),
        ("Map", 4),
        ("Reduce -> Sink: Print", 2),
    ]
    assert [type(edge.partitioning) for edge in plan.edges] == [Rebalance, ByKey]


@pytest.mark.parametrize(
    ("parallelism", "most"), [(1, 128), (85, 128), (86, 256), (128, 256), (30000, 32768)]
)
def test_max_parallelism_follows_flinks_rule(program: Program, parallelism: int, most: int) -> None:
    program.source().print()
    assert program.plan(parallelism).vertices[0].max_parallelism == most


def test_max_parallelism_of_operator_before_environment(program: Program) -> None:
    program.source().map(str).set_max_parallelism(9).print()
    plan = program.plan(most=40)
    assert (at(plan, "Source").max_parallelism, at(plan, "Map").max_parallelism) == (40, 9)


def test_parallelism_above_max_names_operator_and_line(program: Program) -> None:
    program.source().map(str).name("Wide").set_parallelism(8).set_max_parallelism(4).print()
    with pytest.raises(
        InvalidProgramError, match=rf"'Wide' \({__file__}:\d+\) has parallelism 8, above .* 4"
    ):
        program.plan()


def test_parallelism_above_any_max(program: Program) -> None:
    """No advice to raise what cannot be raised."""
    program.source().print()
    with pytest.raises(InvalidProgramError, match=r"parallelism 40000, above .* 32768; lower it:"):
        program.plan(parallelism=40000)


def test_forward_needs_equal_parallelism(program: Program) -> None:
    program.source().set_parallelism(2).forward().map(str).set_parallelism(3).print()
    with pytest.raises(
        InvalidProgramError, match=rf"before operator 'Map' \({__file__}:\d+\) .* 2 and 3"
    ):
        program.plan()


# Uids


def test_a_uid_of_the_users_is_kept(program: Program) -> None:
    program.source().uid("numbers").print().uid("out/put")
    plan = program.plan()
    assert uids(plan) == {"Source": "numbers", "Sink: Print": "out/put"}
    assert plan.vertices[0].uid == "numbers"


def test_a_vertex_uid_is_fit_for_file_names_and_distinct(program: Program) -> None:
    names = ["a b", "a/b", "a-b", "ä"]
    for name in names:
        program.source().uid(name).print()
    found = [vertex.uid for vertex in program.plan().vertices]
    assert len(set(found)) == len(names)
    assert all(set(uid) <= set("abcdef0123456789-") for uid in found)


def test_two_operators_with_one_uid_are_both_named(program: Program) -> None:
    program.source().map(str).uid("x").print()
    program.source().filter(bool).uid("x").print()
    with pytest.raises(
        InvalidProgramError,
        match=rf"uid 'x' .* 'Map' \({__file__}:\d+\) and 'Filter' \({__file__}:\d+\)",
    ):
        program.plan()


def keyed_part(program: Program) -> None:
    program.source("A").uid("a").key_by(str).reduce(max).name("R").print().name("P")


def test_made_uids_of_window_joins_are_what_they_were(program: Program) -> None:
    """Checkpoints have them, and what is behind has them in its own."""
    first, second = program.source("A").uid("a"), program.source("B").uid("b")
    windows = first.join(second).where(str).equal_to(str).window(TumblingEventTimeWindows.of(10))
    windows.apply(max).print()
    made = uids(program.plan())
    assert made["First Input"] == f"Map-{text_digest('Map(a/None)#1')[:12]}"
    assert made["Second Input"] == f"Map-{text_digest('Map(b/None)#1')[:12]}"


def test_made_uids_do_not_depend_on_unrelated_parts(program: Program) -> None:
    keyed_part(program)
    other = Program()
    other.source("B").uid("b").map(str).key_by(str).reduce(min).name("other").print()
    keyed_part(other)
    other.source("C").uid("c").print()
    before, after = uids(program.plan()), uids(other.plan())
    assert {name: after[name] for name in before} == before
    assert after["R"] != after["other"]


def test_made_uids_do_not_depend_on_sources_of_other_kinds(program: Program) -> None:
    """Without uids of the user's, and whichever comes first."""

    def numbers(program: Program) -> None:
        program.source("Numbers").key_by(str).reduce(max).name("R").print().name("P")

    numbers(program)
    other = Program()
    generated = DataGeneratorSource(str, 3)
    other.source("Generated", source=generated).key_by(str).reduce(min).name("other").print()
    numbers(other)
    before, after = uids(program.plan()), uids(other.plan())
    assert {name: after[name] for name in before} == before


def test_made_uids_survive_a_new_name_and_parallelism(program: Program) -> None:
    program.source().map(str).print()
    other = Program()
    other.source().map(str).name("renamed").set_parallelism(7).print()
    before, after = uids(program.plan()), uids(other.plan())
    assert before["Map"] == after["renamed"]


def test_made_uids_are_distinct(program: Program) -> None:
    source = program.source()
    for _ in range(5):
        source.map(str).print()
    found = [o.uid for v in program.plan().vertices for o in v.operators]
    assert len(set(found)) == len(found) == 11


def test_an_operator_added_before_changes_the_made_uid(program: Program) -> None:
    program.source().key_by(str).reduce(max).print()
    other = Program()
    other.source().map(str).key_by(str).reduce(max).print()
    assert uids(program.plan())["Reduce"] != uids(other.plan())["Reduce"]
