"""A profile as numbers: of each operator, of each kind of work, of each step. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.driver.profiles.collected import CollectedProfile
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.profiling.counting import told_by
from penstock.runtime.profiling.samples import NOT_WORK, OPERATOR, Spot

Folded = dict[tuple[str, ...], int]
"""Chain, operator or kind of work, functions inward → microseconds."""

STEPS = {
    "starting": "starting, before the first epoch",
    "order": "preparing epochs (order)",
    "in_tasks": "running: in Python tasks",
    "engine": "running: Spark, scheduling, moving rows",
    "commit": "committing epochs",
    "between": "between epochs: triggers, planning, pauses, restarts",
}


@dataclass
class OperatorTime:
    """What an operator took. Percentages are of the time that all tasks worked."""

    uid: str
    name: str
    label: str
    """The name, with a number if others have the same."""
    location: str
    chain: str
    subtasks: int = 0
    records: int = 0
    self_seconds: float = 0.0
    """In its own code and the user's."""
    total_seconds: float = 0.0
    """Also in state, codec and exchange on its behalf."""
    self_percent: float = 0.0
    total_percent: float = 0.0
    kinds: dict[str, float] = field(default_factory=dict)
    """Kind of work on its behalf → seconds."""

    @property
    def micros_per_record(self) -> float | None:
        return self.total_seconds * 1e6 / self.records if self.records else None


@dataclass
class Summary:
    """Everything that is shown of a profile."""

    job: str
    job_id: str
    seconds: float
    epochs: int
    failed_epochs: int
    samples: int
    interval: float
    worked_seconds: float
    """Of all tasks together."""
    operators: list[OperatorTime]
    """The slowest first, by their total."""
    kinds: dict[str, float]
    """Kind of work → seconds, of all tasks."""
    steps: dict[str, float]
    """Step of the driver → seconds of its clock."""
    folded: Folded

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        del found["folded"]
        for shown, operator in zip(found["operators"], self.operators, strict=True):
            shown["micros_per_record"] = operator.micros_per_record
        return {"format": 1, **found}


def summary_of(profile: CollectedProfile) -> Summary:
    """Of a job that is over."""
    seconds = profile.end()
    plan = profile.plan
    operators = {found.uid: found for found in _operators(profile)}
    kinds: dict[str, float] = {}
    for spot, micros in profile.tasks.micros.items():
        took = micros / 1e6
        kind = spot.kind or "operators"
        kinds[kind] = kinds.get(kind, 0.0) + took
        operator = operators.get(spot.operator or "")
        if operator is None:
            continue
        operator.total_seconds += took
        if spot.kind == OPERATOR:
            operator.self_seconds += took
        else:
            operator.kinds[spot.kind] = operator.kinds.get(spot.kind, 0.0) + took
    worked = sum(took for kind, took in kinds.items() if kind not in NOT_WORK)
    for operator in operators.values():
        operator.self_percent = _percent(operator.self_seconds, worked)
        operator.total_percent = _percent(operator.total_seconds, worked)
    return Summary(
        job=plan.settings.job_name,
        job_id=plan.settings.job_id,
        seconds=seconds,
        epochs=profile.epochs,
        failed_epochs=profile.failed_epochs,
        samples=profile.tasks.samples,
        interval=profile.interval,
        worked_seconds=worked,
        operators=sorted(operators.values(), key=lambda found: -found.total_seconds),
        kinds=dict(sorted(kinds.items(), key=lambda item: -item[1])),
        steps={step: getattr(profile.steps, step) for step in STEPS},
        folded=_folded(profile),
    )


def _operators(profile: CollectedProfile) -> Iterator[OperatorTime]:
    labels = _labels(profile.plan)
    for vertex in profile.plan.vertices:
        subtasks = len(profile.subtasks.get(vertex.uid, ()))
        records: list[int] = []
        for index, operator in enumerate(vertex.operators):
            alike = told_by(vertex, index)
            counted = profile.records.get(operator.uid, 0)
            records.append(counted if alike is None else records[alike])
            yield OperatorTime(
                operator.uid,
                operator.name,
                labels[operator.uid],
                str(operator.location),
                vertex.name,
                subtasks,
                records[index],
            )


def _folded(profile: CollectedProfile) -> Folded:
    labels = _labels(profile.plan)
    found: Folded = {}
    for spot, micros in profile.tasks.micros.items():
        stack = _stack(profile.plan, labels, spot)
        found[stack] = found.get(stack, 0) + micros
    return found


def _labels(plan: PhysicalPlan) -> dict[str, str]:
    """Operator uid → how it is called: those of one name are numbered."""
    operators = [operator for vertex in plan.vertices for operator in vertex.operators]
    names = [_plain(operator.name) for operator in operators]
    labels = {}
    for index, (operator, name) in enumerate(zip(operators, names, strict=True)):
        nth = names[: index + 1].count(name)
        labels[operator.uid] = f"{name} #{nth}" if names.count(name) > 1 else name
    return labels


def _stack(plan: PhysicalPlan, labels: dict[str, str], spot: Spot) -> tuple[str, ...]:
    chain = _plain(plan.vertices[spot.vertex].name)
    if spot.operator is None:
        return (chain, f"[{spot.kind}]")
    return (chain, labels.get(spot.operator, spot.operator), *spot.frames)


def _plain(name: str) -> str:
    """Folded stacks have a semicolon between two frames, and a line for each stack."""
    return " ".join(name.replace(";", ",").split())


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0
