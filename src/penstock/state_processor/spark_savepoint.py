"""Savepoints and retained checkpoints as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType, _parse_datatype_string

from penstock.errors import InvalidArgumentError
from penstock.state.snapshot_columns import columns_of
from penstock.state.snapshot_reader import (
    SOURCE_POSITIONS,
    StateInfo,
    keyed_layout,
    rows_of,
    states_of,
)
from penstock.state.stored_states import StateLayout
from penstock.state_processor.reading import Reading, joined_types, read_parts
from penstock.storage.snapshot import Snapshot, open_snapshot
from penstock.storage.trust import is_trusted

# Files up to this size are looked through sooner than Spark starts a task.
_SMALL = 1 << 20


class Savepoint:
    """A savepoint, or a checkpoint that a job has kept, whose states can be read as DataFrames."""

    def __init__(self, spark: SparkSession, snapshot: Snapshot, trust_pickle: bool) -> None:
        self._spark = spark
        self.snapshot = snapshot
        self._trust_pickle = trust_pickle

    @classmethod
    def open(cls, spark: SparkSession, path: str, trust_pickle: bool = False) -> Savepoint:
        """The savepoint at a path; a job's directory of checkpoints stands for its newest one.

        With `trust_pickle`, values that are pickled are opened: that runs what whoever wrote the
        savepoint wants to be run, and needs the classes of the values on the workers.
        """
        snapshot = open_snapshot(path)
        snapshot.check_files()
        return cls(spark, snapshot, trust_pickle)

    @property
    def path(self) -> str:
        return self.snapshot.path

    def is_trusted(self) -> bool:
        """Whether this user wrote it, or says that it may be trusted."""
        return self._trust_pickle or is_trusted(self.snapshot)

    @property
    def spark(self) -> SparkSession:
        return self._spark

    def states(self) -> list[StateInfo]:
        """All states: operator uid, name, kind, type, entries and bytes."""
        return states_of(self.snapshot)

    def read(
        self,
        uid: str,
        state: str,
        *,
        value_schema: str | DataType | None = None,
        as_text: Sequence[str] = (),
    ) -> DataFrame:
        """One state of an operator, a row for each key, or each entry of a map.

        `as_text` names columns that are to hold text, as Python's `repr` gives it, instead of
        values with a type. `value_schema` says how pickled values are laid out, once trusted.
        """
        layout = keyed_layout(self.snapshot.manifest, uid, state)
        if layout is None:
            return self._on_the_driver(uid, state)
        reading = self._reading(layout, tuple(as_text))
        if value_schema is not None:
            reading = replace(reading, value_type=self._value_type(layout, value_schema))
        return self.frame_of(reading)

    def timers(self, uid: str, *, processing_time: bool = False) -> DataFrame:
        """The timers of an operator: key, window, time in milliseconds."""
        return self.read(uid, "_processing_timers" if processing_time else "_event_timers")

    def operator_state(self, uid: str, name: str) -> DataFrame:
        """A list state of an operator, or a broadcast state."""
        return self._on_the_driver(uid, name)

    def source_positions(self) -> DataFrame:
        """How far each source has been read, a row for each split."""
        frames = [
            self._on_the_driver(uid, SOURCE_POSITIONS).selectExpr(
                "split", "value.position AS position", "value.finished AS finished"
            )
            for uid in self.snapshot.manifest.sources
        ]
        schema = "source string, split string, position binary, finished boolean"
        if self._trust_pickle:
            schema = schema.replace("binary", "string")
        found = self._spark.createDataFrame([], schema)
        for uid, frame in zip(self.snapshot.manifest.sources, frames, strict=True):
            named = frame.selectExpr(f"'{uid}' AS source", "*")
            found = found.unionByName(named)
        return found

    def frame_of(self, reading: Reading) -> DataFrame:
        """The rows of a state, read by Spark's tasks."""
        schema = spark_schema(reading.schema)
        return self._numbers(reading).mapInArrow(reading.batches, schema)

    def _numbers(self, reading: Reading) -> DataFrame:
        """One number for each part, each in a task of its own."""
        parts = len(reading.parts)
        return self._spark.range(0, parts, 1, max(parts, 1))

    def reading(self, layout: StateLayout, open_pickles: bool) -> Reading:
        """A state to be read; its keys are looked through once, by Spark, for their type."""
        parts = tuple(read_parts(self.snapshot.manifest, layout))
        root = self.snapshot.layout.root
        reading = Reading(root, layout, parts, open_pickles=open_pickles)
        key_type, map_key_type = joined_types(self._types(reading))
        return replace(reading, key_type=key_type, map_key_type=map_key_type)

    def _types(self, reading: Reading) -> list[str]:
        files = [file for part in reading.parts for file in part.files]
        if sum(file.bytes for file in files) <= _SMALL:
            return [reading.types_in(file) for file in files]
        found = self._numbers(reading).mapInArrow(reading.key_types, "types string").collect()
        return [row.types for row in found]

    def _reading(self, layout: StateLayout, as_text: tuple[str, ...]) -> Reading:
        return replace(self.reading(layout, self._trust_pickle), as_text=as_text)

    def _value_type(self, layout: StateLayout, schema: str | DataType) -> pa.DataType:
        if layout.type is None or layout.type["kind"] != "pickled" or not self._trust_pickle:
            raise InvalidArgumentError(
                f"value_schema is for pickled values of a trusted savepoint; state "
                f"{layout.state!r} of {layout.operator!r} is "
                + (
                    "pickled, and the savepoint is not trusted: open it with trust_pickle=True"
                    if layout.type is not None and layout.type["kind"] == "pickled"
                    else "typed: cast its columns instead"
                )
            )
        found = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        arrow = to_arrow_type(found, timezone="UTC")
        return pa.list_(arrow) if layout.in_chunks else arrow

    def _on_the_driver(self, uid: str, state: str) -> DataFrame:
        """What a manifest holds itself, which is little."""
        columns = columns_of(self.snapshot, uid, state, self._trust_pickle)
        rows = list(rows_of(self.snapshot, uid, state, trust_pickle=self._trust_pickle))
        table = pa.Table.from_batches([columns.batch(rows)])
        return self._spark.createDataFrame(table, spark_schema(table.schema))


def spark_schema(schema: pa.Schema) -> StructType:
    found: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return found
