"""The manifest of an epoch: its base's, brought forward by what the tasks acknowledged. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.driver.type_changes import merged_types
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sinks import WriteSink
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.physical import PhysicalPlan, Vertex
from penstock.state.redistribution import as_text
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import (
    LoopState,
    Manifest,
    SourceState,
    SparkSourceName,
    SubtaskState,
    VertexState,
)


def manifest_of(
    plan: PhysicalPlan,
    base: Manifest | None,
    order: EpochOrder,
    acknowledgements: list[Acknowledgement],
    *,
    batch: int | None,
    offsets: str | None,
    created: int,
    loops: Mapping[str, LoopState],
    spark_sources: tuple[SparkSourceName, ...] | None,
    draining: bool,
) -> Manifest:
    """What is to be committed. Without a batch, or Spark's sources, those of the base stay."""
    settings = plan.settings
    if batch is None:
        batch, offsets = (None, None) if base is None else (base.batch, base.offsets)
    if spark_sources is None:
        spark_sources = () if base is None else base.spark_sources
    # The last watermark may have made timers fire, and these sent something round again.
    final = order.final and not loops
    return Manifest(
        job_id=settings.job_id,
        job_name=settings.job_name,
        epoch=order.epoch,
        base=order.base,
        batch=batch,
        offsets=offsets,
        created=created,
        vertices=_vertices(plan, base, acknowledgements, order.epoch),
        sources=_sources(plan, base, acknowledgements),
        rows_read=_rows_read(plan, base, acknowledgements),
        state_types=merged_types({} if base is None else base.state_types, acknowledgements),
        committables=_durable(plan, acknowledgements, order.epoch),
        listeners=_listeners(plan, base, acknowledgements),
        loops=loops,
        spark_sources=spark_sources,
        origin=None if base is None else base.origin,
        final=final,
        drained=final and draining,
    )


def _vertices(
    plan: PhysicalPlan, base: Manifest | None, acknowledgements: list[Acknowledgement], epoch: int
) -> dict[str, VertexState]:
    by_subtask = {(a.vertex, a.subtask): a for a in acknowledgements}

    def subtasks(vertex: Vertex) -> tuple[SubtaskState, ...]:
        before = None if base is None else base.vertices[vertex.uid].subtasks
        return tuple(
            _advanced(
                SubtaskState("") if before is None else before[subtask],
                by_subtask.get((vertex.index, subtask)),
                epoch,
            )
            for subtask in range(vertex.parallelism)
        )

    return {
        vertex.uid: VertexState(
            tuple(operator.uid for operator in vertex.operators),
            vertex.parallelism,
            vertex.max_parallelism,
            subtasks(vertex),
        )
        for vertex in plan.vertices
    }


def _advanced(
    before: SubtaskState, acknowledgement: Acknowledgement | None, epoch: int
) -> SubtaskState:
    if acknowledgement is None:
        return before
    files = tuple(FileInfo.from_json(file) for file in acknowledgement.files)
    operators = {uid: as_text(data) for uid, data in acknowledgement.operator_state.items()}
    return replace(
        before.with_segment(acknowledgement.token, epoch, files),
        watermark=acknowledgement.watermark,
        operators=operators,
    )


def _sources(
    plan: PhysicalPlan, base: Manifest | None, acknowledgements: list[Acknowledgement]
) -> dict[str, SourceState]:
    found = {} if base is None else dict(base.sources)
    for a in acknowledgements:
        if a.positions:
            uid = plan.vertices[a.vertex].operators[0].uid
            known = found[uid].positions if uid in found else {}
            found[uid] = SourceState({**known, **a.positions})
    return found


def _rows_read(
    plan: PhysicalPlan, base: Manifest | None, acknowledgements: list[Acknowledgement]
) -> dict[str, int]:
    found = {} if base is None else dict(base.rows_read)
    for a in acknowledgements:
        head = plan.vertices[a.vertex].operators[0]
        if isinstance(head.operator, SparkSource):
            found[head.uid] = found.get(head.uid, 0) + sum(a.records_in.values())
    return found


def _listeners(
    plan: PhysicalPlan, base: Manifest | None, acknowledgements: list[Acknowledgement]
) -> tuple[str, ...]:
    known = {o.uid for vertex in plan.vertices for o in vertex.operators}
    before = set() if base is None else known.intersection(base.listeners)
    return tuple(sorted(before.union(*(a.listeners for a in acknowledgements))))


def _durable(
    plan: PhysicalPlan, acknowledgements: list[Acknowledgement], epoch: int
) -> dict[str, list[dict[str, Any]]]:
    """What sinks have prepared that want it kept; `committers.stored_in` reads it."""
    durable = {
        operator.uid
        for vertex in plan.vertices
        for operator in vertex.operators
        if isinstance(operator.operator, WriteSink) and operator.operator.durable
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for a in acknowledgements:
        for uid, items in a.committables.items():
            if uid in durable:
                found.setdefault(uid, []).extend(
                    {
                        "epoch": epoch,
                        "subtask": a.subtask,
                        "attempt": a.token,
                        "data": base64.b64encode(item).decode(),
                    }
                    for item in items
                )
    return found
