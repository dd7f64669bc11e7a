"""Parquet files as a source, without a job: parts, positions, values, records, batches, errors."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from penstock.common import Configuration, Instant, Row, Types
from penstock.common.time import Duration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import _file_source
from penstock.datastream.connectors._columnar_form import ColumnarForm
from penstock.datastream.connectors.base import InitContext, Source, Split, StartFrom
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
    StreamFormat,
)
from penstock.datastream.formats import _parquet_reader, parquet
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat, ParquetRecords
from penstock.errors import FileAccessError, InvalidArgumentError, UnsupportedFeatureError

CONTEXT = InitContext("job", "source", 0, 1, 1, "token")


def read_split(source: Source, split: Split, most: int = 1000, readers: int = 1) -> list[Any]:
    """With several readers each call is made by another, from where the last one stopped."""
    reader = source.create_reader(CONTEXT)
    position, finished, records = split.position, False, []
    while not finished:
        if readers > 1:
            reader.close()
            reader = pickle.loads(pickle.dumps(source)).create_reader(CONTEXT)
        result = reader.read(split, position, most)
        found = list(result.records)
        assert len(found) == result.count <= most
        assert found or result.finished
        records += found
        position, finished = pickle.loads(pickle.dumps(result.position)), result.finished
    reader.close()
    return records


def read(source: Source, parallelism: int = 1, **how: int) -> list[Any]:
    found = [read_split(source, split, **how) for split in source.create_splits(parallelism)]
    return [record for records in found for record in records]


def of(bulk_format: BulkFormat, *paths: Path) -> FileSource:
    return FileSource.for_bulk_file_format(bulk_format, *map(str, paths)).build()


def written(path: Path, columns: dict[str, Any], **how: Any) -> Path:
    pq.write_table(pa.table(columns), path, **how)
    return path


@dataclass(frozen=True)
class Reading:
    id: str
    temp: float | None = None


class Named(NamedTuple):
    temp: float
    id: str


COLUMNS = {"id": ["a", "b", "a"], "n": [1, 2, 3], "temp": [1.5, None, 2.5]}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"record_type": tuple}, [("a", 1, 1.5), ("b", 2, None), ("a", 3, 2.5)]),
        ({"record_type": tuple, "columns": ["temp", "id"]}, [(1.5, "a"), (None, "b"), (2.5, "a")]),
        ({"record_type": dict, "columns": ["n"]}, [{"n": 1}, {"n": 2}, {"n": 3}]),
        ({"record_type": Reading}, [Reading("a", 1.5), Reading("b", None), Reading("a", 2.5)]),
        ({"record_type": Named}, [Named(1.5, "a"), Named(None, "b"), Named(2.5, "a")]),  # type: ignore[arg-type]
        ({"record_type": Row, "columns": ["id"]}, [Row(id="a"), Row(id="b"), Row(id="a")]),
    ],
)
def test_records_of_a_kind(tmp_path: Path, how: dict[str, Any], expected: list[Any]) -> None:
    path = written(tmp_path / "x.parquet", COLUMNS)
    found = read(of(ParquetRecords(**how), path), most=2)
    assert found == expected
    assert {type(record) for record in found} == {type(record) for record in expected}


def test_named_tuples_by_default(tmp_path: Path) -> None:
    """Each file as it is, if nothing else is said."""
    path = written(tmp_path / "x.parquet", COLUMNS)
    other = written(tmp_path / "y.parquet", {"z": [True]})
    (first, *_), (last,) = (read(of(ParquetRecords(), p)) for p in (path, other))
    assert (first.id, first.n, first.temp, last.z) == ("a", 1, 1.5, True)


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize("most", [1, 7, 1000])
def test_positions_in_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: int, most: int
) -> None:
    """Also amid what Arrow decodes at once, and over a row group without rows."""
    monkeypatch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", 16)
    path = tmp_path / "x.parquet"
    table = pa.table({"n": range(100), "text": [f"text {n % 7}" for n in range(100)]})
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, count in ((0, 40), (40, 0), (40, 33), (73, 27)):
            writer.write_table(table.slice(start, count))
    source = of(ParquetRecords(record_type=tuple), path)
    expected = [(n, f"text {n % 7}") for n in range(100)]
    assert read(source, most=most, readers=readers) == expected


def test_a_large_file_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 10)
    path = written(tmp_path / "x.parquet", {"n": range(1000)}, row_group_size=100)
    source = of(ParquetRecords(record_type=tuple), path)
    splits = source.create_splits(3)
    assert len({split.split_id for split in splits}) == len(splits) == 3
    parts = [[n for (n,) in read_split(source, split)] for split in splits]
    assert sorted(map(len, parts)) == [200, 400, 400]
    assert sorted(n for part in parts for n in part) == list(range(1000))
    assert len(of(ParquetRecords(), path).create_splits(100)) == 10
    whole = FileSource.for_bulk_file_format(ParquetRecords(), str(path)).set_file_enumerator(
        FileEnumeratorProvider.default_non_splittable_file_enumerator()
    )
    assert len(whole.build().create_splits(3)) == 1


def test_files_without_rows(tmp_path: Path) -> None:
    written(tmp_path / "x.parquet", {"n": pa.array([], pa.int64())})
    assert read(of(ParquetRecords(), tmp_path)) == []


def test_equal_texts_are_one_object(tmp_path: Path) -> None:
    """Whose hash is then computed once, however often it is a key."""
    texts = [f"key {n % 5}" for n in range(1000)]
    distinct = [f"key {n}" for n in range(1000)]
    path = written(tmp_path / "x.parquet", {"few": texts, "many": distinct}, row_group_size=500)
    found = read(of(ParquetRecords(record_type=tuple), path))
    assert found == list(zip(texts, distinct, strict=True))
    assert len({id(few) for few, _ in found[:500]}) == 5


def test_columns_of_distinct_texts_are_read_plainly(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.parquet",
        {"few": ["a"] * 1000, "many": [f"key {n}" for n in range(1000)]},
        row_group_size=500,
    )
    source = of(ParquetRecords(), path)
    reader: Any = source.create_reader(CONTEXT)
    (split,) = source.create_splits(1)
    reader.read(split, None, 500)
    reader.read(split, (1, 0), 100)
    assert reader._texts._plain == {"many"}


ODD_VALUES = {
    "bool": [True, None],
    "bytes": [b"x", b""],
    "date": [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
    "time": [dt.time(1, 2, 3, 4), None],
    "naive": [dt.datetime(2024, 2, 29, 1), dt.datetime(1900, 1, 1)],
    "decimal": [Decimal("1.50"), Decimal("-2.00")],
    "list": [[1, 2], None],
    "struct": [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
    "text": [None, "ü"],
    "nothing": [None, None],
    "float": [float("inf"), -0.0],
}


def test_values_of_all_kinds(tmp_path: Path) -> None:
    utc = dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.timezone.utc)
    table = pa.table(ODD_VALUES)
    more = {
        "zoned": (pa.array([utc, None], pa.timestamp("us", "UTC")), [utc, None]),
        "nanos": (
            pa.array([1_700_000_000_123_456_789, 0], pa.timestamp("ns")),
            [dt.datetime(2023, 11, 14, 22, 13, 20, 123456), dt.datetime(1970, 1, 1)],
        ),
        "some nanos": (
            pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns")),
            [dt.datetime(2023, 11, 14, 22, 13, 20, 123456), None],
        ),
        "listed nanos": (
            pa.array([[1_001], []], pa.list_(pa.timestamp("ns"))),
            [[dt.datetime(1970, 1, 1, 0, 0, 0, 1)], []],
        ),
        "map": (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())), [{"k": 1}, {}]),
        "small": (pa.array([255, 0], pa.uint8()), [255, 0]),
        "gaps": (pa.array([1, None], pa.int16()), [1, None]),
        "dictionary": (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        "single": (pa.array([0.5, 1.5], pa.float32()), [0.5, 1.5]),
    }
    expected = dict(ODD_VALUES)
    for name, (column, values) in more.items():
        table = table.append_column(name, column)
        expected[name] = values
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    rows = read(of(ParquetRecords(record_type=dict), path))
    assert {name: [row[name] for row in rows] for name in expected} == expected
    for name, values in expected.items():
        assert [type(row[name]) for row in rows] == [type(value) for value in values], name


def test_rows_of_a_declared_type(tmp_path: Path) -> None:
    inner = Types.ROW_NAMED(["at", "n"], [Types.INSTANT(), Types.INT()])
    row_type = Types.ROW_NAMED(
        ["Id", "at", "inner", "list", "map", "gone"],
        [
            Types.STRING(),
            Types.SQL_TIMESTAMP(),
            inner,
            Types.LIST(Types.SQL_TIMESTAMP()),
            Types.MAP(Types.STRING(), Types.DOUBLE()),
            Types.LONG(),
        ],
    )
    at = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc)
    table = pa.table(
        {
            "ID": ["a", None],
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "inner": pa.array(
                [{"at": at, "n": 1}, None],
                pa.struct([("at", pa.timestamp("ns")), ("n", pa.int32())]),
            ),
            "list": pa.array([[at], None], pa.list_(pa.timestamp("ms"))),
            "map": pa.array([[("k", 1.5)], None], pa.map_(pa.string(), pa.float64())),
            "more": [1, 2],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    as_utc = ParquetColumnarRowInputFormat(
        row_type, is_utc_timestamp=True, is_case_sensitive=False, hadoop_config=Configuration()
    )
    first, second = read(of(as_utc, tmp_path))
    naive = at.replace(tzinfo=None)
    nested = Row(at=Instant(int(at.timestamp()), 0), n=1)
    assert first.as_dict() == {
        "Id": "a",
        "at": naive,
        "inner": nested,
        "list": [naive],
        "map": {"k": 1.5},
        "gone": None,
    }
    assert list(second) == [None] * 6
    local = ParquetColumnarRowInputFormat(row_type)
    assert read(of(local, tmp_path))[0]["at"] == at.astimezone().replace(tzinfo=None)
    assert read(of(local, tmp_path))[0]["Id"] is None


@pytest.mark.parametrize(
    ("declared", "column", "fits"),
    [
        (Types.INT(), pa.array([1], pa.int16()), True),
        (Types.INT(), pa.array([1], pa.int64()), False),
        (Types.LONG(), pa.array([1.5]), False),
        (Types.DOUBLE(), pa.array([1.5], pa.float32()), True),
        (Types.FLOAT(), pa.array([1.5]), False),
        (Types.STRING(), pa.array(["x"]).dictionary_encode(), True),
        (Types.STRING(), pa.array([b"x"]), False),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.array([b"x"]), True),
        (Types.BIG_DEC(), pa.array([Decimal("1.5")]), True),
        (Types.SQL_DATE(), pa.array([dt.date(2024, 1, 1)]), True),
        (Types.SQL_TIME(), pa.array([dt.date(2024, 1, 1)]), False),
        (Types.LIST(Types.STRING()), pa.array([[1]]), False),
        (Types.ROW_NAMED(["b"], [Types.LONG()]), pa.array([{"a": 1}]), False),
        (Types.MAP(Types.STRING(), Types.LONG()), pa.array([{"a": 1}]), False),
        (Types.PICKLED_BYTE_ARRAY(), pa.array([{"a": 1}]), True),
    ],
)
def test_declared_and_stored_types(tmp_path: Path, declared: Any, column: Any, fits: bool) -> None:
    path = written(tmp_path / "x.parquet", {"c": column})
    source = of(ParquetColumnarRowInputFormat(Types.ROW_NAMED(["c"], [declared])), path)
    if fits:
        assert [row["c"] for row in read(source)] == column.to_pylist()
    else:
        with pytest.raises(FileAccessError, match=r"column c of .*x\.parquet is declared as "):
            read(source)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("no Parquet at all\n" * 10)
    source = of(ParquetRecords(), text)
    with pytest.raises(FileAccessError, match=rf"{text} is not a Parquet file: .*magic bytes"):
        read(source)
    cut = written(tmp_path / "cut.parquet", {"n": range(1000)})
    cut.write_bytes(cut.read_bytes()[:-100])
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 10)
    with pytest.raises(FileAccessError, match=rf"{cut} is not a Parquet file"):
        of(ParquetRecords(), cut).create_splits(100)
    gone = written(tmp_path / "gone.parquet", {"n": [1]})
    source = of(ParquetRecords(), gone)
    (split, *_) = source.create_splits(1)
    gone.unlink()
    with pytest.raises(FileAccessError, match=r"cannot read .*gone\.parquet: FileNotFoundError"):
        read_split(source, split)


@pytest.mark.parametrize(
    ("position", "known"),
    [((1, 7), True), ((7, 3), False), ((1, 40), False), ((5, 0), False), ((4, 1), False)],
)
def test_a_file_that_was_rewritten_meanwhile(
    tmp_path: Path, position: tuple[int, int], known: bool
) -> None:
    """By its size, or if that is not known, because it has no such row any more."""
    path = written(tmp_path / "a.parquet", {"n": range(100)}, row_group_size=10)
    source = of(ParquetRecords(), path)
    (split, *_) = source.create_splits(1)
    size = split.data.size if known else None
    written(path, {"n": range(100)}, row_group_size=25)
    reader = source.create_reader(CONTEXT)
    with pytest.raises(FileAccessError, match=r"a\.parquet is not the file any more"):
        reader.read(Split("x", split.data._replace(size=size)), position, 10)
    # Nothing of it was read: what is in it now counts.
    assert len(read_split(source, split)) == 100
    assert reader.read(Split("x", split.data._replace(size=None)), (4, 0), 10).finished


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", COLUMNS)
    with pytest.raises(FileAccessError, match=r"has no column m, k; it has id, n, temp"):
        read(of(ParquetRecords(["id", "m", "k"]), path))
    row_type = Types.ROW_NAMED(["ID"], [Types.STRING()])
    with pytest.raises(FileAccessError, match=r"has no column ID; it has id, n, temp"):
        read(of(ParquetColumnarRowInputFormat(row_type), path))
    pq.write_table(pa.table([[1], [2]], names=["id", "ID"]), path)
    unclear = ParquetColumnarRowInputFormat(row_type, is_case_sensitive=False)
    with pytest.raises(FileAccessError, match=r"several columns for ID: id, ID"):
        read(of(unclear, path))


def test_wrong_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="columns must be a list of names"):
        ParquetRecords("id")
    with pytest.raises(InvalidArgumentError, match="columns is empty"):
        ParquetRecords([])
    with pytest.raises(InvalidArgumentError, match="record_type must be tuple, dict, Row"):
        ParquetRecords(record_type=int)
    with pytest.raises(InvalidArgumentError, match=r"Reading has fields \['temp'\]"):
        ParquetRecords(["id"], Reading)
    with pytest.raises(InvalidArgumentError, match="batch_size must be an int from 1 on"):
        ParquetRecords(batch_size=0)
    with pytest.raises(InvalidArgumentError, match="row_type must be a row type"):
        ParquetColumnarRowInputFormat(Types.STRING())  # type: ignore[arg-type]
    hadoop = Configuration().set_string("fs.s3a.endpoint", "x")
    with pytest.raises(UnsupportedFeatureError, match="no Hadoop"):
        ParquetColumnarRowInputFormat(Types.ROW_NAMED(["a"], [Types.INT()]), hadoop)


def test_starting_at_a_time(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", COLUMNS)
    changed = int(path.stat().st_mtime * 1000)
    source = of(ParquetRecords(), path)
    assert len(read(source.starting_at(StartFrom.timestamp(changed - 1000)))) == 3
    assert read(source.starting_at(StartFrom.timestamp(changed + 1000))) == []


def test_few_files_are_open_at_once(tmp_path: Path) -> None:
    for number in range(9):
        written(tmp_path / f"{number}.parquet", {"n": range(10)})
    source = of(ParquetRecords(record_type=tuple), tmp_path)
    reader: Any = source.create_reader(CONTEXT)
    found = 0
    for position in ((0, 0), (0, 5)):
        for split in source.create_splits(1):
            found += len(list(reader.read(split, position, 5).records))
            assert len(reader._open) <= source.splits_at_once == 4
    assert found == 90
    reader.close()
    assert not reader._open


READINGS = {"id": ["a", "b", "a", None], "n": [1, 2, 3, 4], "temp": [1.5, None, 2.5, 0.5]}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"columns": {"t": pc.field("temp") * 2 + 0.25}}, [(3.25,), (None,), (5.25,), (1.25,)]),
        ({"columns": {"n": "n", "key": "id"}}, [(1, "a"), (2, "b"), (3, "a"), (4, None)]),
        ({"columns": {"one": pc.scalar(1)}}, [(1,)] * 4),
        ({"columns": {"x": pc.field("n") + pc.field("temp")}}, [(2.5,), (None,), (5.5,), (4.5,)]),
        # Without a value a comparison is neither true nor false: such rows are left out.
        ({"columns": ["n"], "where": pc.field("temp") > 1}, [(1,), (3,)]),
        ({"columns": ["n"], "where": ~(pc.field("temp") > 1)}, [(4,)]),
        ({"where": pc.field("id") == "b"}, [("b", 2, None)]),
        ({"columns": ["id"], "where": pc.field("n").isin([1, 4])}, [("a",), (None,)]),
        (
            {"columns": {"n": "id", "id": pc.field("n") - 1}, "where": pc.field("id") == "a"},
            [("a", 0), ("a", 2)],
        ),
        # Nothing is computed for rows that are left out.
        (
            {"columns": {"x": pc.scalar(6) / (pc.field("n") - 1)}, "where": pc.field("n") != 1},
            [(6,), (3,), (2,)],
        ),
    ],
)
def test_computed_columns_and_a_filter(
    tmp_path: Path, how: dict[str, Any], expected: list[Any]
) -> None:
    source = of(ParquetRecords(record_type=tuple, **how), written(tmp_path / "x", READINGS))
    assert read(source) == expected
    assert read(source, most=1, readers=2) == expected


@pytest.mark.parametrize("record_type", [None, dict, Row, Reading, Named])
def test_computed_columns_in_records_of_a_kind(tmp_path: Path, record_type: Any) -> None:
    path = written(tmp_path / "x", {"id": ["a", "b"], "t": [1.0, 2.0]})
    columns = {"id": pc.utf8_upper(pc.field("id")), "temp": pc.field("t") / 2}
    (found,) = read(of(ParquetRecords(columns, record_type, where=pc.field("t") > 1), path))
    if record_type is dict:
        assert found == {"id": "B", "temp": 1.0}
    else:
        assert (found.id, found.temp) == ("B", 1.0)
        assert record_type is None or type(found) is record_type


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """Also if the name of a column is in the text of an expression by chance."""
    columns = {name: [1] for name in ("a", "b", "add", "c", "multiply", "odd name", "ü", "x.y")}
    struct = pa.array([{"p": 1, "q": 2}])
    schema = pa.table({**columns, "s": struct}).schema

    def reads(columns: Any, where: Any = None) -> list[str]:
        return list(ParquetRecords(columns, where=where).layout("x", schema).reads)

    assert reads({"k": "c", "m": pc.field("b") + pc.field("b")}) == ["c", "b"]
    assert reads(["c"], pc.field("odd name") * pc.field("ü") > 1) == ["c", "odd name", "ü"]
    assert reads({"m": pc.field(("s", "q")) + pc.field("x.y")}) == ["x.y", "s"]
    assert reads({"m": pc.scalar(1)}) == []
    assert reads(None, pc.field("b") > 1) == schema.names


def test_texts_that_expressions_look_at_are_read_plainly(tmp_path: Path) -> None:
    """The others are still one object each."""
    columns = {"id": ["a", "b"] * 50, "key": ["x y", "x z"] * 50}
    table = pa.table(columns)
    table = table.append_column("kind", table.column("id").dictionary_encode())
    pq.write_table(table, tmp_path / "x.parquet")
    wanted = {
        "key": "key",
        "id": "id",
        "upper": pc.utf8_upper(pc.field("id")),
        "kind": pc.utf8_upper(pc.field("kind")),
    }
    where = pc.starts_with(pc.field("id"), "b")
    found = read(of(ParquetRecords(wanted, tuple, where=where), tmp_path))
    assert found == [("x z", "b", "B", "B")] * 50
    assert len({id(record[0]) for record in found}) == 1


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize("most", [1, 7, 1000])
def test_positions_with_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: int, most: int
) -> None:
    """They count rows of the file: those of a source with a filter are good without it."""
    monkeypatch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", 16)
    path = written(tmp_path / "x.parquet", {"n": range(100)}, row_group_size=40)
    where = pc.field("n").isin([3, 43, 45, 46, 99])
    few = of(ParquetRecords(record_type=tuple, batch_size=16, where=where), path)
    assert read(few, most=most, readers=readers) == [(3,), (43,), (45,), (46,), (99,)]
    (split,) = few.create_splits(1)
    first = few.create_reader(CONTEXT).read(split, None, 5)
    assert (list(first.records), first.position, first.finished) == ([(3,)], (0, 16), False)
    reader = few.create_reader(CONTEXT)
    second = reader.read(split, first.position, 2)
    assert (list(second.records), second.position) == ([(43,), (45,)], (1, 6))
    everything = of(ParquetRecords(record_type=tuple), path)
    rest = read_split(everything, Split(split.split_id, split.data, second.position))
    assert rest == [(n,) for n in range(46, 100)]
    for anyone in (reader, few.create_reader(CONTEXT)):
        third = anyone.read(split, second.position, 2)
        assert list(third.records) == [(46,)]
    assert reader.read(split, (1, 16), 2).position == (3, 0), "behind all that was looked at"


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_filter_is_evaluated_as_often_whatever_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_columns: bool
) -> None:
    """Once for what Arrow decodes at once."""
    path = written(tmp_path / "x.parquet", {"n": range(50_000)}, row_group_size=40_000)
    where = pc.field("n").isin(list(range(0, 50_000, 500)))
    source: Source = of(ParquetRecords(["n"], tuple, where=where), path)
    if by_columns:
        source = columnar(source).source  # type: ignore[arg-type]
    evaluated, rows = parquet._evaluated, []

    def counting(table: pa.Table, fields: Any, where: Any) -> pa.Table:
        rows.append(table.num_rows)
        return evaluated(table, fields, where)

    monkeypatch.setattr(parquet, "_evaluated", counting)
    (split,) = source.create_splits(1)
    for most in (1, 3, 1000):
        rows.clear()
        reader, position, finished, found = source.create_reader(CONTEXT), None, False, 0
        while not finished:
            result = reader.read(split, position, most)
            position, finished = result.position, result.finished
            found += result.count or 0
        assert found == 100
        expected = [40_000, 10_000] if by_columns else [16_384, 16_384, 7_232, 10_000]
        assert [number for number in rows if number] == expected


@hypothesis_settings(max_examples=60)
@given(
    groups=st.lists(st.lists(st.booleans(), max_size=30), min_size=1, max_size=4),
    decoded=st.integers(1, 20),
    searched=st.integers(1, 50),
    most=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    by_columns=st.booleans(),
    computed=st.booleans(),
)
def test_a_filter_against_a_model(
    groups: list[list[bool]],
    decoded: int,
    searched: int,
    most: list[int],
    by_columns: bool,
    computed: bool,
) -> None:
    """From every row on, whatever is wanted in each call, and by another reader after each."""
    rows = [
        (group, row, wanted) for group, of in enumerate(groups) for row, wanted in enumerate(of)
    ]
    table = pa.table(
        {
            "n": pa.array(range(len(rows)), pa.int64()),
            "wanted": pa.array([wanted for *_, wanted in rows], pa.bool_()),
        }
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", decoded)
        patch.setattr(_parquet_reader, "_ROWS_SEARCHED_AT_ONCE", searched)
        patch.setattr(parquet, "ROWS_IN_A_BATCH", decoded)
        with pq.ParquetWriter(Path(folder) / "x", table.schema) as writer:
            start = 0
            for group in groups:
                writer.write_table(table.slice(start, len(group)))
                start += len(group)
        column = pc.field("n") + 0 if computed else "n"
        one = ParquetRecords({"n": column}, tuple, batch_size=decoded, where=pc.field("wanted"))
        source: Source = of(one, Path(folder))
        if by_columns:
            source = columnar(source).source  # type: ignore[arg-type]
        (split,) = source.create_splits(1)
        for position in [(0, 0), *((group, row) for group, row, _ in rows)]:
            expected = [n for n, (*at, wanted) in enumerate(rows) if wanted and (*at,) >= position]
            for again in (False, True):
                found = model_read(source, split, position, most, again, searched + decoded)
                assert found == expected


def model_read(
    source: Source,
    split: Split,
    position: tuple[int, int],
    most: list[int],
    again: bool,
    searched: int,
) -> list[int]:
    """With `again` each call is made by a new reader."""
    reader, found, calls, finished = source.create_reader(CONTEXT), [], 0, False
    while not finished:
        if again:
            reader.close()
            reader = source.create_reader(CONTEXT)
        wanted = most[calls % len(most)]
        result = reader.read(split, position, wanted)
        batch = result.records
        got = batch.column(0).to_pylist() if isinstance(batch, pa.RecordBatch) else list(batch)
        assert len(got) == result.count <= wanted
        assert result.position > position or result.finished
        if position[0] == result.position[0] and not got:
            assert result.position[1] - position[1] < searched
        found += [n[0] if isinstance(n, tuple) else n for n in got]
        position, finished, calls = result.position, result.finished, calls + 1
    reader.close()
    return found


def test_a_long_search_has_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes on behind the last."""
    monkeypatch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", 4)
    monkeypatch.setattr(_parquet_reader, "_ROWS_SEARCHED_AT_ONCE", 10)
    monkeypatch.setattr(parquet, "ROWS_IN_A_BATCH", 4)
    path = written(tmp_path / "x.parquet", {"n": range(40)}, row_group_size=30)
    one = ParquetRecords(["n"], tuple, batch_size=4, where=pc.field("n") == 37)
    for source in (of(one, path), columnar(of(one, path)).source):
        (split,) = source.create_splits(1)
        reader, position, found = source.create_reader(CONTEXT), None, []
        for _ in range(5):
            result = reader.read(split, position, 1000)
            position = result.position
            found.append((result.count, position, result.finished))
        steps = [(0, (0, 12), False), (0, (0, 24), False), (0, (1, 4), False), (1, (1, 8), False)]
        assert found == [*steps, (0, (2, 0), True)]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("least", [95, 100])
def test_a_job_through_a_long_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, least: int
) -> None:
    """It does not end with an epoch that finds nothing."""
    monkeypatch.delenv("PENSTOCK_EXECUTOR", raising=False)
    monkeypatch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", 4)
    monkeypatch.setattr(_parquet_reader, "_ROWS_SEARCHED_AT_ONCE", 10)
    path = written(tmp_path / "x.parquet", {"n": range(100)}, row_group_size=30)
    configuration = Configuration()
    for key, value in {
        "penstock.executor": "local",
        "parallelism.default": "1",
        "execution.runtime-mode": mode,
        "state.backend.local-dir": str(tmp_path / "stores"),
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    read: list[int] = []
    env.add_epoch_listener(lambda report: read.append(sum(report.records_in.values())))
    one = ParquetRecords(["n"], tuple, batch_size=4, where=pc.field("n") >= least)
    stream = env.from_source(of(one, path)).map(lambda record: record[0])
    assert sorted(stream.execute_and_collect()) == list(range(least, 100))
    if mode == "STREAMING":
        assert len(read) > 5


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.large_binary(), pa.string_view()])
def test_a_filter_over_columns_of_odd_kinds(tmp_path: Path, kind: Any) -> None:
    value = "x" if pa.types.is_string_view(kind) else b"x"
    columns = {"n": [1, 2, 3], "odd": pa.array([None, value, value], kind)}
    columns["list"] = pa.array([[], [value], None], pa.list_(kind))
    path = written(tmp_path / "x", columns)
    for where in (pc.field("n") == 2, (pc.field("odd") == value) & (pc.field("n") < 3)):
        source = of(ParquetRecords(record_type=tuple, where=where), path)
        assert read(source) == rows_of(columnar(source)) == [(2, value, [value])]


def test_nothing_that_a_filter_leaves(tmp_path: Path) -> None:
    """One call goes to the end: a result without records says that there are none for now."""
    path = written(tmp_path / "x.parquet", {"n": range(100)}, row_group_size=10)
    source = of(ParquetRecords(where=pc.field("n") < 0), path)
    (split,) = source.create_splits(1)
    result = source.create_reader(CONTEXT).read(split, (2, 5), 3)
    assert (list(result.records), result.position, result.count) == ([], (10, 0), 0)
    assert result.finished


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"where": pc.field("q") > 1},
            r"where cannot .* as \(q > 1\): No match .*Name\(q\) in id: ",
        ),
        ({"where": pc.field("n") + 1}, "where cannot .* must evaluate to bool"),
        ({"columns": {"n": "n", "k": pc.field("id") + 1}}, "column k cannot .* no kernel matching"),
        ({"columns": {"n": "n", "k": pc.field("q") + 1}}, r"column k cannot .*Name\(q\)"),
        (
            {"columns": {"k": pc.scalar(1) / (pc.field("n") - 1)}},
            "column k cannot .*: divide by zero",
        ),
        ({"columns": {"k": "m"}}, "has no column m; it has id, n, temp"),
    ],
)
def test_expressions_that_do_not_fit(tmp_path: Path, how: Any, message: str) -> None:
    source = of(ParquetRecords(**how), written(tmp_path / "x.parquet", READINGS))
    with pytest.raises(FileAccessError, match=message) as caught:
        read(source)
    assert "x.parquet" in str(caught.value)
    assert "leave out files that are different" in str(caught.value)


def test_wrong_columns_and_filters() -> None:
    for columns in (7, {1: "id"}, ["id", 2], pc.field("id")):
        with pytest.raises(
            InvalidArgumentError, match="columns must be a list of names, or a dict"
        ):
            ParquetRecords(columns)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="columns is empty"):
        ParquetRecords({})
    with pytest.raises(
        InvalidArgumentError, match=r"columns\['k'\] must be the name of a column or"
    ):
        ParquetRecords({"id": "id", "k": 1.5})
    with pytest.raises(InvalidArgumentError, match="where must be an expression of pyarrow"):
        ParquetRecords(where="n > 1")
    with pytest.raises(InvalidArgumentError, match=r"where cannot be sent to tasks: .*be named"):
        ParquetRecords(where=pc.field(0) > 1)
    with pytest.raises(InvalidArgumentError, match=r"Reading has fields \['temp'\]"):
        ParquetRecords({"id": "id", "t": pc.field("temp")}, Reading)


def columnar(source: FileSource) -> ColumnarForm:
    form = source.columnar()
    assert form is not None
    return pickle.loads(pickle.dumps(form))  # type: ignore[no-any-return]


def batches(form: ColumnarForm, most: int = 1000) -> list[pa.RecordBatch]:
    """All that are there, each with the schema that was promised."""
    found = []
    for split in form.source.create_splits(1):
        reader, position, finished = form.source.create_reader(CONTEXT), None, False
        while not finished:
            result = reader.read(split, position, most)
            position, finished = result.position, result.finished
            assert result.records.num_rows == result.count <= most
            assert result.count or finished
            found.append(result.records)
        reader.close()
    apart = pa.dictionary(pa.int32(), pa.string())
    for batch in found:
        assert batch.schema.names == form.schema.names
        for column, kind in zip(batch.columns, form.schema.types, strict=True):
            assert column.type == kind or (column.type, kind) == (apart, pa.string())
    return found


def rows_of(form: ColumnarForm, most: int = 1000) -> list[Any]:
    found = batches(form, most)
    return [row for batch in found for row in zip(*(c.to_pylist() for c in batch), strict=True)]


VALUES = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.sampled_from(["a", "b", "ü"]),
    st.text(max_size=3),
)


@hypothesis_settings(max_examples=50)
@given(
    values=st.lists(VALUES, min_size=1, max_size=60),
    group=st.integers(1, 25),
    decoded=st.integers(1, 20),
    most=st.integers(1, 30),
    least=st.none() | st.integers(-6, 6),
)
def test_batches_hold_what_records_hold(
    values: list[Any], group: int, decoded: int, most: int, least: int | None
) -> None:
    """And every position of the one reader is good for the other."""
    where = None if least is None else pc.field("n") >= least
    columns = {"n": "n", "few": "few", "many": "many", "twice": pc.field("n") * 2}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parquet_reader, "_ROWS_DECODED_AT_ONCE", decoded)
        numbers, few, many = map(list, zip(*values, strict=True))
        table = pa.table({"n": pa.array(numbers, pa.int64()), "few": few, "many": many})
        table = table.set_column(1, "few", table.column(1).cast(pa.string()))
        pq.write_table(table, Path(folder) / "x", row_group_size=group)
        source = of(ParquetRecords(columns, tuple, batch_size=decoded, where=where), Path(folder))
        form = columnar(source)
        records = read(source, most=most)
        assert rows_of(form, most) == records
        (split,) = source.create_splits(1)
        assert form.source.create_splits(1) == [split]
        first = form.source.create_reader(CONTEXT).read(split, None, most)
        rest = [] if first.finished else read_split(source, Split("x", split.data, first.position))
        assert records[first.count :] == rest


def test_batches_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But never of several row groups."""
    rows = 300_000
    columns = {"n": range(rows), "few": ["x", "y", None] * (rows // 3), "b": [b"x"] * rows}
    written(tmp_path / "x", columns, row_group_size=200_000)
    form = columnar(of(ParquetRecords(), tmp_path))
    assert form.schema == pa.schema([("n", pa.int64()), ("few", pa.string()), ("b", pa.binary())])
    found = batches(form, most=1_000_000)
    assert [batch.num_rows for batch in found] == [131_072, 68_928, 100_000]
    assert all(pa.types.is_dictionary(batch.column("few").type) for batch in found)
    twice = columnar(of(ParquetRecords({"n": "n", "m": pc.field("n") * 2}), tmp_path))
    (first, *_) = batches(twice, most=1_000_000)
    assert first.num_rows == 131_072
    assert first.column("m").to_pylist() == [2 * n for n in first.column("n").to_pylist()]


def test_batches_of_distinct_texts_are_read_plainly(tmp_path: Path) -> None:
    columns = {"few": ["a"] * 1000, "many": [f"key {n}" for n in range(1000)]}
    path = written(tmp_path / "x", columns, row_group_size=500)
    _, second = batches(columnar(of(ParquetRecords(), path)))
    assert pa.types.is_dictionary(second.column("few").type)
    assert second.column("many").type == pa.string()


def test_the_form_of_a_source_by_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", COLUMNS)
    builder = FileSource.for_bulk_file_format(ParquetRecords(), str(path)).in_time_order()
    builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
    source = builder.monitor_continuously(Duration.of_seconds(7)).build()
    since = source.starting_at(StartFrom.timestamp(1))
    assert isinstance(since, FileSource)
    for plain in (source, since):
        form = columnar(plain)
        by_columns: Any = form.source
        assert form.record.positions() == {0: 0, 1: 1, 2: 2, "id": 0, "n": 1, "temp": 2}
        assert form.schema.names == ["id", "n", "temp"]
        assert by_columns.boundedness is plain.boundedness
        assert by_columns.discovery_interval == 7
        assert by_columns.splits_at_once == 4
        assert by_columns.columnar() is None
        (split,) = plain.create_splits(3)
        assert by_columns.in_order(split)
        assert vars(by_columns).keys() == vars(plain).keys()
        for name in vars(plain).keys() - {"_format"}:
            assert vars(by_columns)[name] == vars(plain)[name]
    assert columnar(of(ParquetRecords(record_type=Reading), path)).record.positions() is None


def test_sources_without_a_form_by_columns(tmp_path: Path) -> None:
    """What is wrong with a file is said when it is read."""
    assert of(ParquetRecords(), tmp_path).columnar() is None, "no file"
    assert of(ParquetRecords(), tmp_path / "gone").columnar() is None
    path = written(tmp_path / "x.parquet", {**COLUMNS, "nothing": [None] * 3})
    assert of(ParquetRecords(), path).columnar() is None, "a column without a type"
    assert of(ParquetRecords(["id", "m"]), path).columnar() is None, "a column that is not there"
    assert of(ParquetRecords(where=pc.field("n") + 1), path).columnar() is None
    since = of(ParquetRecords(["id"]), path).starting_at(StartFrom.timestamp(1 << 50))
    assert isinstance(since, FileSource)
    assert since.columnar() is None
    rows = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["n"], [Types.LONG()]))
    assert of(rows, path).columnar() is None
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    assert lines.build().columnar() is None
    path.write_text("not Parquet")
    assert of(ParquetRecords(), path).columnar() is None


def test_nothing_in_batches(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"n": range(10)}, row_group_size=3)
    for columns in (["n"], {"n": pc.field("n") * 2}):
        (batch,) = batches(columnar(of(ParquetRecords(columns, where=pc.field("n") > 9), path)))
        assert batch.num_rows == 0
    assert rows_of(columnar(of(ParquetRecords(where=pc.field("n") > 8), path))) == [(9,)]


TEXT = pa.string()
NESTED = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.map_(TEXT, TEXT))])
STRICT = pa.struct(
    [
        pa.field("a", pa.list_(pa.field("other", pa.int64(), nullable=False)), nullable=False),
        pa.field("b", pa.map_(TEXT, pa.field("value", TEXT, nullable=False))),
    ]
)


@pytest.mark.parametrize(
    ("first", "kind", "other", "fits"),
    [
        (pa.array([1], pa.int64()), pa.int64(), pa.array([2], pa.int32()), True),
        (pa.array([1], pa.int64()), pa.int64(), pa.array([2], pa.uint32()), True),
        (pa.array([1], pa.int64()), pa.int64(), pa.array([2], pa.uint64()), False),
        (pa.array([1], pa.int32()), pa.int64(), pa.array([2], pa.int64()), True),
        (pa.array([1], pa.uint64()), pa.uint64(), pa.array([2], pa.int8()), False),
        (pa.array([1.5]), pa.float64(), pa.array([2.5], pa.float32()), True),
        (pa.array([1.5], pa.float32()), pa.float64(), pa.array([2.5]), True),
        (pa.array([1.5]), pa.float64(), pa.array([2]), False),
        (pa.array([1]), pa.int64(), pa.array([True]), False),
        (pa.array([1]), pa.int64(), pa.array([None]), True),
        (pa.array([1]), pa.int64(), pa.array(["x"]), False),
        (pa.array(["x"]), TEXT, pa.array(["y"], pa.large_string()), True),
        (pa.array(["x"], pa.large_string()), TEXT, pa.array(["y"]), True),
        (pa.array(["x"]).dictionary_encode(), TEXT, pa.array(["y"]), True),
        (
            pa.array(["x"]),
            TEXT,
            pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), ["y"]),
            True,
        ),
        (pa.array(["x"]), TEXT, pa.array([b"x"]), False),
        (
            pa.array([{"a": [1], "b": [("k", "v")]}], STRICT),
            NESTED,
            pa.array([{"a": [None], "b": []}, None], NESTED),
            True,
        ),
        (
            pa.array([{"a": [1], "b": [("k", "v")]}], NESTED),
            NESTED,
            pa.array([{"a": [2], "b": [("k", "v")]}], STRICT),
            True,
        ),
    ],
)
def test_files_with_other_types(
    tmp_path: Path, first: Any, kind: Any, other: Any, fits: bool
) -> None:
    written(tmp_path / "1.parquet", {"c": first, "more": ["x"] * len(first)})
    required = pa.schema([pa.field("c", other.type, other.null_count > 0, {"some": "thing"})])
    pq.write_table(pa.table([other], required), tmp_path / "2.parquet")
    form = columnar(of(ParquetRecords(["c"]), tmp_path))
    assert form.schema == pa.schema([("c", kind)])
    if fits:
        found = [batch.column(0).to_pylist() for batch in batches(form)]
        assert sorted(found, key=repr) == sorted([first.to_pylist(), other.to_pylist()], key=repr)
    else:
        with pytest.raises(FileAccessError, match=r"column c of .*2\.parquet has the type .*, in"):
            batches(form)


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    """Wherever other files have them, and whatever more they have."""
    written(tmp_path / "1.parquet", {"a": [1], "b": ["x"]})
    written(tmp_path / "2.parquet", {"more": [0], "b": ["y"], "a": [2]})
    assert sorted(rows_of(columnar(of(ParquetRecords(), tmp_path)))) == [(1, "x"), (2, "y")]
    written(tmp_path / "3.parquet", {"a": [3]})
    with pytest.raises(FileAccessError, match=r"3\.parquet has no column b; it has a"):
        rows_of(columnar(of(ParquetRecords(), tmp_path)))


_IN_A_WORKER = """
import pickle, sys
from penstock.datastream.connectors.base import InitContext
with open(sys.argv[1], "rb") as file:
    splits, sources = pickle.load(file)
for source in sources:
    reader = source.create_reader(InitContext("job", "source", 0, 1, 1, "token"))
    for split in splits:
        print(reader.read(split, None, 1000).count)
    reader.close()
assert "pandas" not in sys.modules, "pandas"
assert "pyarrow.dataset" not in sys.modules, "dataset"
"""


def test_workers_do_without_pandas(tmp_path: Path) -> None:
    """Whose import takes half a second. Expressions come by pickle, as they do to workers."""
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder / "1", {**READINGS, "kind": pa.array(["k", "l"] * 2).dictionary_encode()})
    other = pa.array(["k"], pa.large_string())
    written(
        folder / "2", {"id": ["c"], "n": pa.array([5], pa.int32()), "temp": [0.0], "kind": other}
    )
    columns = {"id": "id", "n": "n", "kind": "kind", "t": pc.field("temp") * 2 + 0.25}
    some, none = (ParquetRecords(columns, tuple, where=pc.field("n") > n) for n in (1, 9))
    sources = [of(some, folder), of(none, folder), of(ParquetRecords(record_type=tuple), folder)]
    sources += [columnar(source).source for source in sources]  # type: ignore[misc]
    given = (sources[0].create_splits(1), sources)
    (tmp_path / "given").write_bytes(pickle.dumps(given))
    command = [sys.executable, "-c", _IN_A_WORKER, str(tmp_path / "given")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split()) == sorted("31" + "00" + "41" + "31" + "00" + "41")
