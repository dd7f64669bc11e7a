"""Parquet files through jobs: read by the tasks, once, whatever fails; a watched folder."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors import _file_source
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat, ParquetRecords
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import FileAccessError, UserFunctionError
from penstock.runtime import payload
from penstock.runtime.shapes import marked_shape

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


def records_of(path: Path, every: int | None = None, **how: Any) -> FileSource:
    builder = FileSource.for_bulk_file_format(ParquetRecords(**how), str(path))
    if every is not None:
        builder = builder.monitor_continuously(Duration.of_millis(every))
    return builder.build()


def put(path: Path, columns: dict[str, Any], **how: Any) -> None:
    """Appears as a whole, as files in a watched folder must."""
    hidden = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns), hidden, **how)
    hidden.rename(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@dataclass
class Reading:
    id: str
    temp: float


def test_sums_by_key(
    env: StreamExecutionEnvironment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the files is read by both subtasks."""
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 100)
    readings = [(f"s{n % 7}", float(n)) for n in range(100)]
    ids, temps = zip(*readings, strict=True)
    put(folder / "a", {"id": ids, "more": [b"x"] * 100, "temp": temps}, row_group_size=20)
    put(folder / "b", {"temp": [0.5], "id": ["s0"]})
    ds = env.from_source(records_of(folder, record_type=Reading))
    sums = ds.key_by(lambda r: r.id).reduce(lambda a, b: Reading(a.id, a.temp + b.temp))
    found = {r.id: r.temp for r in sums.execute_and_collect()}
    expected: Counter[str] = Counter({"s0": 0.5})  # type: ignore[dict-item]
    for key, temp in readings:
        expected[key] += temp  # type: ignore[assignment]
    assert found == expected


def test_computed_columns_and_a_filter(
    restartable_env: Any, folder: Path, collect_until_error: Any
) -> None:
    """Also where a run that failed is gone on with, and through a file of which nothing is left."""
    columns = {
        "id": [f"s{n % 3}" for n in range(60)],
        "n": range(60),
        "temp": [n / 2 for n in range(60)],
    }
    put(folder / "a", columns, row_group_size=25)
    put(folder / "b", {"id": ["s0"] * 9, "n": range(9), "temp": [None] * 9})

    def readings(bad: int) -> DataStream:
        fields = {"n": "n", "id": "id", "double": pc.field("temp") * 2 + 0.25}
        where = (pc.field("temp") >= 5) & (pc.field("id") != "s1")
        source = records_of(folder, columns=fields, record_type=tuple, where=where)
        made = restartable_env().from_source(source).map(FailingOn(bad))
        found: DataStream = made.key_by(lambda reading: reading[1]).map(lambda reading: reading)
        return found

    before, _ = collect_until_error(readings(bad=45))
    after = list(readings(bad=-1).execute_and_collect())
    assert 0 < len(before) < 34
    expected = [(n, f"s{n % 3}", n + 0.25) for n in range(10, 60) if n % 3 != 1]
    assert sorted(before + after) == expected


@locally
def test_rows_as_in_pyflink(env: StreamExecutionEnvironment, folder: Path) -> None:
    put(folder / "a", {"name": ["Ann", None], "day": [dt.date(2024, 1, 1)] * 2, "n": [1, 2]})
    row_type = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.LONG()])
    rows = ParquetColumnarRowInputFormat(row_type, batch_size=1)
    source = FileSource.for_bulk_file_format(rows, str(folder)).build()
    ds = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    found = ds.map(lambda row: (row.name, row["n"])).execute_and_collect()
    assert list(found) == [("Ann", 1), (None, 2)]


class FailingOn:
    def __init__(self, bad: int) -> None:
        self.bad = bad

    def __call__(self, record: tuple[Any, ...]) -> Any:
        if record[0] == self.bad:
            raise RuntimeError("not yet")
        return record


class Failing(FailingOn):
    def __call__(self, record: tuple[int, str]) -> Any:
        return super().__call__(record)[0]


def test_exactly_once_through_a_failure(
    restartable_env: Any, folder: Path, collect_until_error: Any
) -> None:
    """The second run goes on amid a row group, and sees nothing of a file that came later."""
    columns = {"n": range(60), "text": [f"text {n % 3}" for n in range(60)]}
    put(folder / "a", columns, row_group_size=25)

    def numbers(bad: int) -> DataStream:
        source = records_of(folder, record_type=tuple)
        numbers: DataStream = restartable_env().from_source(source).map(Failing(bad))
        return numbers

    before, _ = collect_until_error(numbers(bad=37))
    put(folder / "b", {"n": [1000], "text": ["late"]})
    after = list(numbers(bad=-1).execute_and_collect())
    assert 0 < len(before) <= 37
    assert sorted(before + after) == list(range(60))


@locally
def test_a_watched_folder(env: StreamExecutionEnvironment, folder: Path) -> None:
    put(folder / "a", {"n": [1, 2]})
    stream = env.from_source(records_of(folder, every=20))
    with stream.map(lambda record: record.n).execute_and_collect() as found:
        assert sorted(islice(found, 2)) == [1, 2]
        put(folder / "b", {"n": [3]})
        assert next(found) == 3


@locally
@pytest.mark.parametrize(("rows", "epochs"), [(1, 1), (60, 10)])
def test_an_epoch_has_its_records_from_as_many_files_as_it_takes(
    make_env: Any, folder: Path, rows: int, epochs: int
) -> None:
    """Though only a few are read at the same time."""
    for number in range(20):
        put(folder / f"{number:02}", {"n": range(rows)})
    env = make_env({"parallelism.default": "1", "penstock.source.max-records-per-epoch": "120"})
    read: list[int] = []
    env.add_epoch_listener(lambda report: read.append(sum(report.records_in.values())))
    found = env.from_source(records_of(folder, record_type=tuple)).execute_and_collect()
    assert len(list(found)) == 20 * rows
    assert [records for records in read if records] == [20 * rows // epochs] * epochs


@pytest.mark.parametrize("place", ["source", "later"])
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_windows_over_files_in_the_order_of_time(
    make_env: Any, folder: Path, place: str, parallelism: str
) -> None:
    """They are of all sizes, and end one after the other: in each epoch some, and none is late."""
    sizes = [1, 40, 3, 80, 2, 60, 5, 100, 4, 20]
    for number, rows in enumerate(sizes):
        put(folder / f"{number}", {"time": [number * 1000 + row for row in range(rows)]})
    files = FileSource.for_bulk_file_format(ParquetRecords(record_type=tuple), str(folder))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[0]
    )
    env = make_env(
        {"parallelism.default": parallelism, "penstock.source.max-records-per-epoch": "50"}
    )
    stream = env.from_source(
        files.in_time_order().build(), strategy if place == "source" else None, "files"
    )
    if place == "later":
        stream = stream.assign_timestamps_and_watermarks(strategy)
    counts = (
        stream.map(lambda record: (record[0] // 1000, 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .uid("windows")
    )
    told: list[int] = []
    env.add_epoch_listener(lambda report: told.append(report.records_out.get("windows", 0)))
    assert sorted(counts.execute_and_collect()) == list(enumerate(sizes))
    assert max(told) <= 5, "they did not wait for the last file"


@locally
def test_before_another_source(env: StreamExecutionEnvironment, folder: Path) -> None:
    later = folder.parent / "later"
    later.mkdir()
    for number in range(9):
        put(folder / f"{number}", {"n": [number]})
        put(later / f"{number}", {"n": [10 + number]})
    source = HybridSource.builder(records_of(folder)).add_source(records_of(later)).build()
    assert source.splits_at_once == 4
    found = [record.n for record in env.from_source(source).execute_and_collect()]
    assert sorted(found) == [*range(9), *range(10, 19)]
    assert max(found.index(n) for n in range(9)) < min(found.index(n) for n in range(10, 19))


@locally
def test_errors_name_the_source(env: StreamExecutionEnvironment, folder: Path) -> None:
    (folder / "a.parquet").write_text("not Parquet")
    stream = env.from_source(records_of(folder), source_name="readings")
    where = r"'Source: readings' \(.*test_parquet_files.py:\d+\): "
    with pytest.raises(FileAccessError, match=where + r".*/a.parquet is not a Parquet file"):
        list(stream.execute_and_collect())


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("negative")


@locally
def test_a_record_that_cannot_be_made(env: StreamExecutionEnvironment, folder: Path) -> None:
    """Is the source's matter, not that of what follows."""
    put(folder / "a", {"n": [1, -1]})
    stream = env.from_source(records_of(folder, record_type=Positive), source_name="numbers")
    with pytest.raises(UserFunctionError, match=r"'Source: numbers .*ValueError: negative"):
        list(stream.key_by(lambda r: r.n).map(lambda r: r.n).execute_and_collect())


def test_records_come_over_an_exchange_as_they_are(
    env: StreamExecutionEnvironment, folder: Path
) -> None:
    """What is known of a file's columns goes for that file only: others have other types, and what
    is not plain."""
    day = dt.date(2026, 11, 18)
    put(folder / "0", {"id": ["a", "b", None] * 50, "v": [1, None, -(2**63)] * 50})
    put(folder / "1", {"id": ["a", "c"], "v": ["text", "größe"]})
    put(folder / "2", {"id": ["b"], "v": [day]})
    put(folder / "3", {"id": ["b", "a"], "v": [0.5, float("inf")]})
    put(folder / "4", {"id": [7], "v": [True]})
    source = FileSource.for_bulk_file_format(ParquetRecords(), str(folder)).in_time_order().build()

    def checked(record: Any) -> tuple[str, str]:
        assert record.id == record[0]
        return type(record).__name__, repr(tuple(record))

    ds = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
    kept = ds.filter(lambda record: record.v != 0.5).key_by(lambda record: str(record.id))

    found = Counter(kept.map(checked).execute_and_collect())

    rows = [("a", 1), ("b", None), (None, -(2**63))] * 50
    rows += [("a", "text"), ("c", "größe"), ("b", day), ("a", float("inf")), (7, True)]
    assert found == Counter(("Record", repr(row)) for row in rows)


def joined(env: StreamExecutionEnvironment, folder: Path, kind: Any) -> DataStream:
    """People and their orders, of the same ten seconds; of the orders the type is declared."""
    put(folder / "people.parquet", {"id": [1, 2, 3], "name": ["a", "b", None]})
    ordered = Types.TUPLE([Types.LONG(), Types.STRING()])
    orders = [(1, "x"), (3, "y"), (1, "z")]
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    people = env.from_source(
        records_of(folder, record_type=kind),
        strategy.with_timestamp_assigner(lambda person, _: person[0]),
        "people",
    )
    timed = env.from_collection(orders).map(lambda order: order, ordered).filter(all)
    return (
        people.join(
            timed.assign_timestamps_and_watermarks(
                strategy.with_timestamp_assigner(lambda order, _: order[0])
            )
        )
        .where(lambda person: person[0])
        .equal_to(lambda order: order[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .apply(lambda person, order: (type(person).__name__, *person, *order))
    )


@pytest.mark.parametrize(("kind", "name"), [(tuple, "tuple"), (None, "Record")])
def test_records_that_meet_in_windows(
    env: StreamExecutionEnvironment, folder: Path, kind: Any, name: str
) -> None:
    found = list(joined(env, folder, kind).execute_and_collect())
    expected = [(name, 1, "a", 1, "x"), (name, 1, "a", 1, "z"), (name, 3, None, 3, "y")]
    assert sorted(found) == expected


@locally
def test_of_records_that_meet_only_themselves_are_sent(
    env: StreamExecutionEnvironment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither pickled nor with a mark each, if it is known what they are."""
    shapes = set()
    encode_as = payload.encode_as

    def watched(shape: str | None, values: list[Any]) -> tuple[bytes, bool]:
        if values and values[0].__class__ is tuple:
            shapes.add(shape)
        return encode_as(shape, values)

    monkeypatch.setattr(payload, "encode_as", watched)
    assert len(list(joined(env, folder, tuple).execute_and_collect())) == 3
    assert {marked_shape(0, "(is)"), marked_shape(1, "(is)")} <= shapes
