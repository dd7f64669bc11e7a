"""The tasks as Spark runs them: Arrow batches in, Arrow batches out. Unpickled on executors.

Holds only a path and a few numbers, since Spark ships it with every task.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles, TaskContext

from penstock.datastream.connectors._arrow_columns import column_values
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.grouping import numbers_in
from penstock.runtime.operators.sources import SourceRecords, SparkSource
from penstock.runtime.payload import Row
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.plan_file import load_plan
from penstock.runtime.surroundings import Surroundings
from penstock.runtime.tasks import run_python_sources, run_spark_source, run_stage
from penstock.storage.columns import binary_array

ORDER_PROPERTY = "penstock.order"
ROW_SCHEMA = "partition int, time bigint, producer bigint, sequence int, payload binary"
_ARROW_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("time", pa.int64()),
        ("producer", pa.int64()),
        ("sequence", pa.int32()),
        ("payload", pa.binary()),
    ]
)
PAYLOAD_AT = _ARROW_SCHEMA.get_field_index("payload")
"""Where rows that Spark hands out as they are have it. Read elsewhere, it is memory of others'."""
_BIG = 1 << 30
_ROWS_AT_ONCE = 2048
FILE = "penstock file"
"""The column that says which file a row is from, if that matters."""
_LEAST_IN_PART = 1000

Batches = Iterator[pa.RecordBatch]

# A worker makes millions of short-lived tuples, which hold no cycles; looking for cycles after
# every 700 of them is a tenth of its time.
gc.set_threshold(50_000, 20, 50)
_TASKS_UNTIL_SETTLED = 3
_tasks = 0


def _settle() -> None:
    """Take what a worker has loaded out of the collector's sight, once it has loaded it all.

    PySpark collects garbage after every task, with the next one waiting: nine milliseconds and
    more, for modules and functions that never become garbage.
    """
    global _tasks
    _tasks += 1
    if _tasks <= _TASKS_UNTIL_SETTLED:
        gc.collect()
        gc.freeze()


def _order() -> EpochOrder:
    return EpochOrder.from_text(_context().getLocalProperty(ORDER_PROPERTY))


def _context() -> Any:
    context = TaskContext.get()
    assert context is not None
    return context


def _to_arrow(groups: Iterable[list[Row]]) -> Batches:
    for rows in groups:
        for part in _cut(rows):
            partitions, times, producers, sequences, payloads = zip(*part, strict=True)
            arrays = [
                _int_array("i", pa.int32(), partitions),
                _int_array("q", pa.int64(), times),
                _int_array("q", pa.int64(), producers),
                _int_array("i", pa.int32(), sequences),
                binary_array(payloads),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def _int_array(code: str, kind: pa.DataType, values: tuple[int, ...]) -> pa.Array:
    """Not by `pa.array`, whose first call imports pandas: half a second in every worker."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(array(code, values))])


def _cut(rows: list[Row]) -> Iterator[list[Row]]:
    """Arrow's binary columns end at 2 GiB."""
    part: list[Row] = []
    size = 0
    for row in rows:
        if part and size + len(row.payload) > _BIG:
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row.payload)
    if part:
        yield part


def _from_arrow(batches: Batches) -> Iterator[Row]:
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Row._make(row)


@dataclass(frozen=True)
class ShippedPlan:
    """Where a worker finds the plan, and what it must find around it to read it."""

    path: str
    surroundings: Surroundings = Surroundings()  # noqa: RUF009 - it is immutable

    def load(self) -> PhysicalPlan:
        self.surroundings.enter(SparkFiles.getRootDirectory())
        return load_plan(self.path)


@dataclass(frozen=True)
class StageTask:
    """A stage behind an exchange."""

    plan: ShippedPlan
    level: int

    def __call__(self, batches: Batches) -> Batches:
        _settle()
        plan = self.plan.load()
        partition = _context().partitionId()
        rows = _from_arrow(batches)
        return _to_arrow(run_stage(plan, self.level, partition, _order(), rows))


@dataclass(frozen=True)
class PythonSourceTask:
    """All Python sources: a row is a call to read, its value is the subtask."""

    plan: ShippedPlan

    def __call__(self, batches: Batches) -> Batches:
        _settle()
        plan = self.plan.load()
        order = _order()
        for batch in batches:
            for value in batch.column(batch.schema.get_field_index("value")).to_pylist():
                yield from _to_arrow(run_python_sources(plan, value, order))


@dataclass(frozen=True)
class SparkSourceTask:
    """One Spark source: its rows become records."""

    plan: ShippedPlan
    vertex: int

    def __call__(self, batches: Batches) -> Batches:
        _settle()
        plan = self.plan.load()
        vertex = plan.vertices[self.vertex]
        source: SparkSource = vertex.operators[0].operator
        if source.combined is not None:
            records: Iterable[SourceRecords] = map(source.read_combined, batches)
        else:
            records = (
                source.read([column_values(c) for c in part.columns], part.schema.types)._replace(
                    new_part=new and not number
                )
                for new, file in _by_file(batches)
                for number, part in enumerate(_sliced(file))
            )
        subtask = _context().partitionId() % vertex.parallelism
        return _to_arrow(run_spark_source(plan, vertex, subtask, _order(), records))


def _by_file(batches: Batches) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Batches cut where a file begins that was not met before; whether one does.

    If files alternate, as they do behind an exchange, all have been met soon. And cuts are not
    close to each other, for the sake of many small files.
    """
    met: set[int] = set()
    rows = 0
    for batch in batches:
        if FILE not in batch.schema.names:
            yield False, batch
            continue
        at = batch.schema.get_field_index(FILE)
        files = numbers_in(batch.column(at))
        records = batch.remove_column(at)
        start, new = 0, False
        for change in [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist()]:
            if change >= len(files) or (file := int(files[change])) in met:
                continue
            first = not met
            met.add(file)
            if not first and rows + change - start >= _LEAST_IN_PART:
                if change > start:
                    yield new, records.slice(start, change - start)
                start, new, rows = change, True, 0
        yield new, records.slice(start)
        rows += len(files) - start


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """In parts whose records fit into a processor's cache: a seventh of a source task's time."""
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        yield batch.slice(start, _ROWS_AT_ONCE)
