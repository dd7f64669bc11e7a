"""Input of the keyed benchmark: Parquet files of sensor readings, made once per machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = 10_000
WARM_UP_FILES = 100
FILES = 100
"""Measured ones, after those to warm up with. There are but ten different ones."""
_DIFFERENT = 10
ROWS_PER_FILE = 200_000
SCHEMA = "id string, ts long, temp double"

_FIRST_MILLIS = 1_700_000_000_000
_FORMAT = 5


def readings() -> Path:
    """The directory of the files; always the same content."""
    cache = Path(tempfile.gettempdir()) / "penstock-bench"
    target = cache / f"readings-{_FORMAT}-{FILES}x{ROWS_PER_FILE}-{KEYS}"
    if not target.exists():
        cache.mkdir(exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=cache))
        _write(made)
        try:
            os.rename(made, target)
        except OSError:  # another run was faster
            shutil.rmtree(made)
    return target


def files_of(directory: str, count: int) -> list[str]:
    return [str(path) for path in sorted(Path(directory).glob("*.parquet"))[:count]]


def first_files(count: int) -> str:
    """A glob for the same files."""
    numbers = ",".join(f"{number:03d}" for number in range(count))
    return f"f{{{numbers}}}.parquet"


def _write(directory: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(_DIFFERENT):
        sensors = rng.integers(0, KEYS, ROWS_PER_FILE)
        spread = np.sort(rng.integers(0, 10_000, ROWS_PER_FILE))
        jitter = rng.integers(-500, 500, ROWS_PER_FILE)
        table = pa.table(
            {
                "id": pa.array([f"sensor_{sensor}" for sensor in sensors]),
                "ts": pa.array(_FIRST_MILLIS + number * 10_000 + spread + jitter),
                "temp": pa.array(rng.normal(60, 10, ROWS_PER_FILE)),
            }
        )
        pq.write_table(table, directory / f"f{number:03d}.parquet", row_group_size=50_000)
    for number in range(_DIFFERENT, WARM_UP_FILES + FILES):
        os.link(
            directory / f"f{number % _DIFFERENT:03d}.parquet", directory / f"f{number:03d}.parquet"
        )
