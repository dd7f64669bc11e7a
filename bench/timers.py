"""What it costs to fire some of many pending event-time timers: what fires, or what is pending?"""

from __future__ import annotations

import time
from typing import Any

from bench.functions import COUNTED
from bench.job_times import metric
from bench.jobs import session
from bench.measure import Goal, Options, Params, Report, Result, median, run
from bench.processes import cpu_seconds
from bench.timer_job import FIRE, NOTHING_DUE, REGISTER, STEPS, timer_job
from penstock.driver.epoch_report import EpochReport

_BACKENDS = ("hashmap", "rocksdb")
_LIMIT = 3.0
_GOALS = 3
_LOOK_SECONDS = 0.02
_NOTE = (
    "Round after round: an epoch fires timers, one registers as many anew behind all others, one "
    "moves time on and reaches none. A key has one timer. Those that fire were stored epochs "
    "before, unless as few are pending as fire. Per timer: what the firing epoch takes longer than "
    "the one with nothing due, and the difference of the Python workers' processor time. Medians; "
    "CPU: means. Epochs are counted by the timers that they fired, none more and none less."
)


def measure(options: Options) -> Report:
    many = 40_000 if options.smoke else 200_000 if options.quick else 1_000_000
    few = 2_000 if options.smoke else 10_000
    rounds = 4 if options.smoke else 12 if options.quick else 20
    cold = 1 if options.smoke else 15 if options.quick else 25
    cases = [(few, few), (many, few), (many, 10 * few)]
    report = Report(
        "timers",
        f"firing some of up to {many:,} pending event-time timers",
        (
            "backend, pending, fired",
            "fire, ms",
            "nothing due, ms",
            "register, ms",
            "µs/timer fired",
            "CPU µs/timer fired",
            "registered/s, at first",
        ),
        raw={},
    )
    for backend in _BACKENDS:
        found = []
        for pending, fired in cases:
            title = f"{backend}, {pending:,}, {fired:,}"
            options.say(title)
            params = {
                "backend": backend,
                "pending": pending,
                "fired": fired,
                "rounds": rounds,
                "cold_rounds": cold,
                # A million are more than a task keeps live by default; so are fewer then.
                "cache_entries": many // 5,
            }
            result = run("bench.timers:contender", params)
            report.raw[title] = result
            report.rows.append(_row(title, result))
            found.append(result)
        goals = _goals(backend, cases, found)
        report.goals += goals
        if len(goals) < _GOALS:
            report.notes.append(
                f"{backend}: of {_GOALS} goals {_GOALS - len(goals)} cannot be judged, since "
                "firing took no longer than not firing. The machine was busy, or fired too few."
            )
    report.notes.append(_NOTE)
    report.notes.append(f"{rounds} rounds, after {cold} to warm up.")
    return report


def _goals(backend: str, cases: list[tuple[int, int]], found: list[Result]) -> list[Goal]:
    few, many, tenfold = found
    (_, fired), (pending, _), (_, more) = cases
    compared = {
        f"epoch that fires {fired:,}: {pending:,} / {fired:,} pending": (
            many["millis"][FIRE],
            few["millis"][FIRE],
        ),
        f"CPU per timer: {pending:,} / {fired:,} pending": (
            many["cpu_micros_per_timer"],
            few["cpu_micros_per_timer"],
        ),
        f"CPU per timer: {more:,} / {fired:,} fired of {pending:,}": (
            tenfold["cpu_micros_per_timer"],
            many["cpu_micros_per_timer"],
        ),
    }
    return [
        Goal(f"{what}, {backend}", over / under, _LIMIT, at_least=False)
        for what, (over, under) in compared.items()
        if over > 0 and under > 0
    ]


def _row(title: str, result: Result) -> tuple[str, ...]:
    millis = result["millis"]
    return (
        title,
        *(f"{millis[step]:.0f}" for step in (FIRE, NOTHING_DUE, REGISTER)),
        f"{result['micros_per_timer']:.1f}",
        f"{result['cpu_micros_per_timer']:.1f}",
        f"{result['load_rate']:,.0f}",
    )


# In a process of its own


def contender(params: Params) -> Result:
    session()
    env = timer_job(params)
    ends: list[tuple[float, float, EpochReport]] = []
    env.add_epoch_listener(
        lambda report: ends.append((time.perf_counter(), cpu_seconds()["workers"], report))
    )
    running = env.execute_async("timers")
    rounds = params["cold_rounds"] + params["rounds"]
    # The last round must be whole.
    while _rounds_in(ends) <= rounds and not running.get_job_execution_result().done():
        time.sleep(_LOOK_SECONDS)
    running.cancel()
    if _rounds_in(ends) <= rounds:
        running.get_job_execution_result().result()
    first = next(at for at, (_, _, report) in enumerate(ends) if metric(report, COUNTED))
    seconds, cpu = _by_step(ends, first, params)
    millis = {step: median(seconds[step]) * 1000 for step in STEPS}
    mean_cpu = {step: sum(cpu[step]) / len(cpu[step]) for step in STEPS}
    return {
        "millis": millis,
        "seconds": seconds,
        "cpu_seconds": mean_cpu,
        "micros_per_timer": (millis[FIRE] - millis[NOTHING_DUE]) * 1000 / params["fired"],
        "cpu_micros_per_timer": (mean_cpu[FIRE] - mean_cpu[NOTHING_DUE]) * 1e6 / params["fired"],
        "load_rate": params["pending"] / (ends[first - 1][0] - ends[0][0] + ends[0][2].seconds),
    }


def _rounds_in(ends: list[Any]) -> int:
    return sum(metric(report, COUNTED) > 0 for _, _, report in list(ends))


def _by_step(
    ends: list[tuple[float, float, EpochReport]], first: int, params: Params
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds and the workers' CPU seconds of each kind of epoch, from the end of the one before.

    The first epoch that fired is at `first`.
    """
    seconds: dict[str, list[float]] = {step: [] for step in STEPS}
    cpu: dict[str, list[float]] = {step: [] for step in STEPS}
    for number in range(params["rounds"] * len(STEPS)):
        at = first + params["cold_rounds"] * len(STEPS) + number
        step = STEPS[number % len(STEPS)]
        fired = metric(ends[at][2], COUNTED)
        wanted = params["fired"] if step == FIRE else 0
        assert fired == wanted, f"an epoch with {step!r} fired {fired} timers, not {wanted}"
        seconds[step].append(ends[at][0] - ends[at - 1][0])
        cpu[step].append(ends[at][1] - ends[at - 1][1])
    return seconds, cpu
