"""Which part of a program works on whole columns: a rewrite of the nodes before they are chained.

Columns behind a Spark source become steps of the source. Windows with built-in aggregates behind
them, or behind a source of files that reads columns, get partial results, combined by key and slice
of time before they leave the source's task, wherever nothing stands against it; if something does,
the reason is kept for explain. Decides, and asks sources for nothing but their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.watermark_strategy import FieldTime, WatermarkKind
from penstock.datastream.connectors.base import Source
from penstock.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.errors import InvalidProgramError
from penstock.graph.partitioning import ByKey, Forward
from penstock.graph.stream_graph import Node
from penstock.runtime.aggregates import BuiltInAggregate
from penstock.runtime.fields import Getter, TupleGetter
from penstock.runtime.operators.columns import ColumnOperator
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.operators.windows import Windowing
from penstock.runtime.partials import (
    KEY_TYPES,
    NOT_OF_SPARK,
    NUMBER_OF_RECORDS,
    TIME_TYPES,
    Combined,
    partials_of,
)

COLUMNAR, PYTHON = "columnar", "Python"


@dataclass(frozen=True)
class Lane:
    """Where an operator's work is done, and if it might have been done elsewhere, why not."""

    name: str
    reason: str | None = None

    def __str__(self) -> str:
        return self.name if self.reason is None else f"{self.name}, since {self.reason}"


class _InPython(Exception):
    """Why something is left to Python."""


_DECLARED = "a type is declared, to which values are converted in Python"


def in_lanes(
    nodes: tuple[Node, ...], heads: Mapping[int, int], ordered_everywhere: bool = False
) -> tuple[tuple[Node, ...], dict[int, Lane]]:
    """The nodes as they are to run, and the lane of each; none if there is only one.

    `heads`: for each node, the first node of its chain.
    """
    forms = _forms(nodes)
    if not any(isinstance(node.operator, SparkSource) or node.id in forms for node in nodes):
        return nodes, {}
    found = {node.id: node for node in nodes}
    lanes = {node.id: Lane(PYTHON) for node in nodes}
    for node in nodes:
        if isinstance(node.operator, SparkSource):
            path = _path(nodes, node)
            for changed in _with_steps(path):
                found[changed.id] = changed
                lanes[changed.id] = Lane(COLUMNAR)
    for node in nodes:
        if _is_built_in(node):
            try:
                changes = _combined(tuple(found.values()), node, forms, heads, ordered_everywhere)
            except _InPython as why:
                lanes[node.id] = Lane(PYTHON, str(why))
            else:
                found.update((changed.id, changed) for changed in changes)
                lanes.update((changed.id, Lane(COLUMNAR)) for changed in changes)
                lanes[node.id] = Lane(f"{COLUMNAR}, partial results merged")
    return tuple(found[node.id] for node in nodes), lanes


# Columns


def _path(nodes: tuple[Node, ...], source: Node) -> list[Node]:
    """A source and the operators behind it that Spark does: columns, then perhaps timestamps."""
    path = [source]
    while _time_of(path[-1]) is None:
        readers = _readers(nodes, path[-1])
        columnar = [node for node in readers if _is_columnar(node)]
        if not columnar:
            break
        if len(readers) > 1:
            raise InvalidProgramError.columns_of_one_branch(_place(columnar[0]), _place(path[-1]))
        path += columnar
    return path


def _is_columnar(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, ColumnOperator) or (
        isinstance(operator, AssignTime) and operator.column is not None
    )


def _time_of(node: Node) -> AssignTime | None:
    """What gives records their timestamps there, if anything does."""
    operator = node.operator
    if isinstance(operator, AssignTime):
        return operator
    found: AssignTime | None = getattr(operator, "time", None)
    return found


def _with_steps(path: list[Node]) -> list[Node]:
    """The same nodes; the source does the work of all."""
    source: SparkSource = path[0].operator
    steps = tuple(n.operator for n in path if isinstance(n.operator, ColumnOperator))
    times = [time for time in map(_time_of, path) if time is not None]
    column = times[0].column if times else None
    source = replace(
        source,
        steps=steps,
        record=steps[-1].record if steps else source.record,
        time_column=column,
        has_times=column is not None,
    )
    return [replace(path[0], operator=source), *path[1:]]


def _readers(nodes: tuple[Node, ...], of: Node) -> list[Node]:
    """The nodes that read another one, once for each time that they do."""
    edges = [(node, edge) for node in nodes for edge in (*node.inputs, *(node.feedback or ()))]
    return [node for node, edge in edges if edge.source == of.id]


def _place(node: Node) -> str:
    return f"{node.name!r} ({node.location})"


# Windows


def _combined(
    nodes: tuple[Node, ...],
    window: Node,
    forms: Mapping[int, Any],
    heads: Mapping[int, int],
    ordered_everywhere: bool,
) -> tuple[Node, ...]:
    """The nodes that change if the records of a window are combined before they come to it."""
    _check_windows(window, ordered_everywhere)
    path = _path_to(nodes, window, forms)
    for node in path[1:]:
        if heads[node.id] != heads[path[0].id]:  # only an exchange by key takes whole batches
            raise _InPython(f"{_place(node)} is not chained to what is before it")
    timed = path[-1]
    time = _time_of(timed)
    assert time is not None
    if time.strategy.kind is not WatermarkKind.BOUNDED:
        raise _InPython("its watermarks are made from single records")
    by_key = window.inputs[0].partitioning
    assert isinstance(by_key, ByKey)
    if by_key.key_type is not None or any(node.output_type is not None for node in path):
        raise _InPython(_DECLARED)
    source = path[0].operator
    if isinstance(source, SparkSource):
        combined, source = _combined_by_spark(nodes, window, source, by_key)
    else:
        combined, source = _combined_by_columns(window, source, forms[path[0].id], time, by_key)
    time = replace(time, newest=combined.newest)
    if timed is path[0]:
        source = replace(source, time=time)
    else:
        timed = replace(timed, operator=time)
    edge = replace(window.inputs[0], partitioning=replace(by_key, select=combined.select))
    window = replace(window, operator=replace(window.operator, combined=combined), inputs=(edge,))
    return timed, replace(path[0], operator=source), window


def _combined_by_spark(
    nodes: tuple[Node, ...], window: Node, source: SparkSource, by_key: ByKey
) -> tuple[Combined, SparkSource]:
    if sum(not node.inputs for node in nodes) > 1:
        raise _InPython("the job has other sources")
    if any(getattr(node.operator, "needs_clock", False) for node in nodes):
        raise _InPython("the job has epochs without input, for an operator that goes by the clock")
    frame = source.steps[-1].frame if source.steps else source.frame
    types = [kind for _, kind in frame.dtypes]
    combined = _combination(source.record.positions(), types, window.operator, by_key)
    for partial in combined.partials:
        if partial.kind in NOT_OF_SPARK:
            raise _InPython("Spark has no aggregate for all the values beside an extreme")
    return combined, replace(source, combined=combined)


def _combined_by_columns(
    window: Node, source: PythonSource, form: Any, time: AssignTime, by_key: ByKey
) -> tuple[Combined, PythonSource]:
    """The same for a source that reads whole columns by itself."""
    if source.record_type is not None:
        raise _InPython(_DECLARED)
    types = [_SPARKS_NAMES.get(str(kind), str(kind)) for kind in form.schema.types]
    positions = form.record.positions()
    combined = _combination(positions, types, window.operator, by_key)
    assigner: Any = time.strategy.timestamp_assigner
    at = _column(positions, assigner.field)
    if types[at] not in TIME_TYPES:
        raise _InPython(f"the timestamps {assigner.field!r} are a column of type {types[at]}")
    # What else files have is neither read nor need be the same in all of them.
    used = sorted({at, *combined.keys, *(c for p in combined.partials for c in p.columns)})
    only: Any = source.source
    source = replace(
        source,
        source=only.columnar(used).source,
        combined=combined.over(used),
        time_column=used.index(at),
    )
    return combined.over(used), source


_SPARKS_NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "date32[day]": "date",
}
"""Of types that Arrow calls otherwise."""


def _forms(nodes: tuple[Node, ...]) -> dict[int, Any]:
    """The Python sources by whole columns, if any window has a use for that; None of one that
    cannot do so, or not now."""
    if not any(_is_built_in(node) for node in nodes):
        return {}
    return {
        node.id: node.operator.source.columnar()
        for node in nodes
        if isinstance(node.operator, PythonSource) and _has_columns(node.operator.source)
    }


def _has_columns(source: Source) -> bool:
    return type(source).columnar is not Source.columnar


def _is_built_in(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Windowing) and isinstance(operator.combine, BuiltInAggregate)


def _check_windows(window: Node, ordered_everywhere: bool) -> None:
    windowing: Windowing = window.operator
    assigner: Any = windowing.assigner
    if type(assigner) is SlidingEventTimeWindows:
        if assigner.slide > assigner.size or assigner.size % assigner.slide:
            raise _InPython("its windows are not made of whole slides")
    elif type(assigner) is not TumblingEventTimeWindows:
        raise _InPython(f"{type(assigner).__name__} are no windows at fixed places in event time")
    if type(windowing.trigger) is not EventTimeTrigger:
        raise _InPython("it has a trigger of its own")
    if windowing.evictor is not None:
        raise _InPython("an evictor needs single records")
    if windowing.allowed_lateness:
        raise _InPython("with allowed lateness every late record fires")
    if windowing.late_tag is not None:
        raise _InPython("late records go to a side output one by one")
    if window.event_time_order or ordered_everywhere:
        raise _InPython("records are put in order of time")


def _path_to(nodes: tuple[Node, ...], window: Node, forms: Mapping[int, Any]) -> list[Node]:
    """From the source to what is before the window, if all of it works on columns."""
    by_id = {node.id: node for node in nodes}
    if len(window.inputs) != 1 or window.inputs[0].tag is not None:
        raise _InPython("it does not read just one stream")
    edge = window.inputs[0]
    if not isinstance(edge.partitioning, ByKey):
        raise _InPython("its records are not sent by key")
    found: list[Node] = []
    while True:
        node = by_id[edge.source]
        found.insert(0, node)
        if len(_readers(nodes, node)) > 1:
            raise _InPython(f"{_place(node)} is also read by others")
        if isinstance(node.operator, SparkSource) or node.id in forms:
            break
        if not isinstance(node.operator, ColumnOperator | AssignTime) or len(node.inputs) != 1:
            raise _InPython(f"{_place(node)} before it is done in Python")
        edge = node.inputs[0]
        if not isinstance(edge.partitioning, Forward):
            raise _InPython(f"its records are sent to {_place(node)} one by one")
    time = _time_of(found[-1])
    if forms.get(found[0].id, found) is None:
        raise _InPython("its source has no columns, or no file yet to know them from")
    if isinstance(found[0].operator, SparkSource):
        if not found[0].operator.has_times or time is None:
            raise _InPython(
                "its timestamps are no Column, as in with_timestamp_assigner(F.col('time'))"
            )
    elif time is None or not isinstance(time.strategy.timestamp_assigner, FieldTime):
        raise _InPython("its timestamps are no field, as in with_timestamp_assigner('time')")
    if any(_time_of(node) is not None for node in found[:-1]):
        raise _InPython("timestamps are assigned twice")
    return found


def _combination(
    positions: dict[Any, int] | None, types: list[str], windowing: Windowing, by_key: ByKey
) -> Combined:
    if positions is None:
        raise _InPython("its records are objects of a class")
    keys, several = _key_fields(by_key.select)
    columns = [_column(positions, field) for field in keys]
    for field, at in zip(keys, columns, strict=True):
        if types[at] not in KEY_TYPES:
            raise _InPython(f"the key {field!r} is a column of type {types[at]}")
    aggregates = windowing.combine.aggregates.values()
    used = {f: _column(positions, f) for aggregate in aggregates for f in aggregate.fields}
    partials: list[Any] = []
    parts: list[tuple[str, tuple[int, ...]]] = []
    for aggregate in aggregates:
        if aggregate.field is None:
            parts.append((aggregate.kind, (NUMBER_OF_RECORDS,)))
            continue
        try:
            wanted = partials_of(aggregate, used, types)
        except ValueError as why:
            raise _InPython(str(why)) from None
        partials += [partial for partial in wanted if partial not in partials]
        parts.append((aggregate.kind, tuple(partials.index(partial) for partial in wanted)))
    assigner: Any = windowing.assigner
    slide = getattr(assigner, "slide", assigner.size)
    return Combined(tuple(columns), several, slide, assigner.offset, tuple(partials), tuple(parts))


def _key_fields(select: Any) -> tuple[list[Any], bool]:
    """The fields that a key is made of, and whether it is a tuple of them."""
    several = isinstance(select, TupleGetter)
    selectors = select.selectors if several else (select,)
    if not all(isinstance(one, Getter) for one in selectors):
        raise _InPython("its key is computed by a Python function")
    return [one.field for one in selectors], several


def _column(positions: dict[Any, int], field: Any) -> int:
    if field not in positions:
        raise _InPython(f"its records have no field {field!r}")
    return positions[field]


__all__ = ["Lane", "in_lanes"]
