"""Columns of Spark's as operators: which streams take them, and what they make of the rows.

A Column is tried on the stream's DataFrame at once, so that a misspelt name is found at the user's
line; Spark itself is reached through `spark_interface` only.
"""

from __future__ import annotations

from typing import Any

from penstock.common.watermark_strategy import is_column
from penstock.datastream import spark_interface
from penstock.datastream._records import RecordMaker, ValueMaker
from penstock.errors import InvalidArgumentError, InvalidProgramError
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.runtime.operators.columns import ColumnFilter, ColumnMap, ColumnOperator
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.operators.timestamps import AssignTime

__all__ = [
    "check_time",
    "check_time_of",
    "column_filter",
    "column_key",
    "column_map",
    "has_columns",
    "is_column",
]

Edges = tuple[Edge, ...]


def has_columns(value: Any) -> bool:
    """Whether it is a Column, or a list of which one is."""
    return is_column(value) or (isinstance(value, list | tuple) and any(map(is_column, value)))


def column_map(graph: StreamGraph, edges: Edges, given: Any) -> ColumnMap:
    frame, _ = _before("map", graph, edges)
    columns = (given,) if is_column(given) else tuple(given)
    strangers = [column for column in columns if not is_column(column)]
    if strangers:
        raise InvalidArgumentError.of("a list for map", "Columns only", strangers[0])
    rows = spark_interface.tried("map", frame.select, *columns)
    names = tuple(rows.columns)
    if len(set(names)) < len(names):
        raise InvalidArgumentError(
            f"map makes records with fields {list(names)}, of which some have the same name; give "
            "them names by alias(...)"
        )
    record: Any = ValueMaker() if is_column(given) else RecordMaker(names)
    return ColumnMap(columns, rows, record)


def column_filter(graph: StreamGraph, edges: Edges, column: Any) -> ColumnFilter:
    frame, record = _before("filter", graph, edges)
    rows = spark_interface.tried("filter", frame.where, column)
    return ColumnFilter((column,), rows, record)


def column_key(graph: StreamGraph, edges: Edges, column: Any) -> int | str:
    """The field of the records that a Column stands for."""
    frame, record = _before("key_by", graph, edges, after_time=True)
    position = spark_interface.position_of_field("key_by", frame, column)
    field: int | str | None = None if position is None else record.field_of(position)
    if field is None:
        raise InvalidArgumentError(
            "key_by takes a Column that is a field of the records; compute the key in a map "
            "before: map([..., column.alias('key')]).key_by('key')"
        )
    return field


def check_time(graph: StreamGraph, edges: Edges, time: AssignTime) -> None:
    """Refuse a Column for timestamps where it cannot be one."""
    if time.column is not None:
        frame, _ = _before("with_timestamp_assigner", graph, edges)
        check_time_of(frame, time)


def check_time_of(frame: Any, time: AssignTime) -> None:
    if time.column is not None:
        spark_interface.check_time_column(frame, time.column)


def _before(
    method: str, graph: StreamGraph, edges: Edges, after_time: bool = False
) -> tuple[Any, Any]:
    """The rows of the stream, and how they become records."""
    if len(edges) != 1 or edges[0] != Edge(edges[0].source):
        raise InvalidProgramError.not_columnar(
            method, "the stream is a union, a side output or another partitioning"
        )
    node = graph.node(edges[0].source)
    operator = node.operator
    while after_time and isinstance(operator, AssignTime):
        node = graph.node(node.inputs[0].source)
        operator = node.operator
    place = f"{node.name!r} ({node.location})"
    if isinstance(operator, SparkSource) and operator.time is not None and not after_time:
        raise InvalidProgramError.not_columnar(method, f"{place} has assigned timestamps already")
    if not isinstance(operator, SparkSource | ColumnOperator):
        raise InvalidProgramError.not_columnar(
            method, f"the records of {place} before it are Python's, not rows of a DataFrame"
        )
    return operator.frame, operator.record
