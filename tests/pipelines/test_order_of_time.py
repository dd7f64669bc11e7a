"""Records of several producers come to a receiver in the order of event time, as far as their
payloads are in it: so within an epoch time goes on, and windows and joins hold little of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.window import TumblingEventTimeWindows

COUNT = 100_000
"""Enough for many payloads."""


@pytest.fixture
def env(make_env: Any) -> Any:
    """Sources tell the time as often as they can."""
    return make_env({"pipeline.auto-watermark-interval": "1 ms"})


class Told(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def stream(env: Any, name: str, step: int = 1) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    source = DataGeneratorSource(lambda i: i * step, COUNT // step)
    return env.from_source(source, strategy, name)


def mostly_ahead(told: list[tuple[int, int]]) -> int:
    """How far nine of ten records were ahead of the time that had come, at most, but for those of
    the first fifth. Time is told by the clock: on a busy machine a few have to wait for it."""
    ahead = sorted(value - watermark for value, watermark in told if value > COUNT // 5)
    return ahead[len(ahead) * 9 // 10]


def test_of_the_subtasks_of_a_source(env: Any) -> None:
    told = stream(env, "numbers").key_by(lambda value: value % 7, Types.INT()).process(Told())
    found = list(told.execute_and_collect())
    assert sorted(value for value, _ in found) == list(range(COUNT))
    assert mostly_ahead(found) < COUNT // 5


def test_of_streams_that_meet(env: Any) -> None:
    """One has ten records where the other has one, which tells its time but once: it does so first,
    so that the other one's time is what counts."""
    both = stream(env, "dense").union(stream(env, "sparse", 10))
    told = both.key_by(lambda value: value % 7, Types.INT()).process(Told())
    found = list(told.execute_and_collect())
    assert len(found) == COUNT + COUNT // 10
    assert mostly_ahead([each for each in found if each[0] % 10]) < COUNT // 5


# Files that Spark reads. It begins with the largest; here that is the newest.

FILES = 6
DELAY = COUNT // FILES

on_spark = pytest.mark.parametrize("executor", ["spark"], indirect=True)


def files(directory: Path, shuffled: bool) -> list[int]:
    """The numbers up to COUNT in files that follow each other, larger and larger; each number with
    its place in its file."""
    times: list[int] = []
    for number in range(FILES):
        own = list(range(len(times), len(times) + DELAY + (number - FILES // 2) * 1000))
        times += own
        if shuffled:
            random.Random(number).shuffle(own)
        columns = {"t": own, "file": [number] * len(own), "place": list(range(len(own)))}
        directory.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), directory / f"{number}.parquet")
    return times


def records(spark: Any, env: Any, directory: Path) -> Any:
    """All of them in one epoch."""
    frame = spark.readStream.schema("t long, file long, place long").parquet(str(directory))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DELAY))
    timed = strategy.with_timestamp_assigner(lambda record, _: record[0])
    return env.from_spark(frame, tuple, bounded=True).assign_timestamps_and_watermarks(timed)


class ToldOfFiles(KeyedProcessFunction):
    def process_element(
        self, value: tuple[int, ...], ctx: KeyedProcessFunction.Context
    ) -> Iterator[Any]:
        yield *value, ctx.timer_service().current_watermark()


@pytest.mark.spark
@on_spark
def test_of_files_that_spark_reads(spark: Any, make_env: Any, tmp_path: Path) -> None:
    times = files(tmp_path / "in", shuffled=False)
    told = records(spark, make_env(), tmp_path / "in").key_by(lambda record: record[0] % 7)
    found = list(told.process(ToldOfFiles()).execute_and_collect())

    assert sorted(record[0] for record in found) == times
    assert all(record[0] > record[3] for record in found)
    # Up to where the source is at the epoch's end, and not beyond that.
    reached = times[-1] - DELAY - 1
    assert reached - COUNT // 32 < max(record[3] for record in found) <= reached
    assert mostly_ahead([r[::3] for r in found if r[0] < reached]) < COUNT // 5
    for key in range(7):
        for file in range(FILES):
            places = [r[2] for r in found if r[0] % 7 == key and r[1] == file]
            assert all(a < b for a, b in pairwise(places))


@pytest.mark.spark
@on_spark
def test_of_files_and_of_few_records(spark: Any, make_env: Any, tmp_path: Path) -> None:
    """A stream that has sent all it has holds the other one back no more."""
    times = files(tmp_path / "in", shuffled=False)
    few = times[::1000]
    (tmp_path / "few").mkdir()
    columns = {"t": few, "file": [-1] * len(few), "place": few}
    pq.write_table(pa.table(columns), tmp_path / "few" / "0.parquet")
    env = make_env({"parallelism.default": "1"})
    both = records(spark, env, tmp_path / "in").union(records(spark, env, tmp_path / "few"))
    told = both.key_by(lambda record: record[0] % 7).process(ToldOfFiles())
    found = list(told.execute_and_collect())

    assert sorted(record[0] for record in found) == sorted([*times, *few])
    reached = times[-1] - DELAY - 1
    dense = [record[::3] for record in found if record[1] >= 0 and record[0] < reached]
    assert mostly_ahead(dense) < COUNT // 5


@pytest.mark.spark
@on_spark
@pytest.mark.parametrize("shuffled", [False, True])
def test_windows_over_files_that_spark_reads(
    spark: Any, make_env: Any, tmp_path: Path, shuffled: bool
) -> None:
    """Windows close within the epoch, and none of them too early."""
    times = files(tmp_path / "in", shuffled)
    size = 700
    windows = (
        records(spark, make_env(), tmp_path / "in")
        .key_by(lambda record: record[0] % 7, Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(size)))
        .apply(lambda key, window, found: [(key, window.start, len(list(found)))])
    )
    expected = Counter((time % 7, time // size * size) for time in times)
    found = list(windows.execute_and_collect())
    assert sorted(found) == sorted((*at, count) for at, count in expected.items())


@pytest.mark.spark
@on_spark
@pytest.mark.parametrize("frame_of", ["own name", "joined"])
def test_frames_whose_files_cannot_be_told(
    spark: Any, make_env: Any, tmp_path: Path, frame_of: str
) -> None:
    """Then records come as they were read."""
    pq.write_table(pa.table({"t": [3, 1, 2]}), tmp_path / "few.parquet")
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"t": [1, 2, 3]}), tmp_path / "in" / "a.parquet")
    frame = spark.readStream.schema("t long").parquet(str(tmp_path / "in"))
    if frame_of == "own name":
        frame = frame.withColumnRenamed("t", "_metadata")
    else:
        frame = frame.join(spark.read.parquet(str(tmp_path / "few.parquet")), "t")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda record, _: record[0]
    )
    timed = make_env().from_spark(frame, tuple, bounded=True)
    told = timed.assign_timestamps_and_watermarks(strategy).key_by(lambda record: 0)
    found = told.process(ToldOfFiles()).execute_and_collect()
    assert sorted(record[0] for record in found) == [1, 2, 3]
