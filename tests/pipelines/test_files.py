"""Files in and out: lines of text, a watched folder, part files that appear with their epoch."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Duration, Encoder, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors import _file_source
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import FileAccessError, PenstockError, UserFunctionError
from penstock.testing import ScriptedSource

locally = pytest.mark.parametrize("executor", ["local"], indirect=True)


def lines_of(path: Path, every: int | None = None) -> FileSource:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    if every is not None:
        builder = builder.monitor_continuously(Duration.of_millis(every))
    return builder.build()


def files_in(path: Path) -> FileSink:
    return (
        FileSink.for_row_format(str(path), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def written(path: Path) -> list[str]:
    """All lines of the part files; there is nothing else."""
    names = [path / name for name in os.listdir(path)]
    return [line for name in names for line in name.read_text().splitlines()]


def put(path: Path, text: str) -> None:
    """Appears as a whole, as files in a watched folder must."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def test_word_count_from_files_to_files(
    env: StreamExecutionEnvironment,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in PyFlink's first example; one of the files is read by both subtasks."""
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 10)
    (folder / "a.txt").write_bytes(b"to be or not to be\r\n" * 20)
    (folder / "b.gz").write_bytes(gzip.compress(b"to see\nor not"))
    out = tmp_path / "out"
    ds = env.from_source(
        lines_of(folder), WatermarkStrategy.for_monotonous_timestamps(), "file_source"
    )
    ds = (
        ds.flat_map(lambda line: line.split())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    names = OutputFileConfig.builder().with_part_prefix("prefix").with_part_suffix(".ext").build()
    ds.sink_to(
        FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
        .with_output_file_config(names)
        .with_rolling_policy(RollingPolicy.default_rolling_policy())
        .build()
    )
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.execute()

    parts = list(out.rglob("*.ext"))
    assert all(part.name.startswith("prefix-") and part.parent.parent == out for part in parts)
    assert not list(out.glob(".*"))
    lines = [line for part in parts for line in part.read_text().splitlines()]
    assert sorted(lines) == ["(be,40)", "(not,21)", "(or,21)", "(see,1)", "(to,41)"]


@locally
def test_read_text_file(env: StreamExecutionEnvironment, folder: Path) -> None:
    (folder / "a").write_bytes("grün\nblau".encode("latin-1"))
    (folder / "empty").touch()
    stream = env.read_text_file(f"file://{folder}", "ISO-8859-1")
    assert stream.get_type() == Types.STRING()
    assert sorted(stream.execute_and_collect()) == ["blau", "grün"]


@locally
def test_a_folder_without_files(env: StreamExecutionEnvironment, folder: Path) -> None:
    assert list(env.read_text_file(str(folder)).execute_and_collect()) == []


@locally
def test_streaming_file_sink(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    """The name of 1.x, and connectors where they were then."""
    with pytest.warns(DeprecationWarning, match="is now"):
        from penstock.datastream.connectors import StreamingFileSink as EarlierPlace

    assert EarlierPlace is StreamingFileSink
    sink = (
        StreamingFileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    env.from_sequence(1, 5).add_sink(sink).name("files")
    env.execute()
    assert sorted(written(tmp_path / "out")) == list("12345")


def failing_at(bad: str) -> Any:
    def check(line: str) -> str:
        if line == bad:
            raise RuntimeError("not yet")
        return line

    return check


def test_exactly_once_through_a_failure(
    restartable_env: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole epochs of the run that failed, then the rest; what has changed since is not seen."""
    monkeypatch.setattr(_file_source, "_SMALLEST_RANGE", 100)
    lines = [f"line {n}" for n in range(60)]
    (folder / "a").write_text("\n".join(lines))
    out = tmp_path / "out"

    def run(bad: str) -> None:
        env = restartable_env()
        stream = env.from_source(lines_of(folder)).map(failing_at(bad))
        stream.sink_to(files_in(out)).uid("files")
        env.execute()

    with pytest.raises(UserFunctionError, match="not yet"):
        run(bad="line 25")
    before = written_so_far(out)
    assert 0 < len(before) < 60
    (folder / "b").write_text("too late")
    run(bad="")
    assert sorted(written(out)) == sorted(lines)
    assert before.items() <= written_so_far(out).items(), "what was there was changed"


def written_so_far(path: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in path.iterdir() if not p.name.startswith(".")}


# A watched folder


@locally
def test_output_may_be_taken_away_while_the_job_is_stopped(
    restartable_env: Any, collect_until_error: Any, tmp_path: Path
) -> None:
    """What was committed is not looked for when the job goes on."""
    out = tmp_path / "out"

    def program() -> DataStream:
        source = ScriptedSource([[1, 2], [3], [ScriptedSource.FAIL, 4], [5]])
        numbers = restartable_env({"parallelism.default": "1"}).from_source(source).uid("numbers")
        numbers.map(str, Types.STRING()).sink_to(files_in(out)).uid("files")
        return numbers

    collect_until_error(program())
    assert sorted(written(out)) == ["1", "2", "3"]
    for part in out.iterdir():
        part.unlink()
    list(program().execute_and_collect())
    assert sorted(written(out)) == ["4", "5"]


def test_files_that_come_while_the_job_runs(
    restartable_env: Any, folder: Path, collect_until_error: Any
) -> None:
    """They are found by both runs, and each is read once."""

    def lines(bad: str) -> DataStream:
        env = restartable_env()
        return env.from_source(lines_of(folder, every=20)).map(failing_at(bad))

    put(folder / "a", "a1\na2\n")
    first: list[str] = []
    with pytest.raises(PenstockError, match="not yet"), lines("bad").execute_and_collect() as found:
        for line in found:
            first.append(line)
            if len(first) == 2:
                put(folder / "b", "b1\n")
            if len(first) == 3:
                put(folder / "c", "bad\n")
    assert Counter(first) == Counter(["a1", "a2", "b1"])

    put(folder / "d", "d1\n")
    with lines("").execute_and_collect() as found:
        second = list(islice(found, 2))
        put(folder / "e", "e1\n")
        second += islice(found, 1)
    assert sorted(second[:2]) == ["bad", "d1"]
    assert second[2] == "e1"


class InLine(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value)


def windows(env: StreamExecutionEnvironment, folder: Path) -> Iterator[Any]:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(InLine())
    return (
        env.from_source(lines_of(folder, every=20), strategy)
        .map(int)
        .key_by(lambda _: "all")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: a + b)
        .execute_and_collect()
    )


@locally
def test_time_does_not_end_with_the_files_that_are_there(
    env: StreamExecutionEnvironment, folder: Path
) -> None:
    """Nor does the subtask that has none of them hold it back."""
    put(folder / "a", "1\n500\n1500\n")
    with windows(env, folder) as found:  # type: ignore[attr-defined]
        assert next(found) == 501
        put(folder / "b", "1700\n2000\n")
        assert next(found) == 1500 + 1700
        put(folder / "c", "3000\n")
        assert next(found) == 2000


# Bad input


def test_a_missing_path(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = env.from_source(lines_of(tmp_path / "missing"), source_name="lines")
    message = r"'Source: lines' \(.*test_files.py:\d+\): there is no file or directory .*/missing"
    with pytest.raises(FileAccessError, match=message):
        list(stream.execute_and_collect())


@locally
def test_what_is_not_text(env: StreamExecutionEnvironment, folder: Path) -> None:
    (folder / "a").write_bytes(b"good\nb\xe4d\n")
    stream = env.from_source(lines_of(folder), source_name="lines")
    message = r"'Source: lines' \(.*test_files.py:\d+\): .*/a is not text in utf-8: .* at byte 6 "
    with pytest.raises(FileAccessError, match=message):
        list(stream.execute_and_collect())


@locally
def test_a_directory_that_cannot_be_written(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    env.from_elements(1).sink_to(files_in(tmp_path / "file")).name("out")
    message = r"'out' \(.*test_files.py:\d+\): cannot write to .*/file"
    with pytest.raises(FileAccessError, match=message):
        env.execute()


@locally
def test_an_encoder_that_raises(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder("ascii")).build()
    env.from_elements("a", "ä").sink_to(sink).name("out")
    with pytest.raises(UserFunctionError, match=r"'out \(.*test_files.py:\d+.*UnicodeEncodeError"):
        env.execute()
    assert written_so_far(out) == {}


@locally
def test_a_strategy_without_timestamps_to_go_by(env: StreamExecutionEnvironment) -> None:
    """As in PyFlink's guide: harmless, since neither is event time used."""
    source = NumberSequenceSource(1, 3)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assert sorted(env.from_source(source, strategy, "numbers").execute_and_collect()) == [1, 2, 3]
