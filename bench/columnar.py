"""Count and average per key and window by built-in functions: Penstock's columnar lane beside its
Python lane and Spark's own windowed aggregation on RocksDB."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import data
from bench.functions import COUNTED
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.timed_data import STEADY, timed_readings
from bench.window_functions import AVERAGED, CHECKSUM, SIZE_MILLIS, TUMBLING, checksum

_PYTHON, _COLUMNS, _SPARK = "window_job", "window_columns", "spark_windows"
_TITLES = {
    _PYTHON: "Penstock, Python functions",
    _COLUMNS: "Penstock, Columns and built-in aggregates",
    _SPARK: "Spark's groupBy(window, id), RocksDB, update mode",
}


class _Files(NamedTuple):
    """How many an engine reads: each warms up for about a minute, since the JVM goes on compiling
    for that long, and is then measured for about half of one."""

    cold: int
    warm: int

    @property
    def all(self) -> int:
        return self.cold + self.warm


@dataclass(frozen=True)
class _Size:
    rounds: int
    files: dict[str, _Files]
    files_per_epoch: int = 10


_USUAL = {_PYTHON: _Files(100, 60), _COLUMNS: _Files(400, 200), _SPARK: _Files(60, 40)}
_DEFAULT = _Size(3, _USUAL)
_QUICK = _Size(1, _USUAL)
_SMOKE = _Size(1, dict.fromkeys(_TITLES, _Files(1, 7)), files_per_epoch=1)


def measure(options: Options) -> Report:
    size = _SMOKE if options.smoke else _QUICK if options.quick else _DEFAULT
    found: dict[str, list[Result]] = {engine: [] for engine in _TITLES}
    for number in range(size.rounds):
        for engine, title in _TITLES.items():
            options.say(f"{title} (round {number + 1} of {size.rounds})")
            result = _measured(engine, size)
            _check(engine, result, size.files[engine].all)
            found[engine].append(result)
    return _report(found, size)


def _measured(engine: str, size: _Size) -> Result:
    files = size.files[engine]
    params: Params = {
        "kind": TUMBLING,
        "input": str(timed_readings(STEADY, files.all)),
        "files": files.all,
        "files_per_epoch": size.files_per_epoch,
        "cold_epochs": files.cold // size.files_per_epoch,
    }
    return run(f"bench.contenders.{engine}:run", params)


def _check(engine: str, result: Result, files: int) -> None:
    """That no record is missing, and that results are those of a direct computation."""
    rows = files * data.ROWS_PER_FILE
    assert result["records"] == rows, f"{engine} read {result['records']} of {rows} rows"
    expected = _expected(files)
    assert result["taken"] == expected, f"{engine}: {result['taken']}, not {expected}"


@cache
def _expected(files: int) -> dict[str, int]:
    """As the sink of the jobs tells it, by whole columns."""
    directory = timed_readings(STEADY, files)
    partial = [_sums(directory / f"f{number:03d}.parquet") for number in range(files)]
    whole = pa.concat_tables(partial).group_by(["id", "end"])
    sums = whole.aggregate([("number", "sum"), ("total", "sum")]).to_pydict()
    taken = {COUNTED: len(sums["id"]), AVERAGED: sum(sums["number_sum"]), CHECKSUM: 0}
    for sensor, end, number, total in zip(*sums.values(), strict=True):
        taken[CHECKSUM] += checksum((sensor, number, total / number), end - 1)
    return taken


def _sums(path: Path) -> pa.Table:
    readings = pq.read_table(path)
    times = readings["ts"].to_numpy()
    rows = pa.table(
        {
            "id": readings["id"],
            "end": pa.array(times - times % SIZE_MILLIS + SIZE_MILLIS),
            "temp": pc.add(readings["temp"], 0.25),
        }
    )
    sums = rows.group_by(["id", "end"]).aggregate([("temp", "count"), ("temp", "sum")])
    return sums.rename_columns(["id", "end", "number", "total"])


def _report(found: dict[str, list[Result]], size: _Size) -> Report:
    report = Report(
        "columnar",
        f"tumbling count and average by built-in functions, {data.KEYS:,} keys, Parquet rows",
        ("engine", "records/s, warm", "lowest–highest", "CPU µs/record", "windows", "runs"),
        raw=found,
    )
    rates = {e: [result["warm_rate"] for result in results] for e, results in found.items()}
    for engine, results in found.items():
        warm = rates[engine]
        report.rows.append(
            (
                _TITLES[engine],
                _thousands(median(warm)),
                f"{_thousands(min(warm))}–{_thousands(max(warm))}",
                f"{median(result['cpu_micros'] for result in results):.2f}",
                f"{results[0]['taken'][COUNTED]:,}",
                str(len(results)),
            )
        )
    columns = median(rates[_COLUMNS])
    report.goals += [
        Goal("columnar lane / Python lane", columns / median(rates[_PYTHON]), 5.0),
        Goal("columnar lane / Spark's own windows", columns / median(rates[_SPARK]), 3.0),
    ]
    rows = data.ROWS_PER_FILE
    shares = [result["cpu_micros_by_process"] for result in found[_COLUMNS]]
    split = ", ".join(f"{part} {median(s[part] for s in shares):.2f}" for part in shares[0])
    report.notes.append(f"Columnar lane: CPU µs/record: {split}.")
    sizes = ", ".join(
        f"{files.warm * rows / 1e6:g} after {files.cold * rows / 1e6:g} ({_TITLES[engine]})"
        for engine, files in size.files.items()
    )
    report.notes.append(
        f"Million rows, measured after those to warm up: {sizes}; "
        f"{size.files_per_epoch * rows:,} an epoch; the input of the benchmark of windows (steady "
        "keys), of which a key has about 120 in a window."
    )
    report.notes.append(
        "Results were compared with a direct computation: their number, the records in them, and a "
        "checksum over sensor, count, average and end of window. Spark's "
        "are taken to the driver in every batch."
    )
    return report


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f} k"
