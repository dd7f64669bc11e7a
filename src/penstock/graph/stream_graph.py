"""A program as a graph of immutable nodes. The fluent API adds nodes; planning reads them.

Operators are opaque here: the graph knows names, wiring, parallelism and the user's lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.errors import InvalidArgumentError, InvalidProgramError
from penstock.graph.location import Location
from penstock.graph.partitioning import Forward, Partitioning

MAX_PARALLELISM = 32768


class Chaining(Enum):
    """Whether an operator may run in one task with its neighbours."""

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass(frozen=True)
class Edge:
    """One input of a node: from which node (or which of its side outputs), and how."""

    source: int
    partitioning: Partitioning = field(default_factory=Forward)
    tag: str | None = None
    input_index: int = 0
    location: Location | None = field(default=None, compare=False)
    """The user's line that chose the partitioning, if it was chosen."""


@dataclass(frozen=True)
class Node:
    """One operator of the program."""

    id: int
    name: str
    operator: Any
    inputs: tuple[Edge, ...]
    location: Location
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    output_type: Any = None
    description: str | None = None
    is_sink: bool = False
    fixed_parallelism: int | None = None
    """Set for what can only run so, such as a collection source."""
    event_time_order: bool = False
    """Whether its records, which must be keyed, are to be handled in the order of time."""
    side_inputs: tuple[Any, ...] = ()
    """The tables that its function may look at."""
    helper: bool = False
    """Added by a method that does not return it, so that users cannot set anything on it."""
    feedback: tuple[Edge, ...] | None = None
    """Of the head of a loop, what comes back to it, from nodes that are made after it; empty as
    long as nobody has closed the loop. None for all other nodes."""

    def __post_init__(self) -> None:
        for what, value in (
            ("parallelism", self.parallelism),
            ("max parallelism", self.max_parallelism),
        ):
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidArgumentError.of(f"{what} of {self.name}", "a positive int", value)
            if value > MAX_PARALLELISM:
                raise InvalidArgumentError.of(
                    f"{what} of {self.name}", f"at most {MAX_PARALLELISM}", value
                )
        fixed = self.fixed_parallelism
        if fixed is not None and self.parallelism not in (None, fixed):
            raise InvalidArgumentError(
                f"{self.name} ({self.location}) runs with parallelism {fixed} only, "
                f"not {self.parallelism}"
            )


class StreamGraph:
    """The nodes of one program, in the order they were made (so inputs come first)."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}

    def add(self, name: str, operator: Any, inputs: tuple[Edge, ...], **settings: Any) -> Node:
        for edge in inputs:
            if edge.source not in self._nodes:
                raise InvalidProgramError(f"{name} reads a stream of another environment")
        node = Node(len(self._nodes), name, operator, inputs, **settings)
        self._nodes[node.id] = node
        return node

    def change(self, node_id: int, **settings: Any) -> Node:
        node = replace(self._nodes[node_id], **settings)
        self._nodes[node_id] = node
        return node

    def node(self, node_id: int) -> Node:
        return self._nodes[node_id]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes.values())

    @property
    def sinks(self) -> tuple[Node, ...]:
        return tuple(node for node in self._nodes.values() if node.is_sink)

    def upstream_of(self, node_ids: list[int]) -> tuple[Node, ...]:
        """The given nodes and all that they need, inputs first; a loop is needed whole."""
        needed: set[int] = set()
        todo = list(node_ids)
        while todo:
            node_id = todo.pop()
            if node_id not in needed:
                needed.add(node_id)
                node = self._nodes[node_id]
                todo.extend(edge.source for edge in (*node.inputs, *(node.feedback or ())))
        return tuple(node for node in self._nodes.values() if node.id in needed)
