"""Windows whose records are combined: killed in the middle of an epoch, exact when it ends."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MakeJob = Callable[..., Any]
Row = tuple[str, int, int]

_EPOCHS, _SECONDS, _KEYS = 12, 7, 5
_SIZE = 10_000


def _rows(epoch: int) -> list[Row]:
    """A record a second of each key, up to 2 s out of order, around the seams of epochs too."""
    seconds = range(epoch * _SECONDS, (epoch + 1) * _SECONDS)
    # Sums of a few of them are more than 64 bits hold.
    return [
        (f"k{key}", 1000 * second + second * 7919 % 2000, (second % 4 << 60) + key * second)
        for second in seconds
        for key in range(_KEYS)
    ]


def _write(directory: Path, epochs: list[list[Row]]) -> None:
    """Two files an epoch, each with records of every key: two tasks have a part of every window."""
    directory.mkdir()
    for number, rows in enumerate(epochs):
        for half in range(2):
            keys, times, numbers = zip(*rows[half::2], strict=True)
            path = directory / f"{number:02d}-{half}.parquet"
            pq.write_table(pa.table({"key": keys, "ts": times, "number": numbers}), path)
            # Spark reads files in the order of their times.
            os.utime(path, (1_700_000_000 + 10 * number + half,) * 2)


def _expected(rows: list[Row], more: Callable[[list[Any]], tuple[Any, ...]]) -> list[Any]:
    """`more`: the last results of a window's times and numbers."""
    windows: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for key, at, number in rows:
        if number % 7:
            windows[key, at // _SIZE * _SIZE].append((at, number + 1))
    return sorted(
        (*window, len(found), sum(n for _, n in found), sum(at for at, _ in found) / len(found),
         *more(found))
        for window, found in windows.items()
    )  # fmt: skip


def _last_and_different(found: list[tuple[int, int]]) -> tuple[int, int]:
    return max(found)[1], len({n for _, n in found})


def _highest(found: list[tuple[int, int]]) -> tuple[int]:
    return (max(n for _, n in found),)


@pytest.mark.spark
@pytest.mark.slow
def test_kill_while_spark_combines(counting_job: MakeJob, tmp_path: Path) -> None:
    _kill_in_the_middle_of_an_epoch("columnar", counting_job, tmp_path, _last_and_different)


@pytest.mark.spark
@pytest.mark.slow
def test_kill_while_tasks_combine_what_they_read(counting_job: MakeJob, tmp_path: Path) -> None:
    few = {"penstock.source.max-records-per-epoch": "20"}
    _kill_in_the_middle_of_an_epoch("file columns", counting_job, tmp_path, _highest, few)


def _kill_in_the_middle_of_an_epoch(
    program: str,
    counting_job: MakeJob,
    tmp_path: Path,
    more: Callable[[list[Any]], Any],
    config: dict[str, str] | None = None,
) -> None:
    """Some windows of the epoch have fired, others are open, and nothing of it is committed."""
    epochs = [_rows(epoch) for epoch in range(_EPOCHS)]
    _write(tmp_path / "input", epochs)
    job = counting_job(
        executor="spark", program=program, input=tmp_path / "input", config=config or {}
    )
    first = job.start()
    first.wait_until((job.directory / "stuck").exists)
    before = job.counted()
    first.kill_group()
    assert first.process.returncode == -signal.SIGKILL
    assert "[columnar, partial results merged]" in first.output

    last = job.finish(tries=1)

    assert before.rows
    assert all(start < 40_000 for _, start, *_ in before.rows)
    assert last.summary["first"] == first.output.count("\nepoch ")
    counted = job.counted()
    assert counted.strays == []
    assert sorted(counted.rows) == _expected([row for rows in epochs for row in rows], more)
