"""Columns, and windows whose records Spark combines: on Spark only, where there are DataFrames."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from late_records import late_records

from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.errors import InvalidArgumentError, InvalidProgramError, PenstockError
from penstock.options import STATE_CACHE_ENTRIES, WINDOW_SLICES

pytestmark = pytest.mark.spark
on_spark = pytest.mark.parametrize("executor", ["spark"], indirect=True)

_SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("x", pa.float64()),
     ("s", pa.string())]
)  # fmt: skip
_SPARK_SCHEMA = "id string, ts long, n long, x double, s string"
_MERGED = "columnar, partial results merged"
# Else a watermark might come in the middle of an epoch, if that takes long enough.
_BY_EPOCH = {"pipeline.auto-watermark-interval": "1 h"}
Row = tuple[Any, ...]


def _stream_of(spark: Any, folder: Path, epochs: list[list[Row]]) -> Any:
    """A frame that has one list of rows in each batch."""
    folder.mkdir()
    for number, rows in enumerate(epochs):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
        file = folder / f"{number:03d}.parquet"
        pq.write_table(pa.table(arrays, schema=_SCHEMA), file)
        os.utime(file, (number, number))  # Spark reads files in the order of their age
    reader = spark.readStream.schema(_SPARK_SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def _strategy(late: int = 0) -> WatermarkStrategy:
    from pyspark.sql import functions as F  # noqa: N812

    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late))
    return bounded.with_timestamp_assigner(F.col("ts"))


def _with_window(key: Any, window: Any, results: Any) -> list[Row]:
    return [(key, window.start, *result) for result in results]


def _row(id: Any, ts: int, n: Any = None, x: Any = None, s: Any = None) -> Row:
    return id, ts, n, x, s


@on_spark
def test_columns_before_windows(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """A filter, a projection, a key, timestamps of Spark's kind; one record comes too late."""
    from pyspark.sql import functions as F  # noqa: N812

    epochs = [
        [_row("a", 100, 1), _row("b", 200, 5), _row("a", 900, 2), _row("a", 1500, 8)],
        [_row("a", 950, 99), _row("b", 1700, 7), _row("b", 1800, -1), _row("b", 1900)],
    ]
    env = make_env(_BY_EPOCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(F.col("at"))
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    stream = (
        env.from_spark(_stream_of(spark, tmp_path / "rows", epochs), bounded=True)
        .filter(F.coalesce(F.col("n"), F.lit(0)) >= 0)
        .map([F.col("id"), F.timestamp_millis("ts").alias("at"), (F.col("n") * 2).alias("twice")])
        .assign_timestamps_and_watermarks(strategy)
        .key_by(F.col("id"))
        .window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
        .aggregate(agg.of(n=agg.count(), mean=agg.avg("twice")), _with_window)
    )

    found = sorted(stream.execute_and_collect())

    assert found == [
        ("a", 0, 2, 3.0),
        ("a", 1000, 1, 16.0),
        ("b", 0, 1, 10.0),
        ("b", 1000, 2, 14.0),
    ]
    assert late_records(reports) == 1
    assert sum(max(report.records_in.values()) for report in reports) == 7


@on_spark
def test_columns_before_python_functions(spark: Any, make_env: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    env = make_env()
    frame = spark.createDataFrame([(n, n * n) for n in range(6)], "x long, y long")
    values = env.from_spark(frame).filter(F.col("x") > 2).map(F.col("x") + F.col("y"))
    plan = env.from_spark(frame).map([F.col("y"), F.col("x").alias("z")])

    found = values.map(lambda value: ("value", value)).union(
        plan.filter(lambda record: record.z > 3).map(lambda record: ("record", repr(record)))
    )

    assert sorted(found.execute_and_collect()) == [
        ("record", "Record(y=16, z=4)"),
        ("record", "Record(y=25, z=5)"),
        ("value", 12),
        ("value", 20),
        ("value", 30),
    ]


@on_spark
def test_columns_with_awkward_names(spark: Any, make_env: Any) -> None:
    """Names that Python or we use otherwise, left to Python since there are several sources."""
    from pyspark.sql import functions as F  # noqa: N812

    env = make_env()
    frame = spark.createDataFrame(
        [(n % 2, n * 10, n) for n in range(4)], "_1 long, _2 long, Time long"
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(F.col("_2"))
    windows = (
        env.from_spark(frame)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("_1")
        .window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
        .aggregate(agg.of(total=agg.sum("_2"), newest=agg.max("Time")), _with_window)
    )
    named = env.from_spark(frame).key_by(F.col("TIME")).map(lambda r: ("named", r._1, r.Time))
    tuples = (
        env.from_spark(frame, record_type=tuple).key_by(F.col("_2")).map(lambda r: ("tuple", *r))
    )
    values = (
        env.from_spark(frame).map(F.col("time")).key_by(F.col("time")).map(lambda n: ("value", n))
    )

    found = sorted(windows.union(named, tuples, values).execute_and_collect(), key=repr)

    assert found == [
        *[("named", n % 2, n) for n in (0, 2, 1, 3)],
        *[("tuple", n % 2, n * 10, n) for n in (0, 2, 1, 3)],
        *[("value", n) for n in range(4)],
        (0, 0, 20, 2),
        (1, 0, 40, 3),
    ]


# Both lanes and a model

_AGGREGATES = {
    "rows": agg.count(),
    "known": agg.count("x"),
    "big": agg.sum("n"),
    "total": agg.sum("x"),
    "mean": agg.avg("x"),
    "mean_of_big": agg.avg("n"),
    "low": agg.min("x"),
    "high": agg.max("s"),
    "low_by": agg.min_by("s", "x"),
    "high_by": agg.max_by("n", "s"),
    "several_by": agg.min_by(("n", "s"), "x"),
    "distinct": agg.count_distinct("x"),
}
_ROWS = st.tuples(
    st.sampled_from(["a", "b", "ç"]),
    st.integers(-3000, 6000),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.integers(-64, 64).map(lambda n: n / 16),
    st.none() | st.sampled_from(["", "p", "q", "ü", "\U0001f600"]),
)
_EPOCHS = st.lists(st.lists(_ROWS, min_size=1, max_size=60), min_size=2, max_size=3)
_WINDOWS = st.sampled_from([(1000, 1000, 0), (1000, 1000, 250), (2000, 500, 0)])


def _model(epochs: list[list[Row]], function: Any, sizes: Row, late: int) -> list[Row]:
    """Every record added to each of its windows that is still open when its epoch begins."""
    size, slide, offset = sizes
    windows: dict[Row, Any] = {}
    watermark = -(10**9)
    for rows in epochs:
        for row in rows:
            newest = row[1] - (row[1] - offset) % slide
            for start in range(newest, row[1] - size, -slide):
                if start + size - 1 > watermark:
                    held = windows.get((row[0], start)) or function.create_accumulator()
                    record = dict(zip(_SCHEMA.names, row, strict=True))
                    windows[row[0], start] = function.add(record, held)
        watermark = max(watermark, max(row[1] for row in rows) - late - 1)
    return [(*at, *function.get_result(held)) for at, held in windows.items()]


def _windowed(env: Any, frame: Any, function: Any, sizes: Row, late: int, by: Any) -> Any:
    size, slide, offset = (Duration.of_millis(n) for n in sizes)
    assigner: Any = (
        TumblingEventTimeWindows.of(size, offset)
        if sizes[0] == sizes[1]
        else SlidingEventTimeWindows.of(size, slide, offset)
    )
    return (
        env.from_spark(frame, bounded=True)
        .assign_timestamps_and_watermarks(_strategy(late))
        .uid("time")
        .key_by(by)
        .window(assigner)
        .aggregate(function, _with_window)
        .uid("windows")
    )


# What is easily got wrong: sums beyond 64 bits, times before 1970, ranks and values that are null,
# NaN, both zeros; and a record that is late by what the newest of an epoch, not its oldest, says.
_AWKWARD = [
    [
        *[("a", -2900, 2**63 - 1, 0.5, "p"), ("a", -2800, 2**63 - 1, None, None)],
        *[("a", -2850, -5, -0.25, "q"), ("b", 300, None, float("nan"), "ü")],
        *[("b", 400, None, -0.0, ""), ("b", 500, -(2**63), 0.0, "p"), ("b", 600, -1, -1.0, None)],
        *[("b", 700, 0, 2.0, "q"), ("ç", 1300, 1, 1.0, None), ("ç", 2000, 2, None, "p")],
    ],
    [
        *[("ç", 300, 99, 9.0, "late"), ("ç", 2100, 3, 0.25, "q"), ("ç", 1400, None, None, None)],
        *[("b", 5000, None, None, None), ("a", 5000, 1, float("nan"), "z")],
    ],
]


@on_spark
@example(_AWKWARD, set(_AGGREGATES), (1000, 1000, 250), 500)
@example(_AWKWARD, {"rows", "known", "big", "mean", "mean_of_big", "low"}, (1000, 1000, 250), 500)
@given(
    _EPOCHS, st.sets(st.sampled_from(sorted(_AGGREGATES)), min_size=1), _WINDOWS,
    st.sampled_from([0, 1000]),
)  # fmt: skip
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_both_lanes_against_a_model(
    spark: Any, make_env: Any, epochs: list[list[Row]], names: set[str], sizes: Row, late: int
) -> None:
    function = agg.of(**{name: _AGGREGATES[name] for name in sorted(names)})
    wanted = sorted(map(repr, _model(epochs, function, sizes, late)))
    with tempfile.TemporaryDirectory() as folder:
        frame = _stream_of(spark, Path(folder) / "rows", epochs)
        for by, merged in (("id", True), (lambda record: record.id, False)):
            env = make_env(_BY_EPOCH)
            stream = _windowed(env, frame, function, sizes, late, by)
            found = sorted(map(repr, stream.execute_and_collect()))
            assert found == wanted, "columnar" if merged else "Python"


@on_spark
def test_lane_changes_over_restarts(
    spark: Any, restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    """Columnar until it fails, then in Python until it fails, then columnar: one state for both."""
    epochs = [
        [_row(key, 400 * epoch + n, x=float(n), s=f"s{epoch}") for n in range(20) for key in "abc"]
        for epoch in range(9)
    ]
    frame = _stream_of(spark, tmp_path / "rows", epochs)
    function = agg.of(n=agg.count(), mean=agg.avg("x"), s=agg.count_distinct("s"))
    sizes = (2000, 1000, 0)

    def stream(by: Any, fails_at: int) -> Any:
        def check(result: Row) -> Row:
            if result[1] >= fails_at:
                raise RuntimeError("half-way")
            return result

        env = restartable_env(_BY_EPOCH)
        return _windowed(env, frame, function, sizes, 0, by).map(check)

    first, _ = collect_until_error(stream("id", 0))
    second, _ = collect_until_error(stream(lambda record: record.id, 1000))
    third = list(stream("id", 10_000).execute_and_collect())

    assert first
    assert second
    assert sorted(first + second + third) == sorted(_model(epochs, function, sizes, 0))


@on_spark
@pytest.mark.parametrize(("size", "slices"), [(1000, True), (2000, False), (2000, True)])
def test_epochs_and_late_records(
    spark: Any, make_env: Any, tmp_path: Path, size: int, slices: bool
) -> None:
    """Partial results of one epoch are merged into what is in state, unless they are too late; also
    if memory shall hold so little that they are written away before their windows fire."""
    late = [_row("a", 900, x=6.0)] * 4
    epochs = [
        [_row("a", 0, x=1.0), _row("a", 1, x=2.0), _row("b", 2, x=7.0)],
        [_row("a", 3, x=2.0), _row("a", 4, x=3.0), _row("a", 5, x=3.0)],
        *[[_row("a", 1000, x=4.0)], [_row("a", 3000, x=5.0)], late],
    ]
    frame = _stream_of(spark, tmp_path / "rows", epochs)
    function = agg.of(n=agg.count(), different=agg.count_distinct("x"))
    env = make_env({WINDOW_SLICES.key: str(slices).lower(), STATE_CACHE_ENTRIES.key: "1"})
    reports: list[Any] = []
    env.add_epoch_listener(reports.append)
    sizes = (size, 1000, 0)

    found = sorted(_windowed(env, frame, function, sizes, 0, "id").execute_and_collect())

    assert found == sorted(_model(epochs, function, sizes, 0))
    assert late_records(reports) == 4


@on_spark
def test_batch_mode(spark: Any, make_env: Any) -> None:
    """All input in one epoch; a batch frame needs no streaming query."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = [_row("ab"[n % 2], n * 100, n, n / 4) for n in range(40)]
    env = make_env({"execution.runtime-mode": "BATCH"})
    frame = spark.createDataFrame(rows, _SPARK_SCHEMA)
    function = agg.of(n=agg.count(), total=agg.sum("n"))
    stream = (
        env.from_spark(frame, watermark_strategy=_strategy())
        .key_by(F.col("id"))
        .window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
        .aggregate(function, _with_window)
    )

    found = sorted(stream.execute_and_collect())

    assert found == sorted(_model([rows], function, (1000, 1000, 0), 0))


@on_spark
def test_operators_that_are_not_chained(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """Whole batches pass through a chain and an exchange by key only: else it is Python's."""
    epochs = [[_row("ab"[n % 2], n * 100, n) for n in range(e, e + 20)] for e in (0, 20)]
    frame = _stream_of(spark, tmp_path / "rows", epochs)
    env = make_env(_BY_EPOCH)
    env.disable_operator_chaining()
    function = agg.of(n=agg.count(), total=agg.sum("n"))
    stream = _windowed(env, frame, function, (1000, 1000, 0), 0, "id")

    found = sorted(stream.execute_and_collect())

    assert found == sorted(_model(epochs, function, (1000, 1000, 0), 0))


@on_spark
@pytest.mark.parametrize("known", [False, True])
def test_batches_are_planned_once(
    spark: Any, make_env: Any, tmp_path: Path, monkeypatch: Any, known: bool
) -> None:
    """Or each by itself, if plans have another shape than is known."""
    from penstock.driver.spark_batches import RowsPlan
    from penstock.driver.spark_frames import SourceFrames

    planned: list[Any] = []
    combined = SourceFrames.combined

    def counted(frames: Any, frame: Any) -> Any:
        planned.append(frame)
        return combined(frames, frame)

    monkeypatch.setattr(SourceFrames, "combined", counted)
    if not known:
        monkeypatch.setattr(RowsPlan, "of", staticmethod(lambda plan: None))
    epochs = [[_row("a", 100 * n, n), _row("b", 100 * n + 50, 10 * n)] for n in range(8)]
    env = make_env(_BY_EPOCH)
    stream = (
        env.from_spark(_stream_of(spark, tmp_path / "rows", epochs), bounded=True)
        .assign_timestamps_and_watermarks(_strategy())
        .key_by("id")
        .window(TumblingEventTimeWindows.of(Duration.of_millis(500)))
        .aggregate(agg.of(n=agg.count(), total=agg.sum("n")), _with_window)
    )

    assert sorted(stream.execute_and_collect()) == [
        ("a", 0, 5, 10),
        ("a", 500, 3, 18),
        ("b", 0, 5, 100),
        ("b", 500, 3, 180),
    ]
    assert len(planned) == (1 if known else 1 + len(epochs))


@on_spark
def test_null_timestamps_fail(spark: Any, make_env: Any, tmp_path: Path) -> None:
    epochs = [[("a", None, 1, 1.0, "s")]]
    frame = _stream_of(spark, tmp_path / "rows", epochs)
    stream = _windowed(make_env(), frame, agg.of(n=agg.count()), (1000, 1000, 0), 0, "id")
    with pytest.raises(PenstockError, match="a record has no timestamp: the column given to"):
        list(stream.execute_and_collect())


@on_spark
def test_explain_and_refusals(spark: Any, make_env: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = _stream_of(spark, tmp_path / "rows", [[_row("a", 1)]])
    env = make_env()
    _windowed(env, frame, agg.of(n=agg.count()), (1000, 1000, 0), 0, "id").print()
    assert f"[{_MERGED}]" in env.explain()
    rows = env.from_spark(frame)
    column = F.col("n") > 1
    python = rows.map(lambda record: record)
    with pytest.raises(InvalidProgramError, match="are Python's, not rows of a DataFrame") as error:
        python.filter(column)
    assert "test_columnar.py:" in str(error.value)
    with pytest.raises(InvalidProgramError, match="union"):
        rows.union(python).map(column)
    with pytest.raises(InvalidProgramError, match="has assigned timestamps already"):
        env.from_spark(frame, watermark_strategy=_strategy()).filter(column)
    with pytest.raises(InvalidProgramError, match="not rows of a DataFrame"):
        env.from_collection([1]).assign_timestamps_and_watermarks(_strategy())
    with pytest.raises(InvalidProgramError, match=r"does not fit the stream's rows: .*nothing"):
        rows.filter(F.col("nothing") > 1)
    with pytest.raises(InvalidProgramError, match="map was given a Column that does not fit"):
        rows.map([F.col("nothing")])
    with pytest.raises(InvalidArgumentError, match="give them names by alias"):
        rows.map([F.col("n"), F.col("n")])
    with pytest.raises(InvalidArgumentError, match="Columns only"):
        rows.map([F.col("n"), "s"])
    with pytest.raises(InvalidArgumentError, match="a Column that is a field of the records"):
        rows.key_by(F.col("n") + 1)
    with pytest.raises(InvalidArgumentError, match="avg takes a field by its name or position"):
        agg.avg(column)
    with pytest.raises(InvalidArgumentError, match="got one of type string"):
        rows.assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(F.col("s"))
        )
