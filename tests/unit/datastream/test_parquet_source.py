"""Parquet files as a source, without a job: parts, positions, values, records, errors."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.common import Configuration, Instant, Row, Types
from penstock.datastream.connectors import _file_source
from penstock.datastream.connectors.base import InitContext, Source, Split, StartFrom
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
)
from penstock.datastream.formats import _parquet_reader
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
