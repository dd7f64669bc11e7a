"""The events as Parquet files, made once per machine; and what is in them of each type."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.nexmark.generator import AUCTION, BID, PERSON, SCHEMA, Settings, blocks

_FORMAT = 2

VIEWS = {
    PERSON: ("id", "name", "email_address", "credit_card", "city", "state", "date_time", "extra"),
    AUCTION: (
        *("id", "item_name", "description", "initial_bid", "reserve", "date_time", "expires"),
        *("seller", "category", "extra"),
    ),
    BID: ("auction", "bidder", "price", "channel", "url", "date_time", "extra"),
}
"""The columns that events of a type have."""

_SPARK_TYPES = {pa.int8(): "tinyint", pa.int64(): "long", pa.string(): "string"}
SPARK_SCHEMA = ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in SCHEMA)


def event_files(settings: Settings, cache: Path | None = None) -> Path:
    """The directory of the files; always the same content for the same settings."""
    cache = cache or Path(tempfile.gettempdir()) / "penstock-bench"
    name = f"nexmark-{_FORMAT}-{settings.events}-{settings.rate}-{settings.seed}-{settings.block}"
    target = cache / name
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=cache))
        for number, table in enumerate(blocks(settings)):
            path = made / f"f{number:05d}.parquet"
            pq.write_table(table, path, row_group_size=settings.block)
            os.utime(path, (number, number))  # Spark reads files in the order of their age
        try:
            os.rename(made, target)
        except OSError:  # another run was faster
            shutil.rmtree(made)
    return target


def paths_of(directory: str | Path) -> list[str]:
    """The files in the order of their events."""
    return [str(path) for path in sorted(Path(directory).glob("*.parquet"))]


def view(path: str, kind: int, columns: tuple[str, ...]) -> pa.Table:
    """The events of one type in a file."""
    table = pq.read_table(path, columns=["event_type", *columns], use_threads=False)
    mine = pc.equal(table.column("event_type"), pa.scalar(kind, pa.int8()))
    return table.filter(mine).select(list(columns))


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """Tuples, by the quickest way that pyarrow has."""
    columns = [
        column.to_pylist() if column.type == pa.string() else column.to_numpy().tolist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))
