"""Stream graph → physical plan: resolve parallelism, name operators, form chains, find levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.digests import text_digest
from penstock.errors import InvalidProgramError
from penstock.graph.partitioning import ByKey, Forward, Partitioning, Rebalance
from penstock.graph.stream_graph import Chaining, Edge, Node
from penstock.plan.columnar import Lane, in_lanes
from penstock.runtime.operators.iteration import FEEDBACK_INPUT
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import (
    JobSettings,
    Output,
    PhysicalEdge,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.state.key_groups import UPPER_BOUND, default_max_parallelism


@dataclass(frozen=True)
class PlanDefaults:
    """What the environment says for operators that do not say themselves."""

    parallelism: int
    max_parallelism: int | None = None
    chaining: bool = True
    generate_uids: bool = True
    event_time_order: bool = False


def translate(
    nodes: tuple[Node, ...],
    defaults: PlanDefaults,
    settings: JobSettings,
    stored: Mapping[str, int] | None = None,
) -> PhysicalPlan:
    """The physical plan of a program. Nodes come inputs first.

    `stored`: the max parallelism of operators that have state already, by uid. It holds where the
    program does not say.
    """
    uids = _uids(nodes, defaults.generate_uids)
    of_stored = {id: stored[uid] for id, uid in uids.items() if uid in stored} if stored else {}
    heads = _heads(nodes, _resolved(nodes, defaults, of_stored), defaults.chaining)
    nodes, lanes = in_lanes(nodes, heads, defaults.event_time_order)
    resolved = _resolved(nodes, defaults, of_stored)
    stamped = _stamped(nodes, resolved)
    ordered = _ordered(nodes, stamped, defaults.event_time_order)
    return _assemble(nodes, resolved, uids, heads, stamped, ordered, settings, lanes)


@dataclass(frozen=True)
class _Resolved:
    parallelism: int
    max_parallelism: int
    inputs: tuple[Edge, ...]


def _resolved(
    nodes: tuple[Node, ...], defaults: PlanDefaults, stored: Mapping[int, int]
) -> dict[int, _Resolved]:
    """Parallelism of every node, and how its inputs really travel."""
    found: dict[int, _Resolved] = {}
    parallelisms = _parallelisms(nodes, defaults.parallelism)
    for node in nodes:
        parallelism = parallelisms[node.id]
        wanted = node.max_parallelism or defaults.max_parallelism
        most = wanted or stored.get(node.id) or default_max_parallelism(parallelism)
        if parallelism > most:
            advice = "lower the one or raise the other with set_max_parallelism"
            if most == UPPER_BOUND:
                advice = "lower it: there cannot be more subtasks"
            raise InvalidProgramError(
                f"operator {node.name!r} ({node.location}) has parallelism {parallelism}, above "
                f"its max parallelism {most}; {advice}"
            )
        inputs = tuple(
            replace(
                edge,
                partitioning=_travels(
                    node, edge.partitioning, found[edge.source].parallelism, parallelism
                ),
            )
            for edge in node.inputs
        )
        found[node.id] = _Resolved(parallelism, most, inputs)
    return found


def _parallelisms(nodes: tuple[Node, ...], default: int) -> dict[int, int]:
    """Of every node. The head of a loop has that of what comes back to it."""
    found = {n.id: n.fixed_parallelism or n.parallelism or default for n in nodes}
    by_id = {node.id: node for node in nodes}
    # Inner loops first: what comes back to the outer one may be the head of another.
    for node in reversed(nodes):
        if node.feedback is None:
            continue
        head = f"{node.name!r} ({node.location})"
        if not node.feedback:
            raise InvalidProgramError.open_loop(head)
        found[node.id] = node.parallelism or found[node.feedback[0].source]
        for edge in node.feedback:
            if found[edge.source] != found[node.id]:
                end = by_id[edge.source]
                raise InvalidProgramError.unlike_loop(
                    head, found[node.id], f"{end.name!r} ({end.location})", found[edge.source]
                )
    return found


def _travels(node: Node, wanted: Partitioning, senders: int, receivers: int) -> Partitioning:
    """A forward edge between unlike parallelisms becomes a rebalance, unless it was asked for."""
    if not isinstance(wanted, Forward) or senders == receivers:
        return wanted
    if wanted.explicit:
        raise InvalidProgramError(
            f"forward() before operator {node.name!r} ({node.location}) needs equal parallelism "
            f"on both sides, got {senders} and {receivers}"
        )
    return Rebalance()


def _uids(nodes: tuple[Node, ...], generate: bool) -> dict[int, str]:
    """The user's uid, or one made of the operator's kind and what is upstream of it.

    Unrelated parts of a program do not change it.
    """
    given: dict[str, Node] = {}
    found: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.uid is not None:
            if node.uid in given:
                first, second = (f"{n.name!r} ({n.location})" for n in (given[node.uid], node))
                raise InvalidProgramError.duplicate_uid(node.uid, first, second)
            given[node.uid] = node
            found[node.id] = node.uid
            continue
        if not generate and not node.helper:
            raise InvalidProgramError.missing_uid(f"{node.name!r} ({node.location})")
        kind = _kind(node.operator)
        upstream = ",".join(
            f"{found[e.source]}/{e.tag}" + ("/second" if e.input_index else "") for e in node.inputs
        )
        shape = f"{kind}({upstream})"
        seen[shape] += 1
        found[node.id] = f"{kind}-{text_digest(f'{shape}#{seen[shape]}')[:12]}"
    return found


def _kind(operator: Any) -> str:
    """What an operator is. Nothing is upstream of a source, so it also goes by what it reads."""
    kind: str = getattr(operator, "kind", type(operator).__name__)
    if isinstance(operator, PythonSource):
        return f"{kind}-{type(operator.source).__name__}"
    return kind


def _heads(
    nodes: tuple[Node, ...], resolved: dict[int, _Resolved], chaining: bool
) -> dict[int, int]:
    """For each node, the first node of its chain."""
    by_id = {node.id: node for node in nodes}
    heads: dict[int, int] = {}
    for node in nodes:
        inputs = resolved[node.id].inputs
        before = by_id[inputs[0].source] if len(inputs) == 1 else None
        chained = (
            before is not None
            and chaining
            and isinstance(inputs[0].partitioning, Forward)
            and node.chaining is Chaining.ALWAYS
            and before.chaining is not Chaining.NEVER
            and resolved[node.id].max_parallelism == resolved[before.id].max_parallelism
        )
        heads[node.id] = heads[before.id] if chained and before is not None else node.id
    return heads


def _assemble(
    nodes: tuple[Node, ...],
    resolved: dict[int, _Resolved],
    uids: dict[int, str],
    heads: dict[int, int],
    stamped: set[int],
    ordered: set[int],
    settings: JobSettings,
    lanes: dict[int, Lane],
) -> PhysicalPlan:
    members: dict[int, list[Node]] = {}
    for node in nodes:
        members.setdefault(heads[node.id], []).append(node)
    indexes = {head: index for index, head in enumerate(members)}
    places = {n.id: i for chain in members.values() for i, n in enumerate(chain)}

    edges: list[PhysicalEdge] = []
    outputs: dict[int, list[Output]] = {node.id: [] for node in nodes}
    levels: dict[int, int] = {}
    for node in nodes:
        level = levels.setdefault(heads[node.id], 0)
        for edge in resolved[node.id].inputs:
            if heads[edge.source] == heads[node.id]:
                outputs[edge.source].append(Output(edge.tag, operator=places[node.id]))
                continue
            physical = PhysicalEdge(
                index=len(edges),
                source=indexes[heads[edge.source]],
                target=indexes[heads[node.id]],
                partitioning=edge.partitioning,
                input_index=edge.input_index,
                location=edge.location or node.location,
                name=_edge_name(edge.partitioning, node),
                stamped=edge.source in stamped,
                first=settings.batch
                and getattr(node.operator, "first_in_batch", None) == edge.input_index,
            )
            edges.append(physical)
            outputs[edge.source].append(Output(edge.tag, edge=physical.index))
            level = max(level, levels[heads[edge.source]] + 1)
        levels[heads[node.id]] = level
    for node in nodes:
        for edge in node.feedback or ():
            physical = _feedback_edge(
                len(edges), node, edge, (indexes[heads[edge.source]], indexes[node.id]), stamped
            )
            edges.append(physical)
            outputs[edge.source].append(Output(edge.tag, edge=physical.index))

    vertices = []
    for head, chain in members.items():
        index = indexes[head]
        operators = tuple(
            PhysicalOperator(
                uids[n.id],
                n.name,
                n.location,
                n.operator,
                n.output_type,
                tuple(outputs[n.id]),
                n.id,
                n.id in ordered,
                n.side_inputs,
                str(lanes[n.id]) if n.id in lanes else None,
            )
            for n in chain
        )
        vertices.append(
            Vertex(
                index=index,
                uid=vertex_uid(uids[head]),
                name=" -> ".join(n.name for n in chain),
                level=levels[head],
                parallelism=resolved[head].parallelism,
                max_parallelism=resolved[head].max_parallelism,
                operators=operators,
                inputs=tuple(e.index for e in edges if e.target == index and not e.feedback),
                outputs=tuple(e.index for e in edges if e.source == index),
                feedback=tuple(e.index for e in edges if e.target == index and e.feedback),
            )
        )
    return PhysicalPlan(settings, tuple(vertices), tuple(edges))


def _feedback_edge(
    index: int, head: Node, edge: Edge, vertices: tuple[int, int], stamped: set[int]
) -> PhysicalEdge:
    return PhysicalEdge(
        index=index,
        source=vertices[0],
        target=vertices[1],
        partitioning=edge.partitioning,
        input_index=FEEDBACK_INPUT,
        location=edge.location or head.location,
        name=_edge_name(edge.partitioning, head),
        stamped=edge.source in stamped,
        feedback=True,
    )


def vertex_uid(uid: str) -> str:
    """A uid as part of a file's name: what is not plain in it is replaced, and made distinct."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in uid)
    return plain if plain == uid else f"{plain}-{text_digest(uid)[:8]}"


def _edge_name(partitioning: Partitioning, node: Node) -> str:
    return "key_by" if isinstance(partitioning, ByKey) else f"the input of {node.name}"


def _stamped(nodes: tuple[Node, ...], resolved: dict[int, _Resolved]) -> set[int]:
    """The nodes whose output may carry timestamps."""
    found: set[int] = set()
    known = -1
    while known < len(found):  # again if a loop has brought timestamps back to its head
        known = len(found)
        for node in nodes:
            before = (*resolved[node.id].inputs, *(node.feedback or ()))
            inherits = any(edge.source in found for edge in before)
            if inherits or getattr(node.operator, "timestamps", False):
                found.add(node.id)
    return found


def _ordered(nodes: tuple[Node, ...], stamped: set[int], everywhere: bool) -> set[int]:
    """The nodes that handle their records in event-time order."""
    found: set[int] = set()
    for node in nodes:
        keyed = all(isinstance(edge.partitioning, ByKey) for edge in node.inputs)
        if node.event_time_order and not keyed:
            raise InvalidProgramError.order_without_keys(f"{node.name!r} ({node.location})")
        if node.inputs and keyed and (node.event_time_order or everywhere):
            if any(edge.source not in stamped for edge in node.inputs):
                raise InvalidProgramError.order_without_time(f"{node.name!r} ({node.location})")
            found.add(node.id)
    return found
