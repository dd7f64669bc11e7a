"""Sources that begin to read at a position or a point in time."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest
from gated import await_true, counts, expected, written

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.base import StartFrom
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

AT = dt.datetime(2026, 11, 1, 8, tzinfo=dt.timezone.utc)


def read(env: Any, source: Any) -> list[Any]:
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "s").uid("s")
    return sorted(stream.execute_and_collect())


@pytest.mark.parametrize(
    "source",
    [
        CollectionSource(range(10)),
        NumberSequenceSource(0, 9),
        DataGeneratorSource(lambda i: i, count=10),
    ],
)
def test_at_a_position(make_env: Any, source: Any) -> None:
    assert read(make_env(), source.starting_at(StartFrom.position(7))) == [7, 8, 9]
    assert read(make_env({"penstock.source.start": "s=7"}), source) == [7, 8, 9]


@pytest.mark.parametrize("at", [0, 4])
@pytest.mark.parametrize("again", [0, 4, 7])
@pytest.mark.parametrize(
    "source",
    [
        CollectionSource(range(10)),
        NumberSequenceSource(0, 9),
        DataGeneratorSource(lambda i: i, count=10),
    ],
)
def test_positions_are_the_same_wherever_a_job_began(source: Any, at: int, again: int) -> None:
    """The setting may stay, go or change when the job is started again: it goes on where it was."""
    began = source.starting_at(StartFrom.position(at)).create_splits(3)
    now = source.starting_at(StartFrom.position(again))
    reader = now.create_reader(None)
    found = []
    for split in now.resume(list(began), now.create_splits(3)):
        position = next(s.position for s in began if s.split_id == split.split_id)
        found += reader.read(split, position, 100).records
    assert sorted(found) == list(range(at, 10))


def test_a_pace_is_kept_from_where_it_begins() -> None:
    source = DataGeneratorSource(lambda i: i, rate=10.0).starting_at(StartFrom.position(1000))
    reader = source.create_reader(None)
    (split,) = source.create_splits(1)
    assert reader.read(split, split.position, 100).records == [1000]


def test_at_a_point_in_time(make_env: Any, tmp_path: Path) -> None:
    for name, hour in (("old", -1), ("at", 0), ("new", 1)):
        path = tmp_path / f"{name}.txt"
        path.write_text(name)
        changed = (AT + dt.timedelta(hours=hour)).timestamp()
        os.utime(path, (changed, changed))
    files = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path)
    ).build()
    env = make_env({"penstock.source.start": "s=2026-11-01T08:00:00Z"})
    assert read(env, files) == ["at", "new"]


def test_with_the_state_of_a_savepoint(restartable_env: Any, tmp_path: Path) -> None:
    """Reads some numbers once more, on top of the counts so far."""

    def start(gate: int, out: str, settings: dict[str, str]) -> Any:
        (tmp_path / "gate").write_text(str(gate))
        env = restartable_env(settings)
        counts(env, tmp_path / "gate", tmp_path / out)
        return env.execute_async()

    first = start(20, "out", {})
    await_true(lambda: len(written(tmp_path / "out")) == 20)
    path = first.stop_with_savepoint(False, str(tmp_path)).result()
    again = {
        "execution.state-recovery.path": path,
        "penstock.state-recovery.reset-sources": "numbers",
        "penstock.source.start": "numbers=15",
    }
    second = start(30, "more", again)
    await_true(lambda: len(written(tmp_path / "more")) >= 15)
    second.cancel().result()
    found = sorted(expected(range(20)) + written(tmp_path / "more"))
    assert found == expected(range(20), range(15, 30))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("42", StartFrom.position(42)),
        ("2026-11-01T08:00:00Z", StartFrom.timestamp(AT)),
        ("2026-11-01T09:00:00+01:00", StartFrom.timestamp(AT)),
        ("2026-11-01T08:00", StartFrom.timestamp(AT)),
        (f"@{int(AT.timestamp() * 1000)}", StartFrom.timestamp(AT)),
    ],
)
def test_where_in_words(text: str, start: StartFrom) -> None:
    assert StartFrom.parse(text) == start


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "@x", "4.5"])
def test_where_it_cannot_be(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="where to start from"):
        StartFrom.parse(text)


@pytest.mark.parametrize("executor", ["local"], indirect=True)
@pytest.mark.parametrize(
    "setting", ["penstock.state-recovery.reset-sources", "penstock.state-recovery.anew"]
)
def test_settings_for_a_savepoint_without_one(make_env: Any, setting: str) -> None:
    env = make_env({setting: "true"})
    with pytest.raises(InvalidArgumentError, match=f"{setting} says how to start from a savepoint"):
        read(env, NumberSequenceSource(0, 9))


def test_a_source_that_cannot_and_one_that_is_not_there(make_env: Any) -> None:
    numbers = NumberSequenceSource(0, 9)
    with pytest.raises(UnsupportedFeatureError, match=r"2026-11-01T08:00:00.*give a number"):
        numbers.starting_at(StartFrom.timestamp(AT))
    with pytest.raises(InvalidArgumentError, match="names t, and no source has such a uid"):
        read(make_env({"penstock.source.start": "t=3"}), numbers)
    with pytest.raises(InvalidArgumentError, match="uid=where"):
        read(make_env({"penstock.source.start": "7"}), numbers)
