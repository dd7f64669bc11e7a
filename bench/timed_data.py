"""Input of the window benchmark: readings whose time goes on from file to file.

20,000 a second over all keys, out of order by at most a second. Temperatures are multiples of
1/16, so that sums are exact and results equal in whatever order records are added.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import KEYS, ROWS_PER_FILE

STEADY, BURSTS = "steady", "bursts"
"""Every key at any time; or each key for a third of every minute, and then silent."""
OUT_OF_ORDER_MILLIS = 1000

_FIRST_MILLIS = 1_700_000_000_000
_FILE_MILLIS = 10_000
_MINUTE = 60_000
_BURST_MILLIS = 20_000
_FORMAT = 1


def timed_readings(pattern: str, files: int) -> Path:
    """The directory of the files, of which the first so many are there; always the same content."""
    cache = Path(tempfile.gettempdir()) / "penstock-bench"
    target = cache / f"timed-{_FORMAT}-{pattern}-{ROWS_PER_FILE}-{KEYS}"
    target.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = target / f"f{number:03d}.parquet"
        if not path.exists():
            _write(path, pattern, number)
    return target


def _write(path: Path, pattern: str, number: int) -> None:
    rng = np.random.default_rng(number)
    times = np.sort(rng.integers(0, _FILE_MILLIS, ROWS_PER_FILE)) + number * _FILE_MILLIS
    half = OUT_OF_ORDER_MILLIS // 2
    jitter = rng.integers(-half, half, ROWS_PER_FILE)
    names = pa.array([f"sensor_{key}" for key in range(KEYS)])
    sixteenths = np.round(rng.normal(60, 10, ROWS_PER_FILE) * 16)
    table = pa.table(
        {
            "id": names.take(pa.array(_keys(rng, pattern, times))),
            "ts": pa.array(_FIRST_MILLIS + times + jitter),
            "temp": pa.array(sixteenths / 16),
        }
    )
    made = path.with_suffix(f".{os.getpid()}")
    pq.write_table(table, made, row_group_size=50_000)
    # Spark reads files in the order of their age.
    os.utime(made, (_FIRST_MILLIS / 1000 + number,) * 2)
    os.rename(made, path)


def _keys(rng: np.random.Generator, pattern: str, times: np.ndarray) -> np.ndarray:
    if pattern == STEADY:
        return rng.integers(0, KEYS, ROWS_PER_FILE)
    # A key's burst begins at its own place in the minute. So draw how long ago it began.
    begins = (times - rng.integers(0, _BURST_MILLIS, ROWS_PER_FILE)) % _MINUTE
    shuffled = np.random.default_rng(0).permutation(KEYS)
    return np.asarray(shuffled[begins * KEYS // _MINUTE])
