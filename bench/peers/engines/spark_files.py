"""The first so many files of an input as a streaming frame of Spark's, a few in each batch."""

from __future__ import annotations

from typing import Any

from bench.peers.engines.orders import paths_in


def frame_of(spark: Any, params: dict[str, Any], stream: str) -> Any:
    names = ",".join(path.name for path in paths_in(params, stream))
    return (
        spark.readStream.schema(params["schemas"][stream])
        .option("maxFilesPerTrigger", params["files_per_epoch"])
        .option("pathGlobFilter", f"{{{names}}}")
        .parquet(params["inputs"][stream])
    )
