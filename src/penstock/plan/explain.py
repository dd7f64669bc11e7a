"""A physical plan for people and tools: as text, as Flink's JSON, as a Mermaid chart. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.graph.partitioning import ByKey
from penstock.runtime.physical import PhysicalEdge, PhysicalOperator, PhysicalPlan, Vertex

_FORWARD = "FORWARD"


@dataclass(frozen=True)
class _Link:
    """From one operator to another, inside a chain or through an exchange."""

    source: PhysicalOperator
    target: PhysicalOperator
    strategy: str
    tag: str | None
    edge: PhysicalEdge | None
    several_inputs: bool = False

    @property
    def input_index(self) -> int:
        return 0 if self.edge is None else self.edge.input_index

    @property
    def feedback(self) -> bool:
        return self.edge is not None and self.edge.feedback

    @property
    def label(self) -> str:
        into = f"input {self.input_index + 1}: " if self.several_inputs else ""
        if self.feedback:
            into = "feedback: "
        return into + self.strategy + (f" of side output {self.tag!r}" if self.tag else "")


def _links(plan: PhysicalPlan) -> list[_Link]:
    return [
        _link(plan, vertex, operator, output.tag, output.operator, output.edge)
        for vertex in plan.vertices
        for operator in vertex.operators
        for output in operator.outputs
    ]


def _link(
    plan: PhysicalPlan,
    vertex: Vertex,
    source: PhysicalOperator,
    tag: str | None,
    within: int | None,
    edge: int | None,
) -> _Link:
    if edge is None:
        assert within is not None
        return _Link(source, vertex.operators[within], _FORWARD, tag, None)
    exchange = plan.edges[edge]
    target = plan.vertices[exchange.target]
    several = any(plan.edges[index].input_index for index in target.inputs)
    strategy = exchange.partitioning.label
    return _Link(source, target.operators[0], strategy, tag, exchange, several)


def _is_keyed(plan: PhysicalPlan, vertex: Vertex) -> bool:
    return any(isinstance(plan.edges[index].partitioning, ByKey) for index in vertex.inputs)


def _stages(plan: PhysicalPlan) -> Iterator[tuple[int, tuple[Vertex, ...]]]:
    for level in range(plan.levels + 1):
        yield level, plan.at_level(level)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# Text


def explain_text(plan: PhysicalPlan) -> str:
    """The stages in order, in each its chains, in each its operators with the user's lines."""
    operators = sum(len(vertex.operators) for vertex in plan.vertices)
    title = (
        f"Job {plan.settings.job_name!r}: {_count(operators, 'operator')} in "
        f"{_count(len(plan.vertices), 'chain')} and {_count(plan.levels + 1, 'stage')}"
    )
    lines = [title]
    for level, vertices in _stages(plan):
        lines += ["", f"Stage {level} ({_count(plan.partitions(level), 'task')})"]
        for vertex in vertices:
            lines += [f"  {line}" for line in _vertex_lines(plan, vertex)]
    return "\n".join(lines) + "\n"


def _vertex_lines(plan: PhysicalPlan, vertex: Vertex) -> Iterator[str]:
    keyed = ", keyed input" if _is_keyed(plan, vertex) else ""
    if vertex.operators[0].event_time_order:
        keyed += " in event-time order"
    yield (
        f"[{vertex.index}] {vertex.name}  (parallelism {vertex.parallelism}, "
        f"max {vertex.max_parallelism}{keyed})"
    )
    for link in sorted(_links(plan), key=lambda link: link.input_index):
        if link.edge is not None and link.edge.target == vertex.index:
            yield f"  <- {link.label} from [{link.edge.source}] {link.source.name}"
    widest = max(len(operator.name) for operator in vertex.operators)
    for number, operator in enumerate(vertex.operators):
        branch = "└─" if number == len(vertex.operators) - 1 else "├─"
        lane = f"  [{operator.lane}]" if operator.lane else ""
        yield (
            f"  {branch} {operator.name:{widest}}  uid {operator.uid}  at {operator.location}{lane}"
        )


# JSON


def explain_json(plan: PhysicalPlan) -> str:
    """Flink's shape, a node per operator, with stage, chain, uid and the user's line besides."""
    links = _links(plan)
    nodes = [
        _json_node(plan, vertex, operator, links)
        for vertex in plan.vertices
        for operator in vertex.operators
    ]
    return json.dumps({"nodes": sorted(nodes, key=lambda node: node["id"])}, indent=2)


def _json_node(
    plan: PhysicalPlan, vertex: Vertex, operator: PhysicalOperator, links: list[_Link]
) -> dict[str, Any]:
    before = [link for link in links if link.target is operator]
    node: dict[str, Any] = {
        "id": operator.node_id,
        "type": operator.name,
        "pact": _pact(operator, before),
        "contents": operator.name,
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "uid": operator.uid,
        "location": str(operator.location),
        "stage": vertex.level,
        "chain": vertex.index,
        "keyed": operator is vertex.operators[0] and _is_keyed(plan, vertex),
        **({"lane": operator.lane} if operator.lane else {}),
    }
    if before:
        node["predecessors"] = [
            {
                "id": link.source.node_id,
                "ship_strategy": link.strategy,
                "side": _side(link, number),
                **({"side_output": link.tag} if link.tag else {}),
            }
            for number, link in enumerate(before)
        ]
    return node


def _side(link: _Link, number: int) -> str:
    if link.feedback:
        return "feedback"
    return "second" if (link.input_index if link.several_inputs else number) else "first"


def _pact(operator: PhysicalOperator, before: list[_Link]) -> str:
    if not before:
        return "Data Source"
    return "Operator" if operator.outputs else "Data Sink"


# Mermaid


def explain_mermaid(plan: PhysicalPlan) -> str:
    """A flow chart: a box per stage, in it a box per chain, in it the operators."""
    lines = ["flowchart LR"]
    for level, vertices in _stages(plan):
        lines.append(f'  subgraph stage{level}["Stage {level}"]')
        for vertex in vertices:
            lines += [f"    {line}" for line in _mermaid_chain(plan, vertex)]
        lines.append("  end")
    for link in _links(plan):
        line = "-.->" if link.feedback else "-->"
        arrow = line if link.edge is None else f'{line}|"{_escaped(link.label)}"|'
        lines.append(f"  n{link.source.node_id} {arrow} n{link.target.node_id}")
    return "\n".join(lines) + "\n"


def _mermaid_chain(plan: PhysicalPlan, vertex: Vertex) -> Iterator[str]:
    keyed = ", keyed" if _is_keyed(plan, vertex) else ""
    yield f'subgraph chain{vertex.index}["parallelism {vertex.parallelism}{keyed}"]'
    for operator in vertex.operators:
        lane = f"<br/>{_escaped(operator.lane)}" if operator.lane else ""
        yield f'  n{operator.node_id}["{_escaped(operator.name)}{lane}"]'
    yield "end"


def _escaped(text: str) -> str:
    """Mermaid reads entities with a # where HTML has an &."""
    for plain, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(plain, entity)
    return " ".join(text.split())
