"""Count and average per key and window by Python functions: Penstock beside a bare loop, tumbling
windows and sessions; and what sliding windows cost that overlap tenfold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench import data
from bench.functions import COUNTED
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.timed_data import BURSTS, STEADY, timed_readings
from bench.window_functions import (
    AVERAGED,
    SESSIONS,
    SIZE_MILLIS,
    SLIDE_MILLIS,
    SLIDING,
    TUMBLING,
)

_LOOP, _JOB = "window_loop", "window_job"
_PATTERNS = {TUMBLING: STEADY, SLIDING: STEADY, SESSIONS: BURSTS}
_OVERLAP = SIZE_MILLIS // SLIDE_MILLIS
_IN_WINDOWS = {TUMBLING: 1, SLIDING: _OVERLAP, SESSIONS: 1}
_TITLES = {
    TUMBLING: "tumbling, 1 min",
    SESSIONS: "sessions, gap 15 s",
    SLIDING: "sliding, 1 min by 6 s",
}
_INPUT_NOTE = (
    "Input: 20,000 readings per second of event time, out of order by up to a second. Steady keys "
    "for tumbling and sliding windows (about 120 readings per key and minute); for sessions each key "
    "is active for 20 s of every minute at its own place in it (about 120 readings), so that "
    "sessions close all the time."
)
_CHECK_NOTE = (
    "Every job's results were compared with the bare loop's over the same input: their number, the "
    "records in them (none late, none lost), and a checksum over sensor, count, average and end of "
    "window."
)
_LOOP_NOTE = (
    "The bare loop calls the same function objects, holds windows in dicts and follows the "
    "watermark with every record. Medians over the runs, which alternate; the loop reads all of "
    "the job's input in the first round, later less."
)


@dataclass(frozen=True)
class _Size:
    rounds: int
    cold: int
    """Files to warm up with."""
    warm: int
    sliding_cold: int
    """Fewer: they take longer, so the JVM has as much time to warm up."""
    sliding_warm: int
    loop_files: int
    """Of the bare loop from the second round on."""
    files_per_epoch: int = 4

    def files(self, kind: str) -> tuple[int, int]:
        """To warm up with, and in all."""
        if kind == SLIDING:
            return self.sliding_cold, self.sliding_cold + self.sliding_warm
        return self.cold, self.cold + self.warm


_DEFAULT = _Size(rounds=3, cold=100, warm=100, sliding_cold=20, sliding_warm=40, loop_files=24)
_QUICK = _Size(rounds=2, cold=60, warm=60, sliding_cold=12, sliding_warm=28, loop_files=24)
_SMOKE = _Size(1, cold=1, warm=7, sliding_cold=1, sliding_warm=4, loop_files=8, files_per_epoch=1)


def measure(options: Options) -> Report:
    size = _SMOKE if options.smoke else _QUICK if options.quick else _DEFAULT
    found: dict[str, dict[str, list[Result]]] = {
        engine: {kind: [] for kind in _TITLES} for engine in (_LOOP, _JOB)
    }
    for number in range(size.rounds):
        for kind, title in _TITLES.items():
            for engine in (_LOOP, _JOB):
                if engine == _LOOP and kind == SLIDING and number:
                    continue  # no goal is about it: once, to compare results
                options.say(f"{title}, {engine} (round {number + 1} of {size.rounds})")
                found[engine][kind].append(_measured(engine, kind, size, number))
            _check(kind, found[_LOOP][kind][0], found[_JOB][kind][-1], size)
    return _report(found, size)


def _measured(engine: str, kind: str, size: _Size, number: int) -> Result:
    cold, files = size.files(kind)
    if engine == _LOOP and number:
        files = min(files, size.loop_files)
    params: Params = {
        "kind": kind,
        "input": str(timed_readings(_PATTERNS[kind], files)),
        "files": files,
        "files_per_epoch": size.files_per_epoch,
        "cold_files": 1,  # of the loop: Python needs no warming up
        "cold_epochs": cold // size.files_per_epoch,
    }
    return run(f"bench.contenders.{engine}:run", params)


def _check(kind: str, loop: Result, job: Result, size: _Size) -> None:
    """That both gave the same, and that no record is missing in it."""
    _, files = size.files(kind)
    rows = files * data.ROWS_PER_FILE
    assert job["records"] == rows, f"{kind}: {job['records']} of {rows} rows were read"
    assert job["late"] == 0, f"{kind}: {job['late']} records were late"
    assert loop["taken"] == job["taken"], f"{kind}: {loop['taken']} but {job['taken']}"
    averaged = job["taken"][AVERAGED]
    wanted = rows * _IN_WINDOWS[kind]
    assert averaged == wanted, f"{kind}: {averaged} records in windows, not {wanted}"


def _report(found: dict[str, dict[str, list[Result]]], size: _Size) -> Report:
    report = Report(
        "windows",
        f"count and average, {data.KEYS:,} keys, {size.warm * data.ROWS_PER_FILE:,} Parquet rows",
        ("windows", "engine", "records/s, warm", "lowest–highest", "CPU µs/record", "fired", "runs"),
        raw=found,
    )
    for kind in _TITLES:
        for engine, title in ((_LOOP, "bare Python loop, 1 core"), (_JOB, "Penstock, 2 cores")):
            report.rows.append(_row(kind, title, found[engine][kind]))
    rates = {
        (engine, kind): median(result["warm_rate"] for result in results)
        for engine, kinds in found.items()
        for kind, results in kinds.items()
    }
    for kind in (TUMBLING, SESSIONS):
        ratio = rates[_JOB, kind] / rates[_LOOP, kind]
        report.goals.append(Goal(f"Penstock / bare loop, {kind}", ratio, 0.3))
    ratio = rates[_JOB, SLIDING] / rates[_JOB, TUMBLING]
    report.goals.append(Goal(f"sliding / tumbling, rates, overlap {_OVERLAP}", ratio, 0.25))
    loops = rates[_LOOP, SLIDING] / rates[_LOOP, TUMBLING]
    report.notes.append(f"The same ratio of the bare loops: {loops:.2f}.")
    for kind in _TITLES:
        report.notes.append(_about(kind, found[_JOB][kind]))
    report.notes += [_warm_note(size), _INPUT_NOTE, _CHECK_NOTE, _LOOP_NOTE]
    return report


def _row(kind: str, engine: str, results: list[Result]) -> tuple[str, ...]:
    warm = [result["warm_rate"] for result in results]
    return (
        _TITLES[kind],
        engine,
        _thousands(median(warm)),
        f"{_thousands(min(warm))}–{_thousands(max(warm))}",
        f"{median(result['cpu_micros'] for result in results):.2f}",
        f"{results[0]['taken'][COUNTED]:,}",
        str(len(results)),
    )


def _about(kind: str, results: list[Result]) -> str:
    shares = [result["cpu_micros_by_process"] for result in results]
    split = ", ".join(f"{part} {median(s[part] for s in shares):.2f}" for part in shares[0])
    fired = results[0]["taken"]
    return (
        f"Penstock, {kind}: CPU µs/record: {split}; {fired[COUNTED]:,} windows fired, in "
        f"{results[0]['epochs_that_fired']} epochs, of {fired[AVERAGED] / fired[COUNTED]:.0f} "
        "records each."
    )


def _warm_note(size: _Size) -> str:
    rows = {kind: size.files(kind) for kind in (TUMBLING, SLIDING)}
    parts = [
        f"{(files - cold) * data.ROWS_PER_FILE:,} rows after {cold * data.ROWS_PER_FILE:,}"
        for cold, files in rows.values()
    ]
    return (
        f"Warm: {parts[0]} to warm up; sliding: {parts[1]}; "
        f"{size.files_per_epoch * data.ROWS_PER_FILE:,} an epoch. Fired: by all rows, and at the "
        "end of the input, which no rate has in it."
    )


def _thousands(value: Any) -> str:
    return f"{value / 1000:,.0f} k"
