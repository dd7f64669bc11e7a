"""A sink of files, without a job: buckets, names, rolling by size, and what failures leave."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Encoder
from penstock.datastream.connectors import _file_sink
from penstock.datastream.connectors.base import Committable, InitContext, WriterContext
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from penstock.errors import FileAccessError, InvalidArgumentError, UnsupportedFeatureError

NOON = 1_706_702_400_123  # 2024-01-31 12:00:00.123 UTC


class Clock(WriterContext):
    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def timestamp(self) -> int | None:
        return None

    def current_watermark(self) -> int:
        return 0

    def current_processing_time(self) -> int:
        return self.now


def rows(base: Path, assigner: BucketAssigner | None = None) -> FileSink.RowFormatBuilder:
    return FileSink.for_row_format(str(base), Encoder.simple_string_encoder()).with_bucket_assigner(
        assigner or BucketAssigner.base_path_bucket_assigner()
    )


def context(epoch: int = 0, attempt: str = "ab", job: str = "/checkpoints/job") -> InitContext:
    return InitContext("job", "sink", 3, 4, epoch, attempt, job)


def prepared(sink: FileSink, values: list[Any], where: InitContext) -> list[Committable]:
    writer = pickle.loads(pickle.dumps(sink)).create_writer(where)
    for value in values:
        writer.write(value, Clock())
    found = writer.prepare_commit()
    writer.close()
    return [Committable(where.epoch, 3, where.attempt, item) for item in found]


def shown(base: Path) -> dict[str, str]:
    """What a reader sees that passes over hidden files."""
    return {
        str(path.relative_to(base)): path.read_text()
        for path in base.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(base).parts)
    }


def hidden(base: Path) -> list[str]:
    return sorted(path.name for path in base.glob(".*/*"))


def test_parts_appear_with_the_commit(tmp_path: Path) -> None:
    sink = rows(tmp_path).build()
    committables = prepared(sink, [1, "two"], context(epoch=7))
    assert shown(tmp_path) == {}
    committer = sink.create_committer()
    committer.commit(committables)
    expected = {"part-3-000007-0-ab": "1\ntwo\n"}
    assert shown(tmp_path) == expected
    committer.commit(committables)  # after a crash they come again
    sink.create_committer().commit(committables)
    assert shown(tmp_path) == expected
    committer.close()
    assert [path.name for path in tmp_path.iterdir()] == list(expected)


def test_a_part_that_was_taken_away_since(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = rows(tmp_path).build()
    committables = prepared(sink, [1], context())
    sink.create_committer().commit(committables)
    (tmp_path / "part-3-000000-0-ab").unlink()
    sink.create_committer().commit(committables)
    assert "not there any more" in caplog.text


def test_output_that_the_driver_cannot_see(tmp_path: Path) -> None:
    there, here = rows(tmp_path / "there").build(), rows(tmp_path / "here").build()
    committables = prepared(there, [1], context())
    with pytest.raises(FileAccessError, match="the same one on every machine"):
        here.create_committer().commit(committables)


def test_what_failed_attempts_leave(tmp_path: Path) -> None:
    sink = rows(tmp_path).build()
    prepared(sink, ["lost"], context(epoch=1, attempt="aa"))
    prepared(sink, ["not mine"], context(epoch=1, attempt="bb", job="/checkpoints/other"))
    prepared(sink, ["running"], context(epoch=2, attempt="cc"))
    good = prepared(sink, ["good"], context(epoch=1, attempt="dd"))
    assert len(hidden(tmp_path)) == 4
    sink.create_committer().commit(good)
    assert list(shown(tmp_path).values()) == ["good\n"]
    assert hidden(tmp_path) == ["1-bb-0", "2-cc-0"]


def test_an_aborted_writer_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file_sink, "_HELD_BYTES", 4)
    policy = RollingPolicy.default_rolling_policy(part_size=10)
    writer = rows(tmp_path).with_rolling_policy(policy).build().create_writer(context())
    for n in range(10):
        writer.write(n, Clock())
    assert len(hidden(tmp_path)) == 2
    writer.abort()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("held", "held_in_all", "sizes"),
    [(1 << 20, 1 << 25, [20, 20, 8]), (8, 1 << 25, [24, 24]), (100, 9, [24, 24])],
)
def test_rolling_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, held_in_all: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(_file_sink, "_HELD_BYTES", held)
    monkeypatch.setattr(_file_sink, "_HELD_BYTES_IN_ALL", held_in_all)
    policy = RollingPolicy.default_rolling_policy(part_size=20)
    sink = rows(tmp_path).with_rolling_policy(policy).build()
    lines = [f"{n:03d}" for n in range(12)]
    sink.create_committer().commit(prepared(sink, lines, context()))
    parts = shown(tmp_path)
    assert sorted(parts) == [f"part-3-000000-{n}-ab" for n in range(len(parts))]
    assert "".join(parts[name] for name in sorted(parts)) == "".join(f"{x}\n" for x in lines)
    assert [len(parts[name]) for name in sorted(parts)] == sizes


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element: Any, context: WriterContext) -> str:
        return element[0] if isinstance(element, str) else element


def test_buckets(tmp_path: Path) -> None:
    names = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    sink = rows(tmp_path, ByFirstLetter()).with_output_file_config(names).build()
    sink.create_committer().commit(prepared(sink, ["a1", "b1", "a2"], context()))
    assert shown(tmp_path) == {
        "a/out-3-000000-0-ab.txt": "a1\na2\n",
        "b/out-3-000000-1-ab.txt": "b1\n",
    }


@pytest.mark.parametrize("bucket", [".", "/", 7, None])
def test_bad_buckets(tmp_path: Path, bucket: Any) -> None:
    writer = rows(tmp_path, ByFirstLetter()).build().create_writer(context())
    with pytest.raises(InvalidArgumentError, match="a bucket id must be"):
        writer.write(bucket, Clock())


@pytest.mark.parametrize(
    ("pattern", "zone", "bucket"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2024-01-31--12"),
        ("yyyy-MM-dd--HH", "Asia/Tokyo", "2024-01-31--21"),
        ("yyyy/M/d 'at' HHmmss.SSS", "UTC", "2024/1/31 at 120000.123"),
        ("yy''DDD", "UTC", "24'031"),
    ],
)
def test_buckets_by_time(pattern: str, zone: str, bucket: str) -> None:
    assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
    for made in (assigner, pickle.loads(pickle.dumps(assigner))):
        assert made.get_bucket_id("x", Clock()) == bucket
        assert made.get_bucket_id("x", Clock(NOON + 86_400_000)) != bucket


@pytest.mark.parametrize("pattern", ["", "yyyyy", "QQ", "yyyy 'open", None])
def test_bad_patterns(pattern: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="format_str must be a date pattern"):
        BucketAssigner.date_time_bucket_assigner(pattern)


def test_the_default_bucket_is_the_hour(tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    sink.create_committer().commit(prepared(sink, [1], context()))
    (path,) = shown(tmp_path)
    assert path.startswith(("2024-01-31--", "2024-02-01--"))


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sink = rows(tmp_path / "file").build()
    for make in (sink.create_committer, lambda: sink.create_writer(context())):
        with pytest.raises(FileAccessError, match=r"cannot write to .*/file"):
            make()


def test_refusals(tmp_path: Path) -> None:
    builder = rows(tmp_path)
    with pytest.raises(InvalidArgumentError, match="encoder must be an Encoder"):
        FileSink.for_row_format(str(tmp_path), str)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="hdfs://"):
        FileSink.for_row_format("hdfs://host/x", Encoder.simple_string_encoder())
    with pytest.raises(InvalidArgumentError, match="a RollingPolicy"):
        builder.with_rolling_policy(60)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a BucketAssigner"):
        builder.with_bucket_assigner(str)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="an OutputFileConfig"):
        builder.with_output_file_config("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="interval must be a positive int"):
        builder.with_bucket_check_interval(0)
    with pytest.raises(InvalidArgumentError, match="part_size must be a positive int"):
        RollingPolicy.default_rolling_policy(0)
    with pytest.raises(InvalidArgumentError, match="part_prefix must be"):
        OutputFileConfig("a/b", "")
    with pytest.raises(InvalidArgumentError, match="which hides files"):
        OutputFileConfig("_a", "")
    with pytest.raises(InvalidArgumentError, match="a time zone such as"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus")
    for refused in (
        lambda: FileSink.for_bulk_format("x", None),  # type: ignore[arg-type]
        lambda: StreamingFileSink.for_bulk_format("x", None),  # type: ignore[arg-type]
        lambda: builder.enable_compact(None, None),  # type: ignore[arg-type]
        FileCompactStrategy.builder,
        FileCompactor.concat_file_compactor,
        FileCompactor.identical_file_compactor,
    ):
        with pytest.raises(UnsupportedFeatureError, match="row G3"):
            refused()
    assert builder.disable_compact() is builder
