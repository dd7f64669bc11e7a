"""How old a record is when its result is there, at several rates: a Python source through a map, an
exchange and a function that updates its key's state, to a sink."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from bench.functions import Reading, ToFahrenheit, sensor_of
from bench.jobs import environment, session
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.paced import ARRIVED, CREATED, AgeSink, PacedSource
from penstock.common.typeinfo import Types
from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import ValueStateDescriptor
from penstock.driver.epoch_report import EpochReport

_SENSORS = 10_000
_RATES = (1_000, 10_000, 100_000)
_GOAL_RATE = 10_000
_QUANTILES = (0.5, 0.95, 0.99)
_PATIENCE_MILLIS = 60_000


def measure(options: Options) -> Report:
    params = {"cold": 45.0, "seconds": 60.0}
    if options.quick:
        params = {"cold": 30.0, "seconds": 20.0}
    if options.smoke:
        params = {"cold": 3.0, "seconds": 3.0}
    found: dict[int, Result] = {}
    for rate in (_GOAL_RATE,) if options.smoke else _RATES:
        options.say(f"{rate:,} records a second")
        found[rate] = run("bench.latency:contender", {**params, "rate": rate})
    report = Report(
        "latency",
        "from a record's creation to its result, ms",
        (
            "records/s",
            *(f"committed p{q * 100:.0f}" for q in _QUANTILES),
            *(f"at the sink p{q * 100:.0f}" for q in _QUANTILES),
            "an epoch",
            "records/epoch",
            "fixed cost",
        ),
        raw=found,
    )
    for rate, result in found.items():
        ages = [*result["committed"], *result["arrived"]]
        report.rows.append(
            (
                f"{rate:,}" if result["kept_up"] else f"{rate:,} (does not keep up)",
                *(f"{age:.0f}" for age in ages),
                f"{result['epoch'] * 1000:.0f}",
                f"{result['records']:.0f}",
                f"{result['fixed_share'] * 100:.0f} %",
            )
        )
    measured = found[_GOAL_RATE]["committed"][0]
    what = f"latency at {_GOAL_RATE:,} records a second, committed, p50"
    report.goals.append(Goal(what, measured, 300, at_least=False, unit=" ms"))
    report.notes.append(
        f"Records of {params['seconds']:g} s, after {params['cold']:g} s to warm up. Committed: "
        "the epoch's checkpoint is durable, and transactional sinks have committed. At the sink: "
        "its function is called. Fixed cost: of an epoch, what is no work on records."
    )
    return report


def contender(params: Params) -> Result:
    session()
    env = environment(params)
    (
        env.from_source(PacedSource(params["rate"], _SENSORS))
        .map(ToFahrenheit())
        .key_by(sensor_of)
        .process(CountUp())
        .add_sink(AgeSink())
    )
    ends: list[tuple[float, EpochReport]] = []
    env.add_epoch_listener(lambda report: ends.append((time.time() * 1000, report)))
    running = env.execute_async("latency")
    ended = running.get_job_execution_result()
    while not ends and not ended.done():
        time.sleep(0.05)
    first = time.time() * 1000 + params["cold"] * 1000
    last = first + params["seconds"] * 1000
    # Until all records of that time are there, or the job has fallen far behind.
    while not _seen(ends, last) and time.time() * 1000 < last + _PATIENCE_MILLIS:
        if ended.done():
            ended.result()
        time.sleep(0.1)
    kept_up = _seen(ends, last)
    running.cancel()
    return {**_result(ends, first, last), "kept_up": kept_up}


class CountUp(KeyedProcessFunction):
    """Updates the key's state for every record, and sends the record on with it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(
        self, value: Reading, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, int, int]]:
        count = (self._state.value() or 0) + 1
        self._state.update(count)
        yield value[0], value[1], count


def _seen(ends: list[tuple[float, EpochReport]], last: float) -> bool:
    return bool(ends) and max(_counts(ends[-1][1], CREATED), default=0) >= last


def _result(ends: list[tuple[float, EpochReport]], first: float, last: float) -> Result:
    committed: Counter[int] = Counter()
    arrived: Counter[int] = Counter()
    lengths, records, shares = [], [], []
    for (begin, _), (end, report) in pairwise(ends):
        created = _counts(report, CREATED)
        inside = {at: n for at, n in created.items() if first <= at < last}
        for at, count in inside.items():
            committed[int(end) - at] += count
        if inside and len(inside) == len(created):
            arrived.update(_counts(report, ARRIVED))
            lengths.append((end - begin) / 1000)
            records.append(sum(created.values()))
            if report.cost is not None:
                shares.append(report.cost.fixed_share)
    return {
        "committed": [_quantile(committed, q) for q in _QUANTILES],
        "arrived": [_quantile(arrived, q) for q in _QUANTILES],
        "counted": sum(committed.values()),
        "epoch": median(lengths or [0.0]),
        "records": median(records or [0]),
        "fixed_share": median(shares or [0.0]),
        "epochs": len(lengths),
    }


def _counts(report: EpochReport, name: str) -> Counter[int]:
    found: Counter[int] = Counter()
    for group in report.metrics.values():
        for metrics in group:
            for key, value in metrics.items():
                if key.rpartition(".")[2] == name:
                    found.update(value)
    return found


def _quantile(counts: Counter[int], share: float) -> float:
    """The least age that so many records do not exceed."""
    wanted = share * sum(counts.values())
    seen: Any = 0
    for age in sorted(counts):
        seen += counts[age]
        if seen >= wanted:
            return float(age)
    return 0.0
