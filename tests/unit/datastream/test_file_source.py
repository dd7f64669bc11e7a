"""A source of files, without a job: which files, in which parts, in which character set."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Duration
from penstock.datastream.connectors import _file_source, _text_format
from penstock.datastream.connectors.base import (
    Boundedness,
    InitContext,
    Source,
    Split,
    StartFrom,
)
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileOrder,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)
from penstock.errors import (
    CheckpointMismatchError,
    FileAccessError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)

CONTEXT = InitContext("job", "source", 0, 1, 1, "token")


def lines_of(*paths: Any, charset: str = "UTF-8") -> FileSourceBuilder:
    return FileSource.for_record_stream_format(
        StreamFormat.text_line_format(charset), *map(str, paths)
    )


def read_split(source: Source, split: Split, most: int = 1000, readers: int = 1) -> list[str]:
    """With several readers each call is made by another, from where the last one stopped."""
    reader = source.create_reader(CONTEXT)
    position, finished, records = split.position, False, []
    while not finished:
        if readers > 1:
            reader.close()
            reader = pickle.loads(pickle.dumps(source)).create_reader(CONTEXT)
        result = reader.read(split, position, most)
        assert result.records or result.finished
        records += result.records
        position, finished = result.position, result.finished
    reader.close()
    return records


def read(source: Source, parallelism: int = 1, **how: int) -> list[str]:
    found = [read_split(source, split, **how) for split in source.create_splits(parallelism)]
    return [line for lines in found for line in lines]


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 10)


def test_files_below_a_directory(tmp_path: Path) -> None:
    for name in ("a.txt", "deep/er/b.txt", "_SUCCESS", ".crc", "_tmp/c.txt", ".git/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    (tmp_path / "empty").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    assert sorted(read(lines_of(tmp_path).build())) == ["a.txt", "deep/er/b.txt"]
    named = lines_of(tmp_path / "_SUCCESS", tmp_path / "a.txt", tmp_path).build()
    assert sorted(read(named)) == ["_SUCCESS", "a.txt", "deep/er/b.txt"]
    assert read(lines_of(f"file://{tmp_path}/a.txt").build()) == ["a.txt"]
    assert lines_of(tmp_path / "empty").build().create_splits(2) == []


@pytest.mark.usefixtures("small_ranges")
def test_a_large_file_in_parts(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(100)]
    path = tmp_path / "file"
    path.write_text("\r\n".join(lines))
    source = lines_of(path).build()
    splits = source.create_splits(4)
    assert len(splits) == len({split.split_id for split in splits}) == 4
    parts = [read_split(source, split, most=7, readers=2) for split in splits]
    assert [line for part in parts for line in part] == lines
    assert max(map(len, parts)) < 30
    whole = lines_of(path).set_file_enumerator(
        FileEnumeratorProvider.default_non_splittable_file_enumerator()
    )
    assert len(whole.build().create_splits(4)) == 1
    assert read(whole.build()) == lines


@pytest.mark.usefixtures("small_ranges")
def test_parts_are_dealt_out_evenly(tmp_path: Path) -> None:
    for name, size in (("a", 90), ("b", 5), ("c", 90), ("d", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    splits = lines_of(tmp_path).build().create_splits(2)
    sizes = [split.data.end - split.data.start for split in splits]
    assert sum(sizes[0::2]) == sum(sizes[1::2]) == 95


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
@pytest.mark.parametrize("readers", [1, 2])
def test_packed_files(tmp_path: Path, suffix: str, pack: Any, readers: int) -> None:
    lines = [f"line {n}" for n in range(50)]
    (tmp_path / f"file{suffix}").write_bytes(pack("\n".join(lines).encode()))
    source = lines_of(tmp_path).build()
    assert len(source.create_splits(8)) == 1
    assert read(source, 8, most=7, readers=readers) == lines


@pytest.mark.parametrize("charset", ["UTF-16", "utf-16-le", "UTF-32", "ISO-8859-1", "cp037"])
@pytest.mark.parametrize("readers", [1, 2])
def test_character_sets(tmp_path: Path, charset: str, readers: int) -> None:
    lines = [f"grüß {n}" for n in range(40)] + ["", "end"]
    (tmp_path / "file").write_bytes("\r\n".join(lines).encode(charset))
    assert read(lines_of(tmp_path, charset=charset).build(), most=7, readers=readers) == lines


@pytest.mark.parametrize(
    ("charset", "before", "offset"), [("utf-8", "schön\n", 7), ("utf-16", "abc\n", 10)]
)
def test_what_is_not_text(tmp_path: Path, charset: str, before: str, offset: int) -> None:
    bad = b"\xff rest" if charset == "utf-8" else b"\x00\xdc\x00\xdc"
    path = tmp_path / "file"
    path.write_bytes(before.encode(charset) + bad)
    with pytest.raises(FileAccessError, match=rf"{path} is not text in .* at byte {offset} "):
        read(lines_of(path, charset=charset).build())


def test_a_packed_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"line\n" * 1000)[:-20])
    with pytest.raises(FileAccessError, match=rf"cannot read {path}: EOFError"):
        read(lines_of(path).build())


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match=r"there is no file or directory .*/missing"):
        lines_of(tmp_path / "missing").build().create_splits(1)


def test_a_file_that_is_gone_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    source = lines_of(tmp_path).build()
    (split,) = source.create_splits(1)
    (tmp_path / "file").unlink()
    with pytest.raises(FileAccessError, match=r"cannot read .*FileNotFoundError"):
        read_split(source, split)


def test_more_files_than_are_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text_format, "_OPEN_FILES", 2)
    for name in "abcde":
        (tmp_path / name).write_text("".join(f"{name}{n}\n" for n in range(10)))
    source = lines_of(tmp_path).build()
    reader = source.create_reader(CONTEXT)
    at = {split: split.position for split in source.create_splits(1)}
    found = []
    for _ in range(5):
        for split, position in at.items():
            result = reader.read(split, position, 2)
            found += result.records
            at[split] = result.position
            assert len(reader._open) <= 2
    assert sorted(found) == sorted(f"{name}{n}" for name in "abcde" for n in range(10))
    reader.close()
    assert not reader._open


def test_files_that_come_later(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    source = lines_of(tmp_path).monitor_continuously(Duration.of_millis(500)).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.discovery_interval == 0.5
    known = source.create_splits(2)
    assert source.discover_splits(known, 2) == []
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a, and more")
    (new,) = source.discover_splits(known, 2)
    assert read_split(source, new) == ["b"]


def test_what_is_read_after_a_restart(tmp_path: Path) -> None:
    for name in ("old", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("a")
    old, other = tmp_path / "old", tmp_path / "other"
    stored = lines_of(old).build().create_splits(1)
    (old / "a").write_text("a grew")
    (old / "b").write_text("b")

    def resumed(builder: FileSourceBuilder) -> list[str]:
        source = builder.build()
        splits = source.resume(stored, source.create_splits(1))
        assert splits[0] is stored[0]
        return [split.split_id.removeprefix(str(tmp_path)) for split in splits[1:]]

    assert resumed(lines_of(old)) == []
    assert resumed(lines_of(old, other)) == ["/other/a"]
    assert resumed(lines_of(old).monitor_continuously(Duration.of_seconds(1))) == ["/old/b"]
    with pytest.raises(CheckpointMismatchError, match=r"keep the paths \(.*/old\)"):
        resumed(lines_of(other))


def test_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Numbers in them are numbers, directories and several paths do not matter, nor do sizes."""
    names = ["2026-11-02/log-9", "2026-11-02/log-10", "2026-11-03/log-1", "later/log-2"]
    for size, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n" * (size + 1))
    paths = [tmp_path / "later", tmp_path / "2026-11-03", tmp_path / "2026-11-02"]
    source = lines_of(*paths).in_time_order().build()
    assert all(map(source.in_order, source.create_splits(2)))
    assert not any(map(lines_of(tmp_path).build().in_order, source.create_splits(2)))
    found = [split.data.path for split in source.create_splits(2)]
    assert found == [str(tmp_path / name) for name in names]


@pytest.mark.usefixtures("small_ranges")
def test_files_in_the_order_of_their_changes(tmp_path: Path) -> None:
    for name, changed in {"a": 30, "b": 10, "c": 20, "d": 10}.items():
        (tmp_path / name).write_text("line\n" * 10)
        os.utime(tmp_path / name, (changed, changed))
    source = lines_of(tmp_path).in_time_order(FileOrder.MODIFIED).build()
    splits = source.create_splits(8)
    order = [(Path(split.data.path).name, split.data.start) for split in splits]
    assert list(dict.fromkeys(name for name, _ in order)) == ["b", "d", "c", "a"]
    assert len(order) > 4, "parts of a file follow each other"
    assert all(x[1] < y[1] for x, y in pairwise(order) if x[0] == y[0])
    since = source.starting_at(StartFrom.timestamp(15_000))
    assert all(map(since.in_order, since.create_splits(1)))
    assert [Path(s.data.path).name for s in since.create_splits(1)] == ["c", "a"]


def test_refusals(tmp_path: Path) -> None:
    lines = StreamFormat.text_line_format()
    with pytest.raises(InvalidArgumentError, match="at least one path"):
        FileSource.for_record_stream_format(lines)
    with pytest.raises(InvalidArgumentError, match="a known character set"):
        StreamFormat.text_line_format("utf-9")
    with pytest.raises(InvalidArgumentError, match="s3://"):
        FileSource.for_record_stream_format(lines, "s3://bucket/x")
    with pytest.raises(InvalidArgumentError, match="a path or a file:// URI"):
        FileSource.for_record_stream_format(lines, "")
    with pytest.raises(InvalidArgumentError, match="stream_format must be a StreamFormat"):
        FileSource.for_record_stream_format("text", str(tmp_path))  # type: ignore[arg-type]
    builder = lines_of(tmp_path)
    with pytest.raises(InvalidArgumentError, match="longer than zero"):
        builder.monitor_continuously(Duration.of_millis(0))
    with pytest.raises(InvalidArgumentError, match="a FileEnumeratorProvider"):
        builder.set_file_enumerator("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="by must be a FileOrder"):
        builder.in_time_order("name")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a FileSplitAssignerProvider"):
        builder.set_split_assigner("x")  # type: ignore[arg-type]
    builder.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
    with pytest.raises(InvalidArgumentError, match="bulk_format must be a BulkFormat"):
        FileSource.for_bulk_file_format(lines, "x")  # type: ignore[arg-type]
    for cls in (StreamFormat, BulkFormat, FileEnumeratorProvider, FileSplitAssignerProvider):
        with pytest.raises(UnsupportedFeatureError, match="no Flink Java objects"):
            cls(None)  # type: ignore[abstract]
