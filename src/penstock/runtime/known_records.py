"""What is known of the records that a chain sends, since they are as they came. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.runtime.operators.columns import ColumnOperator
from penstock.runtime.operators.marked import Mark
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.operators.stateless import Filter
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import PhysicalOperator, Vertex
from penstock.runtime.shapes import marked_shape, shape_of

_SOURCES = (PythonSource, SparkSource)
_PASSING = (AssignTime, Filter, ColumnOperator, Mark)
"""They emit what they get, at most with a mark."""


def declared_shape(sender: Vertex, edge: int) -> str | None:
    """The shape of all records of an edge, if their type was declared where they came from."""
    for at, described in enumerate(sender.operators):
        if any(output.edge == edge and output.tag is None for output in described.outputs):
            return _shape_behind(sender, at)
    return None


def _shape_behind(sender: Vertex, at: int) -> str | None:
    described = sender.operators[at]
    operator = described.operator
    if isinstance(operator, PythonSource) and operator.record_type is not None:
        return shape_of(operator.record_type)
    if described.output_type is not None or not isinstance(operator, _PASSING):
        return shape_of(described.output_type)
    for before, previous in enumerate(sender.operators):
        if any(output.operator == at and output.tag is None for output in previous.outputs):
            return _marked(described, _shape_behind(sender, before))
    return None


def shapes_sent(sender: Vertex, shape: str | None) -> Iterator[tuple[int, str | None]]:
    """The edges whose records are as the source gave them, each with the shape of its records, if
    the source's have this one."""
    ahead = [(0, shape)]
    while ahead:
        at, given = ahead.pop()
        described = sender.operators[at]
        passes = isinstance(described.operator, (*_PASSING, *_SOURCES))
        if passes and described.output_type is None:
            emitted = _marked(described, given)
            for output in described.outputs:
                if output.tag is None and output.edge is not None:
                    yield output.edge, emitted
                elif output.tag is None and output.operator is not None:
                    ahead.append((output.operator, emitted))


def _marked(described: PhysicalOperator, shape: str | None) -> str | None:
    if shape is None or not isinstance(described.operator, Mark):
        return shape
    return marked_shape(described.operator.stream, shape)
