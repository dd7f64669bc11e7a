"""Reads the table of a side input, whatever it is. On the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.datastream._records import RecordMaker
from penstock.datastream.side_input import SideInput
from penstock.errors import InvalidArgumentError, SideInputError
from penstock.runtime.side_inputs import Content

_KINDS = "a Spark or pandas DataFrame, an Arrow table or a list of rows"


def read_table(side: SideInput, most: int) -> Content:
    """All of its rows, which may be `most`."""
    table = side.table
    if callable(table):
        table = table()
    if is_spark_frame(table):
        table = _collected(side, table, most)
    elif _module(table) == "pandas":
        table = pa.Table.from_pandas(table, preserve_index=False)
    elif hasattr(table, "__arrow_c_stream__"):
        table = pa.table(table)
    if isinstance(table, pa.Table):
        columns = tuple(table.column_names)
        _check_columns(side, columns)
        _check_size(side, table.num_rows, most)
        return Content(columns, [column.to_pylist() for column in table.columns])
    if isinstance(table, str | bytes | Mapping) or not isinstance(table, Iterable):
        got = type(table).__name__
        raise SideInputError.of(side.name, side.location, f"it must be {_KINDS}, got {got}")
    rows = list(table)
    _check_size(side, len(rows), most)
    return Content(None, rows)


def is_spark_frame(table: Any) -> bool:
    return hasattr(table, "isStreaming") and hasattr(table, "toArrow")


def check_frame(side: SideInput, frame: Any) -> None:
    """Refuse a Spark DataFrame that cannot be a side input."""
    if frame.isStreaming:
        raise SideInputError.of(
            side.name,
            side.location,
            "it is a streaming DataFrame, which has no end; connect it as a stream "
            "(env.from_spark), or read the table as a batch (spark.read)",
        )
    _check_columns(side, tuple(frame.columns))


def _check_columns(side: SideInput, columns: tuple[str, ...]) -> None:
    missing = [name for name in side.key_columns if name not in columns]
    if missing:
        raise SideInputError.of(
            side.name, side.location, f"its key {missing} is not among its columns {list(columns)}"
        )
    try:
        RecordMaker(columns, side.record_type)
    except InvalidArgumentError as error:
        raise SideInputError.of(side.name, side.location, str(error)) from None


def _collected(side: SideInput, frame: Any, most: int) -> pa.Table:
    check_frame(side, frame)
    if hasattr(frame, "_jdf"):
        # Else it would be the files that were there when the frame was made.
        frame._jdf.queryExecution().analyzed().refresh()
    collected: pa.Table = frame.select("*").limit(most + 1).toArrow()
    return collected


def _check_size(side: SideInput, rows: int, most: int) -> None:
    if rows > most:
        raise SideInputError.of(
            side.name,
            side.location,
            f"it has more than {most:,} rows (penstock.side-input.max-rows), and every task holds "
            "all of them; select less, join it in Spark before env.from_spark, or raise the limit",
        )


def _module(table: Any) -> str:
    return type(table).__module__.partition(".")[0]
