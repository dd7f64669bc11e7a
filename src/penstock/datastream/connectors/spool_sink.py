"""A sink of Parquet files in a directory: one file per subtask and epoch, named at commit.

Serves `to_spark`; knows Arrow, not Spark.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.common.types import Row
from penstock.datastream.connectors.base import (
    Committable,
    Committer,
    InitContext,
    Sink,
    SinkWriter,
    WriterContext,
)
from penstock.errors import TypeMismatchError

_ROWS_PER_GROUP = 20_000


class SpoolSink(Sink):
    """Records as rows of the given Arrow schema, in files under `directory`."""

    def __init__(self, directory: str, schema: pa.Schema) -> None:
        self.directory = directory
        self.schema = schema

    def create_writer(self, context: InitContext) -> SinkWriter:
        name = f"{context.epoch:010d}-{context.subtask_index:05d}-{context.attempt}.parquet"
        return _SpoolWriter(os.path.join(self.directory, name), self.schema)

    def create_committer(self) -> Committer:
        return _SpoolCommitter(self.directory)


class _SpoolWriter(SinkWriter):
    def __init__(self, path: str, schema: pa.Schema) -> None:
        # Spark passes over files whose names begin with an underscore.
        self._pending = os.path.join(os.path.dirname(path), "_" + os.path.basename(path))
        self._schema = schema
        self._cells = row_cells(tuple(schema.names))
        self._rows: list[tuple[Any, ...]] = []
        self._file: pq.ParquetWriter | None = None

    def write(self, value: Any, context: WriterContext) -> None:
        self._rows.append(self._cells(value))
        if len(self._rows) >= _ROWS_PER_GROUP:
            self._flush()

    def prepare_commit(self) -> list[Any]:
        self._flush()
        if self._file is None:
            return []
        self._file.close()
        return [os.path.basename(self._pending)]

    def abort(self) -> None:
        if self._file is not None:
            self._file.close()
            os.unlink(self._pending)

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        try:
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
            raise TypeMismatchError(
                f"a row of {self._schema.names}", "record", f"that does not fit ({error})"
            ) from None
        if self._file is None:
            self._file = pq.ParquetWriter(self._pending, self._schema)
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()


class _SpoolCommitter(Committer):
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def commit(self, committables: list[Committable]) -> None:
        for item in committables:
            pending = os.path.join(self._directory, item.data)
            if os.path.exists(pending):
                os.replace(pending, os.path.join(self._directory, item.data[1:]))


def row_cells(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A record as the cells of a row: by position, or by name where it has names only."""
    width = len(names)

    def cells(value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            found = tuple(value.get(name) for name in names)
        elif isinstance(value, tuple | list | Row):
            found = tuple(value)
        elif dataclasses.is_dataclass(value):
            found = tuple(getattr(value, name) for name in names)
        else:
            found = (value,)
        if len(found) != width:
            raise TypeMismatchError.of(f"a record of {width} fields ({', '.join(names)})", value)
        return found

    return cells
