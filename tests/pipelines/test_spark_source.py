"""from_spark: rows of a DataFrame, batch or streaming, as records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pipeline_records import Point

from penstock.common import Row
from penstock.datastream import StreamExecutionEnvironment
from penstock.driver.spark_columns import with_files
from penstock.driver.spark_stages import FILE
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

pytestmark = pytest.mark.spark
on_spark = pytest.mark.parametrize("executor", ["spark"], indirect=True)


def _points(spark: Any, first: int, last: int) -> Any:
    return spark.createDataFrame([(n, n * n) for n in range(first, last)], "x long, y long")


@on_spark
def test_kinds_of_records(spark: Any, make_env: Any) -> None:
    """One job reads a frame in six ways; rows are also read by name and position."""
    env = make_env()
    frame = spark.createDataFrame([(3, 9, "c")], "x long, y long, name string")
    kinds = [None, tuple, dict, Row, Point]
    streams = [env.from_spark(frame, kind) for kind in kinds]
    named = [s.map(lambda record, i=i: (i, repr(record))) for i, s in enumerate(streams)]
    fields = streams[0].map(lambda record: (5, (record.x, record[1], record.name)))

    found = dict(fields.union(*named).execute_and_collect())

    assert found == {
        0: "Record(x=3, y=9, name='c')",
        1: "(3, 9, 'c')",
        2: "{'x': 3, 'y': 9, 'name': 'c'}",
        3: "Row(x=3, y=9, name='c')",
        4: "Point(x=3, y=9)",
        5: (3, 9, "c"),
    }


@on_spark
def test_batch_frame_with_state_and_a_python_source(spark: Any, make_env: Any) -> None:
    env = make_env()
    rows = env.from_spark(_points(spark, 0, 50), tuple).map(lambda record: record[0])
    numbers = env.from_sequence(50, 99)

    totals = rows.union(numbers).key_by(lambda n: n % 2).sum()

    assert max(totals.execute_and_collect()) == sum(range(1, 100, 2))


@on_spark
def test_batch_frame_resumed_at_its_position(
    spark: Any, restartable_env: Any, collect_until_error: Any
) -> None:

    def counts(env: StreamExecutionEnvironment, limit: int) -> Any:
        def check(record: Any) -> tuple[int, int]:
            if record.x >= limit:
                raise RuntimeError("half-way")
            return record.x % 10, record.x

        # Many files, so that there are several epochs.
        frame = _points(spark, 0, 200).repartitionByRange(20, "x")
        return env.from_spark(frame).map(check).key_by(0).sum(1)

    first, error = collect_until_error(counts(restartable_env(), 150))
    second = list(counts(restartable_env(), 1000).execute_and_collect())

    assert "half-way" in str(error)
    assert first
    assert len(first) + len(second) == 200
    last = {key: max(n for k, n in first + second if k == key) for key in range(10)}
    assert last == {key: sum(range(key, 200, 10)) for key in range(10)}


@on_spark
def test_file_stream_resumed_at_its_position(
    spark: Any, restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    """Bounded: what is there when a run starts, files that came between two runs included."""
    folder = str(tmp_path / "points")

    def stream(limit: int) -> Any:
        def check(record: tuple[int, int]) -> tuple[int, int]:
            if record[0] >= limit:
                raise RuntimeError("half-way")
            return record

        reader = spark.readStream.schema("x long, y long").option("maxFilesPerTrigger", 1)
        frame = reader.parquet(folder)
        return restartable_env().from_spark(frame, tuple, bounded=True).map(check)

    _points(spark, 0, 5).coalesce(1).write.parquet(folder)
    _points(spark, 5, 10).coalesce(1).write.mode("append").parquet(folder)
    first, _ = collect_until_error(stream(limit=5))
    _points(spark, 10, 12).coalesce(1).write.mode("append").parquet(folder)
    second = list(stream(limit=100).execute_and_collect())

    assert sorted(first) == [(n, n * n) for n in range(5)]
    assert sorted(second) == [(n, n * n) for n in range(5, 12)]


@on_spark
def test_endless_file_stream(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """Files that come while the job runs are read, until the iterator is closed."""
    folder = str(tmp_path / "points")
    _points(spark, 0, 3).write.parquet(folder)
    frame = spark.readStream.schema("x long, y long").parquet(folder)

    with make_env().from_spark(frame, tuple).execute_and_collect() as records:
        first = sorted(next(records) for _ in range(3))
        _points(spark, 3, 5).write.mode("append").parquet(folder)
        second = sorted(next(records) for _ in range(2))

    assert first == [(0, 0), (1, 1), (2, 4)]
    assert second == [(3, 9), (4, 16)]


def test_refusals(spark: Any, env: StreamExecutionEnvironment, executor: str) -> None:
    frame = _points(spark, 0, 1)
    with pytest.raises(InvalidArgumentError, match="a batch DataFrame ends"):
        env.from_spark(frame, bounded=False)
    with pytest.raises(InvalidArgumentError, match=r"frame must be a \(classic\) Spark DataFrame"):
        env.from_spark([1, 2])
    if executor == "local":
        env.from_spark(frame).print()
        with pytest.raises(UnsupportedFeatureError, match="reads a Spark DataFrame") as e:
            env.execute()
        assert "test_spark_source.py:" in str(e.value)
        assert "set penstock.executor to spark" in str(e.value)


@on_spark
def test_a_stream_by_way_of_sql(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """With a common table expression, a leaf of whose plan is no stream."""
    folder = str(tmp_path / "in")
    _points(spark, 0, 3).write.parquet(folder)
    spark.readStream.schema("x long, y long").parquet(folder).createOrReplaceTempView("points")
    frame = spark.sql("with odd as (select y from points where x % 2 = 1) select * from odd")
    found = make_env().from_spark(frame, tuple, bounded=True).execute_and_collect()
    assert list(found) == [(1,)]


@pytest.mark.parametrize("streaming", [False, True])
def test_which_frames_tell_the_files_of_their_rows(
    spark: Any, tmp_path: Path, capfd: Any, streaming: bool
) -> None:
    """Those whose rows come as they are in the files; of others nothing is tried, as Spark would
    log it."""
    spark.range(3).selectExpr("id", "'a' AS name").write.parquet(str(tmp_path / "rows"))
    reader = spark.readStream if streaming else spark.read
    rows = reader.schema("id long, name string").parquet(str(tmp_path / "rows"))
    rows.createOrReplaceTempView("rows_of_files")
    telling = [
        rows,
        rows.where("id > 0").selectExpr("id + 1 AS n", "explode(array(1, 2)) AS m"),
        rows.selectExpr("timestamp_millis(id) AS t").withWatermark("t", "1 second"),
    ]
    others = [
        rows.dropDuplicates(["id"]),
        rows.union(rows),
        rows.groupBy("name").count(),
        rows.repartition(2, "id"),
        rows.selectExpr("id AS _Metadata"),
        spark.sql("SELECT name FROM rows_of_files AS r WHERE id < 9"),  # which hides it
        spark.range(3),
    ]
    capfd.readouterr()
    assert [with_files(frame).columns for frame in telling] == [
        [*frame.columns, FILE] for frame in telling
    ]
    assert [with_files(frame).columns for frame in others] == [frame.columns for frame in others]
    assert "UNRESOLVED" not in "".join(capfd.readouterr())
