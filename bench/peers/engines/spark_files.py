"""The first so many files of an input as a streaming frame of Spark's, a few in each batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.engines.orders import paths_in


def frame_of(spark: Any, params: dict[str, Any], stream: str) -> Any:
    return (
        spark.readStream.schema(params["schemas"][stream])
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .parquet(str(linked(params, stream)))
    )


def linked(params: dict[str, Any], stream: str) -> Path:
    """A directory with just these files. Spark lists it in every batch: a pattern for them in one
    with many others would take it longer than a batch of few rows."""
    directory = Path(params["scratch"]) / "input" / stream
    directory.mkdir(parents=True)
    for path in paths_in(params, stream):
        (directory / path.name).symlink_to(path)
    return directory
