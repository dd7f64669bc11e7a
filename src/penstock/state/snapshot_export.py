"""A state of a snapshot as a file for other tools: Parquet, CSV or JSON lines.

The columns are those of `snapshot_columns`; written batch by batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.common.parts import in_parts
from penstock.errors import InvalidArgumentError
from penstock.state.snapshot_columns import RowColumns, columns_of
from penstock.state.snapshot_reader import rows_of
from penstock.state.stored_states import StateRow
from penstock.storage.snapshot import Snapshot

FORMATS = ("parquet", "csv", "jsonl")
_BATCH = 10_000


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...


def export(
    snapshot: Snapshot,
    operator: str,
    state: str,
    path: str,
    format: str | None = None,
    *,
    trust_pickle: bool = False,
) -> int:
    """Write the rows of a state to a local file; how many there are.

    The format is one of `FORMATS`, by default that of the path's ending.
    """
    chosen = format or path.rpartition(".")[2]
    if chosen not in FORMATS:
        raise InvalidArgumentError.of("the format of an export", " or ".join(FORMATS), chosen)
    columns = columns_of(snapshot, operator, state, trust_pickle)
    rows = rows_of(snapshot, operator, state, trust_pickle=trust_pickle)
    if chosen == "csv":
        columns = columns.flat()
    if chosen == "jsonl":
        with open(path, "w", encoding="utf-8") as file:
            return _write(rows, columns, _JsonLines(file))
    if chosen == "csv":
        with pa_csv.CSVWriter(path, columns.schema) as writer:
            return _write(rows, columns, writer)
    with pq.ParquetWriter(path, columns.schema, compression="zstd") as writer:
        return _write(rows, columns, writer)


def _write(rows: Iterable[StateRow], columns: RowColumns, writer: _Writer) -> int:
    written = 0
    for batch in in_parts(rows, _BATCH):
        writer.write_batch(columns.batch(batch))
        written += len(batch)
    return written


class _JsonLines:
    def __init__(self, file: Any) -> None:
        self._file = file

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            self._file.write(json.dumps(row, default=_as_json, ensure_ascii=False) + "\n")


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
