"""What an epoch did, summed over its tasks, for whoever watches the job. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.driver.epoch_cost import EpochCost
from penstock.driver.iterations import LoopReport
from penstock.driver.side_inputs import SideInputStatus
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.watermarks import MIN_TIMESTAMP
from penstock.storage.manifest import Manifest


@dataclass(frozen=True)
class EpochReport:
    """What an epoch did, for whoever watches."""

    epoch: int
    seconds: float
    records_in: Mapping[str, int]
    records_out: Mapping[str, int]
    state_bytes: int
    """Bytes of state written by this epoch."""
    state_rows: int
    final: bool
    batch: int | None
    metrics: Mapping[str, list[Any]] = field(default_factory=dict)
    seconds_by_step: Mapping[str, float] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """Operator uid → how far its slowest subtask is in event time; absent before a watermark."""
    side_inputs: Mapping[str, SideInputStatus] = field(default_factory=dict)
    """Rows and age of each side input, by name."""
    loops: Mapping[str, LoopReport] = field(default_factory=dict)
    """Uid of each iteration → what is in its loop."""
    restored_bytes: int = 0
    """Bytes of checkpoint files that tasks read, to bring their stores to the epoch's base."""
    cost: EpochCost | None = None
    """What it took in all, and how much of that was work on records."""
    record_limit: int | None = None
    """What a subtask of a Python source might read, if that is adapted."""

    @property
    def idle(self) -> bool:
        return not any(self.records_in.values())


def report_of(
    plan: PhysicalPlan,
    order: EpochOrder,
    acknowledgements: list[Acknowledgement],
    manifest: Manifest,
    *,
    batch: int | None,
    seconds: float,
    steps: Mapping[str, float],
    cost: EpochCost,
    side_inputs: Mapping[str, SideInputStatus],
) -> EpochReport:
    """The report of an epoch that was committed with this manifest, but for its loops."""
    files = [file for a in acknowledgements for file in a.files]
    files += [file for a in acknowledgements for loop in a.loops.values() for file in loop["files"]]
    metrics: dict[str, list[Any]] = {}
    for a in acknowledgements:
        for uid, found in a.metrics.items():
            metrics.setdefault(uid, []).append(found)
    return EpochReport(
        epoch=order.epoch,
        seconds=seconds,
        records_in=_summed(a.records_in for a in acknowledgements),
        records_out=_summed(a.records_out for a in acknowledgements),
        state_bytes=sum(file["bytes"] for file in files),
        state_rows=sum(file["rows"] for file in files),
        final=manifest.final,
        batch=batch,
        metrics=metrics,
        seconds_by_step=steps,
        watermarks=_watermarks(plan, acknowledgements),
        side_inputs=side_inputs,
        restored_bytes=sum(a.restored_bytes for a in acknowledgements),
        cost=cost,
        record_limit=order.most_records,
    )


def _watermarks(plan: PhysicalPlan, acknowledgements: list[Acknowledgement]) -> dict[str, int]:
    lowest: dict[str, int] = {}
    for a in acknowledgements:
        operators = plan.vertices[a.vertex].operators
        if isinstance(operators[0].operator, SparkSource) and not a.reached:
            continue  # a task that had no records says nothing about its source
        for operator in operators:
            found = a.watermarks.get(operator.uid, MIN_TIMESTAMP)
            lowest[operator.uid] = min(found, lowest.get(operator.uid, found))
    return {uid: found for uid, found in lowest.items() if found > MIN_TIMESTAMP}


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for found in counts:
        for name, count in found.items():
            total[name] = total.get(name, 0) + count
    return total
