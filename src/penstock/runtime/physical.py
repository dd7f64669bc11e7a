"""The physical plan as workers see it: vertices of chained operators, edges, levels. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.datastream.connectors.base import Split
from penstock.datastream.side_input import SideInput
from penstock.graph.location import Location
from penstock.graph.partitioning import Partitioning


@dataclass(frozen=True)
class Output:
    """Where an operator's records go: to an operator of its chain, or out by an edge."""

    tag: str | None = None
    operator: int | None = None
    edge: int | None = None


@dataclass(frozen=True)
class PhysicalOperator:
    """An operator within its chain; `outputs` point to later operators or edges."""

    uid: str
    name: str
    location: Location
    operator: Any
    output_type: Any
    outputs: tuple[Output, ...]
    node_id: int
    event_time_order: bool = False
    """Whether its records wait until the watermark has passed them."""
    side_inputs: tuple[SideInput, ...] = ()
    """The tables that its function may look at."""
    lane: str | None = None
    """Where its work is done, for explain; None if there is no choice in the plan."""


@dataclass(frozen=True)
class Vertex:
    """A chain of operators that run as one task per subtask. The first is the head."""

    index: int
    uid: str
    name: str
    level: int
    parallelism: int
    max_parallelism: int
    operators: tuple[PhysicalOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    feedback: tuple[int, ...] = ()
    """Edges that lead back to it. They are no inputs: it has the records of one an epoch later."""


@dataclass(frozen=True)
class PhysicalEdge:
    """A connection between vertices that passes through an exchange."""

    index: int
    source: int
    target: int
    partitioning: Partitioning
    input_index: int
    location: Location
    """Of the operator that asked for the exchange: where a bad key selector is to be found."""
    name: str
    stamped: bool = False
    """Whether records may have timestamps."""
    first: bool = False
    """Whether its records are read before those of other edges."""
    feedback: bool = False
    """Whether it closes a loop: its records rest in the checkpoint and enter in the next epoch."""

    @property
    def tells_time(self) -> bool:
        """Whether control events travel along. None goes round a loop: it would wait for itself."""
        return self.stamped and not self.feedback


@dataclass(frozen=True)
class JobSettings:
    """What tasks need to know of the job."""

    job_id: str
    job_name: str
    run_id: str
    """Of this start of the job: instances of an earlier one are not used again."""
    root: str
    """The job's checkpoint directory."""
    local_dir: str
    """Where a host keeps its stores."""
    state_backend: str
    cache_entries: int
    """State values that are kept live, of each state…"""
    max_records_per_epoch: int
    epoch_seconds: float
    """A Python source reads no longer than this in one epoch."""
    batch: bool
    """Whether all input is read in one epoch, the final one, in which only its end is an event."""
    parameters: dict[str, str] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    """Name → path on the driver's machine."""
    watermark_interval: int = 200
    """Milliseconds between two periodic watermarks; 0 if there are to be none."""
    fork: str = ""
    """Names the beginning from a savepoint, in the job's directory, if there was one."""
    cache_memory: int = 0
    """… and more as long as the process has less memory than this."""
    profile_interval: float = 0.0
    """Seconds between two samples of what a task does; 0 if none are taken."""


@dataclass(frozen=True)
class PhysicalPlan:
    """Everything that is needed to run a job, but for the transport."""

    settings: JobSettings
    vertices: tuple[Vertex, ...]
    edges: tuple[PhysicalEdge, ...]
    splits: dict[str, tuple[Split, ...]] = field(default_factory=dict)
    """The splits of Python sources by operator uid."""

    @property
    def needs_clock(self) -> bool:
        """Whether time passes for some operator even if no records come."""
        operators = (operator for vertex in self.vertices for operator in vertex.operators)
        return any(getattr(operator.operator, "needs_clock", False) for operator in operators)

    @property
    def levels(self) -> int:
        """The number of exchanges in a row; sources are at level 0."""
        return max(vertex.level for vertex in self.vertices)

    def at_level(self, level: int) -> tuple[Vertex, ...]:
        return tuple(vertex for vertex in self.vertices if vertex.level == level)

    def partitions(self, level: int) -> int:
        """How many tasks the stage of a level has."""
        return max(vertex.parallelism for vertex in self.at_level(level))
