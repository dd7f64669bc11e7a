"""What a task is told about the epoch it works on, and what it answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.runtime.profiling.samples import TaskProfile


@dataclass(frozen=True)
class EpochOrder:
    """The driver's order: which epoch, on which base.

    `tokens` names, for each subtask ("vertex/subtask"), the attempt that made its part of the
    base. Positions of Python sources are pickled, in base64.
    """

    epoch: int
    base: int | None
    clock: int
    attempt: int = 0
    final: bool = False
    skip: bool = False
    tokens: dict[str, str] = field(default_factory=dict)
    frozen_edges: tuple[int, ...] = ()
    positions: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Source uid and split id → (position, finished)."""
    splits: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Source uid → splits that it has found since the plan was made: number, pickled in base64."""
    more_to_come: tuple[str, ...] = ()
    """Uids of the sources that have further splits when the known ones have been read."""
    ended: tuple[int, ...] = ()
    """The source vertices that have been read to their end."""
    times: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Uid of what gives a Spark source its timestamps → watermark over all its tasks, idle."""
    slowest: dict[str, int] = field(default_factory=dict)
    """Group of aligned sources → the watermark of its slowest split."""
    farewell: tuple[int, ...] | None = None
    """No epoch at all: the job has ended, and these vertices are to be told of its last one."""

    side_inputs: dict[str, str] = field(default_factory=dict)
    """Name of a side input → the file with its rows."""
    most_records: int | None = None
    """What a subtask of a Python source may read, if that is not what the job's settings say."""
    paced_records: dict[str, int] = field(default_factory=dict)
    """Uid of a source that is ahead of others in event time → what a subtask may read instead."""
    read_seconds: float | None = None
    """For how long it may read, if not as the settings say."""
    changed_types: dict[str, dict[str, str]] = field(default_factory=dict)
    """Operator uid → states whose type one of its subtasks has changed → kind and type, pickled in
    base64: all subtasks are to rewrite what they have of them."""

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> EpochOrder:
        data = json.loads(text)
        data["frozen_edges"] = tuple(data["frozen_edges"])
        data["more_to_come"] = tuple(data["more_to_come"])
        data["ended"] = tuple(data["ended"])
        if data["farewell"] is not None:
            data["farewell"] = tuple(data["farewell"])
        return cls(**data)


@dataclass
class Acknowledgement:
    """A subtask's answer: its attempt, whose output it consumed, and what it wrote."""

    vertex: int
    subtask: int
    token: str
    consumed: dict[str, str] = field(default_factory=dict)
    """Producer ("vertex/subtask") → token."""
    received: dict[str, int] = field(default_factory=dict)
    """Producer → how many of its payloads were read."""
    sent: dict[str, int] = field(default_factory=dict)
    """Receiver ("vertex/subtask") → how many payloads were sent to it."""
    watermark: int | None = None
    """How far the subtask's input is in event time."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """Operator uid → how far it is in event time, if it has got anywhere."""
    reached: dict[str, dict[str, int]] = field(default_factory=dict)
    """Operator uid → the watermarks of those parts of its input that hold time back."""
    operator_state: dict[str, bytes] = field(default_factory=dict)
    """Operator uid → what it and its functions need to go on, beside keyed state."""
    listeners: list[str] = field(default_factory=list)
    """Uids of the operators whose functions want to hear what becomes of the epoch."""
    files: list[dict[str, Any]] = field(default_factory=list)
    state_types: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Operator uid → state name → kind and type."""
    changed_types: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Operator uid → states that were stored as another type → kind and type, pickled."""
    positions: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Split id → (position, finished)."""
    committables: dict[str, list[bytes]] = field(default_factory=dict)
    """Sink operator uid → what its writer prepared, pickled."""
    loops: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Uid of a loop's head → how many records were sent back to it, and the files they are in."""
    records_in: dict[str, int] = field(default_factory=dict)
    records_out: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    cut_off: bool = False
    """Whether a Python source was stopped by what it might read, with more to come perhaps."""
    rebuilt_rows: int = 0
    restored_bytes: int = 0
    """Read from the checkpoint's files, to bring the store to the base."""
    seconds: float = 0.0
    freeze_edges: list[int] = field(default_factory=list)
    """Edges whose records turned out to be changeable: the epoch must be run again."""
    profile: TaskProfile | None = None
    """What the task spent its time on, if the job is profiled: with one of its subtasks."""
    error: bytes | None = None
    """A pickled exception: the epoch failed here."""


def subtask_name(vertex: int, subtask: int) -> str:
    return f"{vertex}/{subtask}"
