"""Records per second through map, key_by and a keyed process function that updates its state with
every record: Penstock beside a bare loop and beside Spark's transformWithState."""

from __future__ import annotations

import importlib.util
from typing import Any

from bench import data
from bench.measure import Goal, Options, Params, Report, Result, median, run

_BARE, _PENSTOCK, _FROM_SPARK, _SPARK = (
    "bare_loop:run",
    "penstock_job:run_file_source",
    "penstock_job:run",
    "transform_with_state:run",
)
_TITLES = {
    _BARE: "bare Python loop, 1 core",
    _PENSTOCK: "Penstock, FileSource, 2 cores",
    _FROM_SPARK: "Penstock, from_spark, 2 cores",
    _SPARK: "transformWithState, 2 cores",
}
_FILES_PER_EPOCH = 4
_COLD_EPOCHS = data.WARM_UP_FILES // _FILES_PER_EPOCH
_BARE_FILES = 20
_SPARK_FILES_PER_EPOCH = 2
_SPARK_COLD_EPOCHS = 1
_WARM_NOTE = (
    f"Warm: the {data.FILES * data.ROWS_PER_FILE:,} rows after "
    f"{data.WARM_UP_FILES * data.ROWS_PER_FILE:,} to warm up ({_COLD_EPOCHS} epochs), since the "
    f"JVM goes on compiling for so long; as many as it takes for the state's files to be rewritten "
    f"once. transformWithState: fewer rows, after "
    f"{_SPARK_COLD_EPOCHS} epoch; bare loop: after one. Medians over the runs, which alternate."
)
_START_NOTE = "With start: all rows, from execute() to its return, without starting the JVM."
_CPU_NOTE = (
    "CPU: of driver, JVM and workers together, over the warm part. It suffers less than the rates "
    "from other work on the machine."
)


def measure(options: Options) -> Report:
    options.say("making the input")
    base = {
        "input": str(data.readings()),
        "files": data.WARM_UP_FILES + data.FILES,
        "files_per_epoch": _FILES_PER_EPOCH,
        "cold_epochs": _COLD_EPOCHS,
    }
    rounds = 2 if options.quick else 5
    found: dict[str, list[Result]] = {name: [] for name in _TITLES}
    for number in range(rounds):
        for name, title in _TITLES.items():
            # Spark's is slow and steady: a smaller input, and not in every round.
            if name == _SPARK and (not _has_protobuf() or number % 2):
                continue
            options.say(f"{title} (round {number + 1} of {rounds})")
            found[name].append(_measured(name, base, options))
    return _report(found)


def _measured(name: str, base: Params, options: Options) -> Result:
    params = dict(base)
    if name == _BARE:  # Python needs no warming up
        params["files"] = _BARE_FILES + _FILES_PER_EPOCH
        params["cold_epochs"] = 1
    if name == _SPARK:
        params["files"] = (2 if options.quick else 3) * _SPARK_FILES_PER_EPOCH
        params["files_per_epoch"] = _SPARK_FILES_PER_EPOCH
        params["cold_epochs"] = _SPARK_COLD_EPOCHS
    result = run(f"bench.contenders.{name}", params)
    expected = params["files"] * data.ROWS_PER_FILE
    assert result["outputs"] == expected, f"{name} gave {result['outputs']} of {expected}"
    return result


def _has_protobuf() -> bool:
    try:
        return importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


def _report(found: dict[str, list[Result]]) -> Report:
    report = Report(
        "keyed_process",
        f"{data.KEYS:,} keys, {data.FILES * data.ROWS_PER_FILE:,} Parquet rows",
        ("engine", "records/s, warm", "lowest–highest", "with start", "CPU µs/record", "runs"),
        raw=found,
    )
    for name, results in found.items():
        if results:
            report.rows.append(_row(name, results))
    rates = {n: median(r["warm_rate"] for r in results) for n, results in found.items() if results}
    report.goals += [
        Goal("Penstock, FileSource / bare loop", rates[_PENSTOCK] / rates[_BARE], 1.0),
        Goal("Penstock, from_spark / bare loop", rates[_FROM_SPARK] / rates[_BARE], 0.5),
    ]
    if _SPARK in rates:
        ratio = rates[_FROM_SPARK] / rates[_SPARK]
        report.goals.append(Goal("Penstock, from_spark / transformWithState", ratio, 8))
    else:
        report.notes.append("transformWithState was left out: it needs `pip install protobuf`.")
    for name in (_PENSTOCK, _FROM_SPARK):
        shares = [result["cpu_micros_by_process"] for result in found[name]]
        split = ", ".join(f"{kind} {median(s[kind] for s in shares):.2f}" for kind in shares[0])
        report.notes.append(f"{_TITLES[name]}: CPU µs/record: {split}.")
    report.notes += [_WARM_NOTE, _START_NOTE, _CPU_NOTE]
    return report


def _row(name: str, results: list[Result]) -> tuple[str, ...]:
    warm = [result["warm_rate"] for result in results]
    return (
        _TITLES[name],
        _thousands(median(warm)),
        f"{_thousands(min(warm))}–{_thousands(max(warm))}",
        _thousands(median(result["rate"] for result in results)),
        f"{median(result['cpu_micros'] for result in results):.2f}",
        str(len(results)),
    )


def _thousands(value: Any) -> str:
    return f"{value / 1000:,.0f} k"
