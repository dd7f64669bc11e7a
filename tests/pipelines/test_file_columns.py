"""Windows with built-in aggregates over Parquet files, whose columns the tasks combine."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from late_records import late_records

from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import aggregates as agg
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.parquet import ParquetRecords
from penstock.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.errors import PenstockError

_SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("x", pa.float64()),
     ("s", pa.string()), ("i", pa.int32())]
)  # fmt: skip
_MERGED = "columnar, partial results merged"
_IN_PYTHON = lambda record, _: record.ts
Row = tuple[Any, ...]


def _written(folder: Path, files: list[list[Row]], schema: pa.Schema = _SCHEMA) -> Path:
    folder.mkdir()
    for number, rows in enumerate(files):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        table = pa.table(arrays, schema=schema)
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=7)
    return folder


def _row(id: Any, ts: Any, n: Any = None, x: Any = None, s: Any = None, i: Any = None) -> Row:
    return id, ts, n, x, s, i


def _with_window(key: Any, window: Any, results: Any) -> list[Row]:
    return [(key, window.start, *result) for result in results]


def _assigner(sizes: Row) -> Any:
    size, slide, offset = (Duration.of_millis(n) for n in sizes)
    if sizes[0] == sizes[1]:
        return TumblingEventTimeWindows.of(size, offset)
    return SlidingEventTimeWindows.of(size, slide, offset)


def _windowed(
    env: Any,
    folder: Path,
    function: Any,
    sizes: Row = (1000, 1000, 0),
    late: int = 10_000,
    time: Any = "ts",
    by: Any = "id",
    at_source: bool = True,
    window_function: Any = _with_window,
    **how: Any,
) -> Any:
    source = FileSource.for_bulk_file_format(ParquetRecords(**how), str(folder)).in_time_order()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late))
    strategy = strategy.with_timestamp_assigner(time)
    nothing = WatermarkStrategy.no_watermarks()
    rows = env.from_source(source.build(), strategy if at_source else nothing, "rows").uid("rows")
    if not at_source:
        rows = rows.assign_timestamps_and_watermarks(strategy).uid("time")
    return rows.key_by(by).window(_assigner(sizes)).aggregate(function, window_function).uid("w")


def _model(files: list[list[Row]], function: Any, sizes: Row, key: Any) -> list[Row]:
    """Every record added to each of its windows."""
    size, slide, offset = sizes
    windows: dict[Row, Any] = {}
    for row in (row for rows in files for row in rows):
        newest = row[1] - (row[1] - offset) % slide
        record = dict(zip(_SCHEMA.names, row, strict=True))
        for start in range(newest, row[1] - size, -slide):
            at = key(record), start
            windows[at] = function.add(record, windows.get(at) or function.create_accumulator())
    return [(*at, *function.get_result(held)) for at, held in windows.items()]


_AGGREGATES = {
    "rows": agg.count(),
    "known": agg.count("s"),
    "big": agg.sum("n"),
    "small": agg.sum("i"),
    "total": agg.sum("x"),
    "mean": agg.avg("x"),
    "mean_of_big": agg.avg("n"),
    "low": agg.min("x"),
    "high": agg.max("x"),
    "least": agg.min("n"),
    "most": agg.max("i"),
    "first": agg.min("s"),
    "last": agg.max("s"),
    "low_by": agg.min_by("s", "x"),
    "high_by": agg.max_by(("x", "s"), "i"),
    "last_by": agg.max_by("x", "s"),
    "all_low": agg.all_min_by("s", "x"),
    "all_high": agg.all_max_by(("x", "s"), "i"),
    "all_last": agg.all_max_by("n", "s"),
    "distinct": agg.count_distinct("x"),
    "distinct_texts": agg.count_distinct("s"),
}
_ROWS = st.tuples(
    st.sampled_from(["a", "b", "ç"]),
    st.integers(-3000, 6000),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.integers(-64, 64).map(lambda n: n / 16),
    st.none() | st.sampled_from(["", "p"]),
    st.none() | st.integers(-(2**31), 2**31 - 1),
)
_FILES = st.lists(st.lists(_ROWS, min_size=1, max_size=60), min_size=1, max_size=4)
_WINDOWS = st.sampled_from([(1000, 1000, 0), (1000, 1000, 250), (2000, 500, 0)])
_BIG = 2**63 - 1
_AWKWARD = [
    [
        *[_row("a", -2900, _BIG, 0.5, "p", 5), _row("a", -2800, _BIG), _row("a", -2850, -5, -0.25)],
        *[_row("b", 300, None, math.nan), _row("b", 400, None, -0.0), _row("b", 500, -_BIG, 0.0)],
        *[_row("b", 600, -1, -1.0), _row("ç", 1300, 1, math.nan), _row("ç", 2000, 2, math.inf)],
    ],
    [_row("ç", 2100, 3, -math.inf, "", -7), _row("b", 5000), _row("a", 5000, 1, math.nan)],
]


@example(_AWKWARD, set(_AGGREGATES), (1000, 1000, 250), "id", True)
@example(_AWKWARD, {"rows", "low", "high", "mean"}, (2000, 500, 0), ("id", "i"), False)
@given(
    _FILES, st.sets(st.sampled_from(sorted(_AGGREGATES)), min_size=1), _WINDOWS,
    st.sampled_from(["id", "i", ("id", "i")]), st.booleans(),
)  # fmt: skip
@settings(
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
def test_both_lanes_against_a_model(
    make_env: Any, files: list[list[Row]], names: set[str], sizes: Row, by: Any, at_source: bool
) -> None:
    files = [[row if "i" not in by else (*row[:5], row[5] or 0) for row in f] for f in files]
    function = agg.of(**{name: _AGGREGATES[name] for name in sorted(names)})
    several = isinstance(by, tuple)
    key = (lambda r: tuple(r[b] for b in by)) if several else (lambda r: r[by])
    wanted = sorted(map(repr, _model(files, function, sizes, key)))
    with tempfile.TemporaryDirectory() as folder:
        rows = _written(Path(folder) / "rows", files)
        for time, merged in (("ts", True), (_IN_PYTHON, False)):
            env = make_env({"penstock.source.max-records-per-epoch": "25"})
            stream = _windowed(env, rows, function, sizes, time=time, by=by, at_source=at_source)
            found = sorted(map(repr, stream.execute_and_collect()))
            assert found == wanted, "columnar" if merged else "Python"


def test_computed_columns_and_a_filter(env: Any, tmp_path: Path) -> None:
    files = [[_row("ab"[n % 2], n * 100, n, n / 4) for n in range(e, e + 40)] for e in (0, 40)]
    rows = _written(tmp_path / "rows", files)
    stream = _windowed(
        env,
        rows,
        agg.of(n=agg.count(), total=agg.sum("twice")),
        columns={"id": "id", "ts": "ts", "twice": pc.field("x") * 2},
        where=pc.field("n") >= 10,
    )

    found = sorted(stream.execute_and_collect())

    expected: dict[Row, tuple[int, float]] = {}
    for id, ts, n, x, *_ in files[0] + files[1]:
        if n >= 10:
            count, total = expected.get((id, ts - ts % 1000), (0, 0.0))
            expected[id, ts - ts % 1000] = count + 1, total + 2 * x
    assert found == sorted((*at, *held) for at, held in expected.items())


@pytest.mark.parametrize("sizes", [(1000, 1000, 0), (2000, 1000, 0)])
def test_late_records(make_env: Any, tmp_path: Path, sizes: Row) -> None:
    """In an epoch of its own, and in that of the file that made it late."""
    files = [
        [_row("a", 100, 1), _row("b", 200, 2), _row("a", 4500, 3)],
        [_row("a", 300, 50), _row("a", 4600, 4), _row("b", 400, 60)],
    ]
    for most in ("3", "100"):
        reports: list[Any] = []
        env = make_env({"parallelism.default": "1", "penstock.source.max-records-per-epoch": most})
        env.add_epoch_listener(reports.append)
        rows = tmp_path / f"rows-{most}"
        stream = _windowed(env, _written(rows, files), agg.of(t=agg.sum("n")), sizes, late=0)

        found = sorted(stream.execute_and_collect())

        kept = [files[0], [files[1][1]]]
        key = lambda record: record["id"]
        assert found == sorted(_model(kept, agg.of(t=agg.sum("n")), sizes, key))
        assert late_records(reports) == 2


def test_lane_changes_over_restarts(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    """Columnar until it fails, then in Python until it fails, then columnar: one state for both,
    and the same positions in files."""
    files = [
        [_row(key, 1000 * file + 300 * n, n, float(n)) for n in range(12) for key in "abc"]
        for file in range(6)
    ]
    rows = _written(tmp_path / "rows", files)
    function = agg.of(n=agg.count(), mean=agg.avg("x"), most=agg.max("n"))

    def stream(time: Any, fails_at: int) -> Any:
        def check(result: Row) -> Row:
            if result[1] >= fails_at:
                raise RuntimeError("half-way")
            return result

        env = restartable_env()
        return _windowed(env, rows, function, late=4000, time=time).map(check)

    first, _ = collect_until_error(stream("ts", 1000))
    second, _ = collect_until_error(stream(_IN_PYTHON, 3000))
    third = list(stream("ts", 100_000).execute_and_collect())

    assert first
    assert second
    wanted = _model(files, function, (1000, 1000, 0), lambda record: record["id"])
    assert sorted(first + second + third) == sorted(wanted)


def test_null_timestamps_fail(env: Any, tmp_path: Path) -> None:
    rows = _written(tmp_path / "rows", [[_row("a", 1), _row("a", None)]])
    with pytest.raises(PenstockError, match="a record has no timestamp"):
        list(_windowed(env, rows, agg.of(n=agg.count())).execute_and_collect())


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63)])
def test_times_that_are_none_fail(env: Any, tmp_path: Path, time: int) -> None:
    """As they do in Python."""
    rows = _written(tmp_path / "rows", [[_row("a", 1), _row("a", time)]])
    stream = _windowed(env, rows, agg.of(n=agg.count()), late=0)
    with pytest.raises(PenstockError, match="a record's window must be"):
        list(stream.execute_and_collect())


def test_a_file_with_another_type_fails(env: Any, tmp_path: Path) -> None:
    rows = _written(tmp_path / "rows", [[_row("a", 1, 2)]])
    other = pa.table({**{n: ["x"] for n in _SCHEMA.names}, "ts": [5], "i": pa.array([1])})
    pq.write_table(other, rows / "9.parquet")
    with pytest.raises(PenstockError, match=r"9\.parquet"):
        list(_windowed(env, rows, agg.of(n=agg.sum("n"))).execute_and_collect())


def test_columns_that_are_not_used_may_differ(env: Any, tmp_path: Path) -> None:
    """They are not read; and numbers may be wider than in the first file."""
    rows = _written(tmp_path / "rows", [[_row("a", 1, 2, 0.5, "s", 2**31 - 1)]])
    pq.write_table(pa.table({"id": ["a"], "ts": [3], "s": [7], "i": [2**40]}), rows / "9.parquet")
    stream = _windowed(env, rows, agg.of(n=agg.count(), total=agg.sum("i"), most=agg.max("i")))
    assert list(stream.execute_and_collect()) == [("a", 0, 2, 2**31 - 1 + 2**40, 2**40)]
    stream.print()
    assert _MERGED in env.explain()


def test_batch_mode(make_env: Any, tmp_path: Path) -> None:
    files = [[_row("ab"[n % 2], n * 100, n) for n in range(40)]]
    env = make_env({"execution.runtime-mode": "BATCH"})
    function = agg.of(n=agg.count(), total=agg.sum("n"))

    found = sorted(
        _windowed(env, _written(tmp_path / "rows", files), function).execute_and_collect()
    )

    assert found == sorted(_model(files, function, (1000, 1000, 0), lambda r: r["id"]))


def test_beside_other_sources(env: Any, tmp_path: Path) -> None:
    files = [[_row("ab"[n % 2], n * 100, n) for n in range(20)]]
    stream = _windowed(env, _written(tmp_path / "rows", files), agg.of(n=agg.count()))
    both = stream.union(env.from_collection([("c", 0, 1)]))
    assert sorted(both.execute_and_collect()) == [
        *[("a", 0, 5), ("a", 1000, 5), ("b", 0, 5), ("b", 1000, 5), ("c", 0, 1)]
    ]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"time": _IN_PYTHON}, "its timestamps are no field, as in with_timestamp_assigner"),
        ({"by": lambda record: record.id}, "its key is computed by a Python function"),
        ({"by": "x"}, "the key 'x' is a column of type double"),
        ({"time": "x"}, "the timestamps 'x' are a column of type double"),
        ({"function": agg.of(n=agg.sum("s"))}, "sum('s') over a column of type string"),
        ({"function": agg.of(n=agg.max("s"), by=agg.all_max_by("n", "x"))}, None),
        ({"columns": ["id", "ts"]}, None),
        ({}, None),
    ],
)
def test_explain(
    make_env: Any, tmp_path: Path, changed: dict[str, Any], reason: str | None
) -> None:
    env = make_env()
    rows = _written(tmp_path / "rows", [[_row("a", 1)]])
    given = {"function": agg.of(n=agg.count()), **changed}
    _windowed(env, rows, **given).print()
    explained = env.explain()
    if reason is None:
        assert f"[{_MERGED}]" in explained
    else:
        assert f"[Python, since {reason}" in explained
        assert _MERGED not in explained


def test_timestamps_that_are_assigned_twice(env: Any, tmp_path: Path) -> None:
    """The first ones count for nothing in the end, but their functions are called."""

    def noted(record: Any, _: int) -> int:
        if record.ts < 0:
            raise ValueError("before 1970")
        return 5

    rows = _written(tmp_path / "rows", [[_row("a", 100), _row("a", 1200)]])
    source = FileSource.for_bulk_file_format(ParquetRecords(), str(rows)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = (
        env.from_source(source, strategy.with_timestamp_assigner(noted), "rows")
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner("ts"))
        .key_by("id")
        .window(_assigner((1000, 1000, 0)))
        .aggregate(agg.of(n=agg.count()), _with_window)
    )
    assert sorted(stream.execute_and_collect()) == [("a", 0, 1), ("a", 1000, 1)]
    stream.print()
    assert "[Python, since timestamps are assigned twice]" in env.explain()


@pytest.mark.parametrize("size", [10, 100, 50_000])
def test_windows_of_any_size(env: Any, tmp_path: Path, size: int) -> None:
    """From one record in each to all records in one; out of order, and behind open ones."""
    times = [n * 37 % 2000 * 10 for n in range(2000)]
    files = [[_row("ab"[n % 2], t, n) for n, t in enumerate(times[e : e + 500], e)]
             for e in range(0, 2000, 500)]  # fmt: skip
    function = agg.of(n=agg.count(), total=agg.sum("n"), low=agg.min("n"))
    sizes = (size, size, 3)
    stream = _windowed(env, _written(tmp_path / "rows", files), function, sizes, late=30_000)

    found = sorted(stream.execute_and_collect())

    assert found == sorted(_model(files, function, sizes, lambda record: record["id"]))


def test_files_that_are_not_there_yet(make_env: Any, tmp_path: Path) -> None:
    """Nothing is known of their columns."""
    env = make_env()
    (tmp_path / "rows").mkdir()
    _windowed(env, tmp_path / "rows", agg.of(n=agg.count())).print()
    assert "[Python, since its source has no columns, or no file yet" in env.explain()
