"""Whether an epoch may be committed, judged by its acknowledgements alone. Pure."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

from penstock.runtime.epoch import Acknowledgement, subtask_name
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import PhysicalPlan


@dataclass(frozen=True)
class Verdict:
    """Accepted if nothing speaks against it."""

    error: BaseException | None = None
    """A task failed."""
    freeze_edges: tuple[int, ...] = ()
    """The epoch must be run again with these edges' records frozen."""
    conflict: str | None = None
    """Attempts were mixed up: the epoch must be run again."""

    @property
    def accepted(self) -> bool:
        return self.error is None and not self.freeze_edges and self.conflict is None


@dataclass
class _Seen:
    tokens: dict[str, str] = field(default_factory=dict)
    conflict: str | None = None


def judge(
    plan: PhysicalPlan, acknowledgements: list[Acknowledgement], called: bool = True
) -> Verdict:
    """Each subtask must have answered exactly once, and everybody must have read that attempt.

    `called` says whether Python sources had a part in the epoch.
    """
    for acknowledgement in acknowledgements:
        if acknowledgement.error is not None:
            return Verdict(error=pickle.loads(acknowledgement.error))
    freeze = {edge for a in acknowledgements for edge in a.freeze_edges}
    if freeze:
        return Verdict(freeze_edges=tuple(sorted(freeze)))
    seen = _tokens(acknowledgements)
    return Verdict(
        conflict=seen.conflict
        or _missing(plan, seen.tokens, called)
        or _misread(acknowledgements, seen.tokens)
        or _lost(acknowledgements)
    )


def _tokens(acknowledgements: list[Acknowledgement]) -> _Seen:
    seen = _Seen()
    for a in acknowledgements:
        name = subtask_name(a.vertex, a.subtask)
        if seen.tokens.setdefault(name, a.token) != a.token:
            seen.conflict = f"two attempts of subtask {name} answered"
    if len(seen.tokens) != len(acknowledgements) and seen.conflict is None:
        seen.conflict = "a subtask answered twice"
    return seen


def _missing(plan: PhysicalPlan, tokens: dict[str, str], called: bool) -> str | None:
    for vertex in plan.vertices:
        head = vertex.operators[0].operator
        if isinstance(head, SparkSource):
            continue  # Spark decides how many tasks a source needs
        if isinstance(head, PythonSource) and not called:
            continue
        for subtask in range(vertex.parallelism):
            name = subtask_name(vertex.index, subtask)
            if name not in tokens:
                return f"subtask {name} of {vertex.name!r} did not answer"
    return None


def _misread(acknowledgements: list[Acknowledgement], tokens: dict[str, str]) -> str | None:
    for a in acknowledgements:
        for producer, token in a.consumed.items():
            if tokens.get(producer) != token:
                consumer = subtask_name(a.vertex, a.subtask)
                return f"subtask {consumer} read another attempt of {producer} than answered"
    return None


def _lost(acknowledgements: list[Acknowledgement]) -> str | None:
    """Tokens cannot show that somebody read nothing of an attempt which sent something."""
    sent: dict[tuple[str, str], int] = {}
    received: dict[tuple[str, str], int] = {}
    for a in acknowledgements:
        name = subtask_name(a.vertex, a.subtask)
        sent.update({(name, receiver): count for receiver, count in a.sent.items()})
        received.update({(producer, name): count for producer, count in a.received.items()})
    for producer, receiver in sorted(sent.keys() | received.keys()):
        pair = producer, receiver
        if sent.get(pair, 0) != received.get(pair, 0):
            return (
                f"subtask {producer} sent {sent.get(pair, 0)} payloads to {receiver}, "
                f"which received {received.get(pair, 0)}"
            )
    return None
