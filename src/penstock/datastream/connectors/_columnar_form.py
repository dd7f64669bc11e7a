"""A source by columns: what the planner takes if a program wants nothing but columns of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.datastream._records import RecordMaker
from penstock.datastream.connectors.base import Source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ColumnarForm:
    """A source that can hand out whole batches of columns instead of records."""

    source: Source
    """The same source: same splits, same positions. The records that its reader gives are a
    RecordBatch, their number is that of its rows."""
    record: RecordMaker
    """How records are made of these columns elsewhere: it tells which field is which column."""
    schema: pa.Schema
    """Of every batch, but that a column of strings may come as `pa.dictionary(int32, string)`."""
