"""Input of the programs: Parquet files of readings whose time goes on from file to file.

Out of order by less than a second. Temperatures are multiples of 1/16, so that sums are exact.
Always the same content, made once per machine; as CSV too for contenders that read no Parquet.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bench.peers.functions import CLASSES, OUT_OF_ORDER_MILLIS, threshold_of

FIRST_MILLIS = 1_700_000_000_000
FILE_MILLIS = 5_000
SCHEMA = "id string, ts long, temp double"
LINES_SCHEMA = "line string, ts long"
RULES_SCHEMA = "class long, ts long, threshold double"
WORDS_IN_LINE = 10
STEADY, BURSTS = "steady", "bursts"
"""Every key at any time; or each key for two seconds of every six, and then silent."""

_PERIOD_MILLIS = 6_000
_BURST_MILLIS = 2_000
_FORMAT = 1


@dataclass(frozen=True)
class Scale:
    """How much happens in the time that a file covers."""

    name: str
    rows_per_file: int
    keys: int


FULL = Scale("full", 100_000, 10_000)
SMALL = Scale("small", 5_000, 500)


def readings(pattern: str, files: int, scale: Scale, seed: int = 0) -> Path:
    """The directory of the files, of which at least the first so many are there."""
    directory = _cache() / f"peers-{_FORMAT}-{pattern}-{seed}-{scale.rows_per_file}-{scale.keys}"
    return filled(directory, files, lambda number: _table(pattern, number, scale, seed))


def lines(files: int, scale: Scale) -> Path:
    """Lines of words, of which few are frequent: as many words in a file as there are readings."""
    directory = _cache() / f"peers-{_FORMAT}-lines-{scale.rows_per_file}-{scale.keys}"
    return filled(directory, files, lambda number: _lines(number, scale))


def rules(files: int, scale: Scale) -> Path:
    """Thresholds by class of sensors, each again and again: one for a hundred readings."""
    directory = _cache() / f"peers-{_FORMAT}-rules-{scale.rows_per_file}"
    return filled(directory, files, lambda number: _rules(number, scale))


def filled(directory: Path, files: int, table_of: Callable[[int], pa.Table]) -> Path:
    """`directory` with the first so many files in it; `table_of(number)` makes one's content."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = directory / name_of(number)
        if not path.exists():
            _write(path, table_of(number), number)
    return directory


def name_of(number: int) -> str:
    return f"f{number:04d}.parquet"


def end_of(files: int) -> int:
    """The time at which so many files end."""
    return FIRST_MILLIS + files * FILE_MILLIS


def _cache() -> Path:
    return Path(tempfile.gettempdir()) / "penstock-bench"


def as_csv(directory: Path, files: int) -> None:
    """The first so many files as CSV without header, beside them."""
    for number in range(files):
        path = directory / name_of(number)
        csv = path.with_suffix(".csv")
        if not csv.exists():
            table = pq.read_table(path)
            _put(csv, number, lambda made, table=table: pa_csv.write_csv(table, made, _PLAIN))


def _write(path: Path, table: pa.Table, number: int) -> None:
    _put(path, number, lambda made: pq.write_table(table, made))


def _put(target: Path, number: int, write: Callable[[Path], None]) -> None:
    """The file is there as a whole or not at all."""
    made = target.with_suffix(f".{os.getpid()}")
    write(made)
    # Spark reads files in the order of their age.
    os.utime(made, (FIRST_MILLIS / 1000 + number,) * 2)
    os.rename(made, target)


_PLAIN = pa_csv.WriteOptions(include_header=False, quoting_style="none")


def _table(pattern: str, number: int, scale: Scale, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, number])
    rows = scale.rows_per_file
    # A record that comes late is less than a second behind the newest one before it.
    times = np.sort(rng.integers(0, FILE_MILLIS, rows)) + number * FILE_MILLIS
    behind = rng.integers(0, OUT_OF_ORDER_MILLIS, rows)
    times = np.maximum(times - behind, 0)
    names = pa.array([f"sensor_{key}" for key in range(scale.keys)])
    return pa.table(
        {
            "id": names.take(pa.array(_keys(rng, pattern, times, scale.keys))),
            "ts": pa.array(FIRST_MILLIS + times),
            "temp": pa.array(np.round(rng.normal(60, 10, rows) * 16) / 16),
        }
    )


def _keys(rng: np.random.Generator, pattern: str, times: np.ndarray, keys: int) -> np.ndarray:
    if pattern == STEADY:
        return rng.integers(0, keys, len(times))
    # A key's burst begins at its own place in the period. So draw how long ago it began.
    begins = (times - rng.integers(0, _BURST_MILLIS, len(times))) % _PERIOD_MILLIS
    shuffled = np.random.default_rng(0).permutation(keys)
    return np.asarray(shuffled[begins * keys // _PERIOD_MILLIS])


def _lines(number: int, scale: Scale) -> pa.Table:
    rng = np.random.default_rng([2, number])
    count = scale.rows_per_file // WORDS_IN_LINE
    words = np.minimum(rng.zipf(1.3, (count, WORDS_IN_LINE)), scale.keys)
    return pa.table(
        {
            "line": pa.array([" ".join(f"w{word}" for word in line) for line in words.tolist()]),
            "ts": pa.array(_steps(number, count)),
        }
    )


def _rules(number: int, scale: Scale) -> pa.Table:
    count = scale.rows_per_file // 100
    classes = np.random.default_rng([3, number]).integers(0, CLASSES, count).tolist()
    return pa.table(
        {
            "class": pa.array(classes),
            "ts": pa.array(_steps(number, count)),
            "threshold": pa.array([threshold_of(each) for each in classes]),
        }
    )


def _steps(number: int, count: int) -> np.ndarray:
    return FIRST_MILLIS + number * FILE_MILLIS + np.arange(count) * FILE_MILLIS // count
