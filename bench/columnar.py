"""Count and average per key and window by built-in functions: Penstock's columnar lane beside its
Python lane and Spark's own windowed aggregation on RocksDB."""

from __future__ import annotations

from dataclasses import dataclass

from bench import data
from bench.functions import COUNTED
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.timed_data import STEADY, timed_readings
from bench.window_functions import AVERAGED, TUMBLING

_PYTHON, _COLUMNS, _SPARK = "window_job", "window_columns", "spark_windows"
_TITLES = {
    _PYTHON: "Penstock, Python functions",
    _COLUMNS: "Penstock, Columns and built-in aggregates",
    _SPARK: "Spark's groupBy(window, id), RocksDB, update mode",
}


@dataclass(frozen=True)
class _Size:
    rounds: int
    cold: int
    """Files to warm up with."""
    warm: int
    files_per_epoch: int = 4


_DEFAULT = _Size(rounds=3, cold=100, warm=100)
_QUICK = _Size(rounds=2, cold=60, warm=60)
_SMOKE = _Size(1, cold=1, warm=7, files_per_epoch=1)


def measure(options: Options) -> Report:
    size = _SMOKE if options.smoke else _QUICK if options.quick else _DEFAULT
    found: dict[str, list[Result]] = {engine: [] for engine in _TITLES}
    for number in range(size.rounds):
        for engine, title in _TITLES.items():
            options.say(f"{title} (round {number + 1} of {size.rounds})")
            found[engine].append(_measured(engine, size))
        _check({engine: results[-1] for engine, results in found.items()}, size)
    return _report(found, size)


def _measured(engine: str, size: _Size) -> Result:
    files = size.cold + size.warm
    params: Params = {
        "kind": TUMBLING,
        "input": str(timed_readings(STEADY, files)),
        "files": files,
        "files_per_epoch": size.files_per_epoch,
        "cold_epochs": size.cold // size.files_per_epoch,
    }
    return run(f"bench.contenders.{engine}:run", params)


def _check(results: dict[str, Result], size: _Size) -> None:
    """That all gave the same, and that no record is missing in it."""
    rows = (size.cold + size.warm) * data.ROWS_PER_FILE
    for engine, result in results.items():
        assert result["records"] == rows, f"{engine} read {result['records']} of {rows} rows"
        taken = result["taken"]
        assert taken[AVERAGED] == rows, (
            f"{engine}: {taken[AVERAGED]} records in windows, not {rows}"
        )
        assert taken == results[_PYTHON]["taken"], f"{engine}: {taken}"


def _report(found: dict[str, list[Result]], size: _Size) -> Report:
    report = Report(
        "columnar",
        f"tumbling count and average by built-in functions, {data.KEYS:,} keys, "
        f"{size.warm * data.ROWS_PER_FILE:,} Parquet rows",
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
    shares = [result["cpu_micros_by_process"] for result in found[_COLUMNS]]
    split = ", ".join(f"{part} {median(s[part] for s in shares):.2f}" for part in shares[0])
    report.notes.append(f"Columnar lane: CPU µs/record: {split}.")
    report.notes.append(
        f"Warm: {size.warm * data.ROWS_PER_FILE:,} rows after {size.cold * data.ROWS_PER_FILE:,} "
        f"to warm up, {size.files_per_epoch * data.ROWS_PER_FILE:,} an epoch; the input of the "
        "benchmark of windows (steady keys)."
    )
    report.notes.append(
        "Results were compared: their number, the records in them, and a checksum over sensor, "
        "count, average and end of window. Spark's are taken to the driver in every batch."
    )
    return report


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f} k"
