"""How costs grow: with cores, keys, state, overlap of windows, operators, change; and recovery.

Each as a plot with the line that is expected beside what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench import restart
from bench.measure import Goal, Options, Params, Report, Result, median, run, scratch
from bench.plots import Line, Plot

_JOBS = "bench.scaling_jobs"
_CORES = 2
_MB = 1_000_000
_PAYLOAD = 1000
_RECOVERED_PAYLOAD = 100
_CHANGED = 0.01


@dataclass(frozen=True)
class _Size:
    rows: int
    """Of an epoch."""
    cold: int
    warm: int
    rounds: int
    keys: tuple[int, ...]
    operators: tuple[int, ...]
    overlaps: tuple[int, ...]
    apart: tuple[int, ...]
    """Overlaps of windows that are each kept by itself."""
    states: tuple[int, ...]
    """Keys of a thousand bytes each."""
    changes: tuple[float, ...]
    """Parts of the state that an epoch changes."""
    touches: int
    recovered: tuple[int, ...]
    """Keys of a hundred bytes each."""


_DEFAULT = _Size(
    rows=500_000,
    cold=8,
    warm=8,
    rounds=2,
    keys=(1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    operators=(1, 2, 4, 8, 16),
    overlaps=(1, 2, 5, 10, 20),
    apart=(5, 20),
    states=(10_000, 100_000, 1_000_000),
    changes=(0.001, _CHANGED, 0.1),
    touches=14,
    recovered=(10_000, 100_000, 1_000_000),
)
_QUICK = _Size(
    rows=250_000,
    cold=6,
    warm=6,
    rounds=1,
    keys=(1_000, 100_000, 1_000_000),
    operators=(1, 4, 16),
    overlaps=(1, 5, 20),
    apart=(20,),
    states=(10_000, 100_000),
    changes=(0.001, _CHANGED, 0.1),
    touches=10,
    recovered=(10_000, 300_000),
)
_SMOKE = _Size(
    rows=20_000,
    cold=1,
    warm=2,
    rounds=1,
    keys=(100, 10_000),
    operators=(1, 4),
    overlaps=(1, 5),
    apart=(5,),
    states=(2_000, 4_000),
    changes=(_CHANGED, 0.1),
    touches=3,
    recovered=(1_000, 5_000),
)


@dataclass
class _Run:
    """One run of the benchmark: how much, whom to tell, what was found."""

    size: _Size
    options: Options
    report: Report
    raw: dict[str, Result] = field(default_factory=dict)

    def add(self, what: str, at: str, measured: str, expected: str) -> None:
        self.report.rows.append((what, at, measured, expected))

    def job(self, title: str, name: str, params: Params, rounds: int = 1) -> Result:
        """The run in the middle of several, by processor time if there is one."""
        found = []
        for number in range(rounds):
            self.options.say(f"{title} (round {number + 1} of {rounds})")
            found.append(run(f"{_JOBS}:{name}", params))
        found.sort(key=lambda result: result.get("cpu_micros", 0.0))
        self.raw[title] = found[len(found) // 2]
        return self.raw[title]

    def counting(self, title: str, rounds: int = 1, **params: int) -> Result:
        size = self.size
        wanted = {"cores": _CORES, "keys": 10_000, "operators": 1, **params}
        # All keys are met once before anything is measured.
        cold = size.cold + math.ceil(wanted["keys"] / size.rows)
        epochs = {"rows": size.rows, "cold_epochs": cold, "epochs": size.warm}
        return self.job(title, "counting", {**wanted, **epochs}, rounds)


def measure(options: Options) -> Report:
    size = _SMOKE if options.smoke else _QUICK if options.quick else _DEFAULT
    report = Report(
        "scaling",
        "what costs depend on, and what was expected",
        ("what", "at", "measured", "expected"),
    )
    this = _Run(size, options, report)
    report.plots += [
        _cores(this),
        _keys(this),
        _operators(this),
        _overlap(this),
        *_snapshots(this),
        _recovery(this),
    ]
    report.raw = this.raw
    report.notes += [_COUNTING_NOTE, _CORES_NOTE, _STATE_NOTE]
    return report


_COUNTING_NOTE = (
    "Counting: numbers from Spark, one or more maps, a keyed count with an update per record, a "
    "checkpoint every epoch. CPU: driver, JVM and workers together, over the epochs behind those "
    "to warm up with, in which all keys have been met."
)
_CORES_NOTE = "Cores: all processes of a run are bound to so many of them, with as many subtasks."
_STATE_NOTE = (
    "Snapshots: values of 1,000 random bytes; an epoch's bytes are those of its segments, its time "
    "that from the commit before to its own. Recovery: from the start of a process after kill -9, "
    "its local store deleted, to the first commit."
)


def _cores(this: _Run) -> Plot:
    rates = [
        (float(cores), this.counting(f"{cores} core(s)", this.size.rounds, cores=cores)["rate"])
        for cores in range(1, _CORES + 1)
    ]
    one = rates[0][1]
    for cores, rate in rates:
        expected = f"{one * cores:,.0f} records/s"
        this.add("cores", f"{cores:.0f}", f"{rate:,.0f} records/s", expected)
    line = Line("in proportion", [(cores, one * cores) for cores, _ in rates], expected=True)
    return Plot(
        "scaling-cores",
        "Records per second, by cores",
        "cores",
        "records/s",
        [Line("keyed count", rates), line],
        log_x=False,
    )


def _keys(this: _Run) -> Plot:
    costs = [
        (float(keys), this.counting(f"{keys:,} keys", keys=keys)["cpu_micros"])
        for keys in this.size.keys
    ]
    return _flat(this, "keys", costs, "Cost of a record, by number of keys", "keys")


def _flat(this: _Run, what: str, costs: list[tuple[float, float]], title: str, x: str) -> Plot:
    """Something that should not depend on it at all."""
    first = costs[0][1]
    for at, cost in costs:
        this.add(what, f"{at:,.0f}", f"{cost:.2f} CPU µs/record", f"{first:.2f}")
    line = Line("as with the fewest", [(at, first) for at, _ in costs], expected=True)
    return Plot(f"scaling-{what}", title, x, "CPU µs/record", [Line("keyed count", costs), line])


def _operators(this: _Run) -> Plot:
    found = {n: this.counting(f"{n} operators", operators=n) for n in this.size.operators}
    costs = [(float(n), result["cpu_micros"]) for n, result in found.items()]
    each = median(result["bare_map_micros"] for result in found.values())
    expected = [(n, costs[0][1] + (n - costs[0][0]) * each) for n, _ in costs]
    for (n, cost), (_, wanted) in zip(costs, expected, strict=True):
        this.add("operators in a chain", f"{n:.0f}", f"{cost:.2f} CPU µs/record", f"{wanted:.2f}")
    line = Line(f"a bare generator each, {each:.3f} µs", expected, expected=True)
    return Plot(
        "scaling-operators",
        "Cost of a record, by number of maps in a chain",
        "maps",
        "CPU µs/record",
        [Line("keyed count", costs), line],
        log_x=False,
    )


def _overlap(this: _Run) -> Plot:
    size = this.size
    fixed = {
        "cores": _CORES,
        "keys": 10_000,
        "rows": size.rows,
        "cold_epochs": size.cold,
        "epochs": size.warm,
    }

    def costs(overlaps: tuple[int, ...], slices: bool) -> Iterator[tuple[float, float]]:
        for overlap in overlaps:
            kind = "slices" if slices else "windows apart"
            params = {**fixed, "overlap": overlap, "slices": slices}
            found = this.job(f"overlap {overlap}, {kind}", "windows", params)
            yield float(overlap), found["cpu_micros"]

    sliced = list(costs(size.overlaps, True))
    apart = [sliced[0], *costs(size.apart, False)]
    first = sliced[0][1]
    for overlap, cost in sliced:
        this.add("window overlap", f"{overlap:.0f}", f"{cost:.2f} CPU µs/record", f"{first:.2f}")
    for overlap, cost in apart[1:]:
        told = f"{overlap:.0f}, each window by itself"
        this.add("window overlap", told, f"{cost:.2f} CPU µs/record", "grows with it")
    return Plot(
        "scaling-overlap",
        "Cost of a record, by how many windows it is in",
        "windows that overlap",
        "CPU µs/record",
        [
            Line("put together from slices", sliced),
            Line("each by itself", apart),
            Line("as without overlap", [(at, first) for at, _ in sliced], expected=True),
        ],
        log_x=False,
    )


def _snapshots(this: _Run) -> list[Plot]:
    """Bytes and time of an epoch: over the size of the state, and over the part that it changes."""
    size = this.size
    by_state = {keys: _touched(this, keys, _CHANGED) for keys in size.states}
    middle = size.states[min(1, len(size.states) - 1)]
    by_change = {
        change: by_state[middle] if change == _CHANGED else _touched(this, middle, change)
        for change in size.changes
    }
    for keys, found in by_state.items():
        part = found["epoch_bytes"] / found["state_bytes"]
        told = f"{keys * _PAYLOAD / _MB:,.0f} MB, {_CHANGED:.0%} changed"
        measured = f"{part:.2%} of its bytes, {found['epoch_seconds'] * 1000:.0f} ms"
        this.add("snapshot", told, measured, f"{_CHANGED:.0%} of its bytes")
    largest = by_state[size.states[-1]]
    _goals(this, size.states[-1] * _PAYLOAD, largest)
    this.add(
        "snapshot beside an image",
        f"{size.states[-1] * _PAYLOAD / _MB:,.0f} MB",
        f"{largest['epochs_beside_an_image']} epochs while {largest['images']} were made",
        "epochs go on",
    )
    for change, found in by_change.items():
        told = f"{middle * _PAYLOAD / _MB:,.0f} MB, {change:.1%} changed"
        measured = f"{found['epoch_bytes'] / _MB:.2f} MB, {found['epoch_seconds'] * 1000:.0f} ms"
        this.add("snapshot", told, measured, f"{change * found['state_bytes'] / _MB:.2f} MB")
    return [*_by_state(by_state), *_by_change(by_change)]


def _touched(this: _Run, keys: int, change: float) -> Result:
    params = {
        "cores": _CORES,
        "backend": "hashmap",
        "keys": keys,
        "payload": _PAYLOAD,
        "touched": max(2, int(keys * change)),
        "rounds": this.size.touches,
        "load": min(keys, 50_000),
        "cache_entries": 20_000,
    }
    return this.job(f"{keys:,} keys, {change:.1%} changed", "touching", params)


def _goals(this: _Run, state: int, found: Result) -> None:
    part = found["epoch_bytes"] / found["state_bytes"]
    title = f"{_CHANGED:.0%} of {state / _MB:,.0f} MB changed"
    this.report.goals.append(
        Goal(f"{title}: the epoch's bytes, of the state's", part, 0.02, at_least=False)
    )
    if found["images"]:
        beside = float(found["epochs_beside_an_image"])
        this.report.goals.append(Goal(f"{title}: epochs committed beside an image", beside, 1))
    if found["seconds_beside"] and found["seconds_alone"]:
        ratio = median(found["seconds_beside"]) / median(found["seconds_alone"])
        this.report.notes.append(
            f"{title}: an epoch beside an image took {ratio:.2f} times as long as one without, on "
            f"{_CORES} cores that the image's process shares."
        )


def _by_state(found: dict[int, Result]) -> Iterator[Plot]:
    sizes = [result["state_bytes"] / _MB for result in found.values()]
    wrote = [result["epoch_bytes"] / _MB for result in found.values()]
    millis = [result["epoch_seconds"] * 1000 for result in found.values()]
    yield Plot(
        "scaling-snapshot-bytes",
        f"What an epoch writes that changes {_CHANGED:.0%} of the state",
        "state, MB",
        "written, MB",
        [
            Line("epoch", list(zip(sizes, wrote, strict=True))),
            Line(f"{_CHANGED:.0%} of it", [(s, s * _CHANGED) for s in sizes], expected=True),
            Line("goal: 2 %", [(s, s * 0.02) for s in sizes], expected=True),
        ],
        log_y=True,
    )
    yield Plot(
        "scaling-snapshot-time",
        f"How long an epoch takes that changes {_CHANGED:.0%} of the state",
        "state, MB",
        "epoch, ms",
        [
            Line("epoch", list(zip(sizes, millis, strict=True))),
            _fixed_and_proportional(sizes, millis),
        ],
    )


def _by_change(found: dict[float, Result]) -> Iterator[Plot]:
    changes = [change * 100 for change in found]
    wrote = [result["epoch_bytes"] / _MB for result in found.values()]
    whole = [result["state_bytes"] / _MB for result in found.values()]
    expected = [(c, c / 100 * mb) for c, mb in zip(changes, whole, strict=True)]
    title = f"{whole[0]:,.0f} MB of state"
    yield Plot(
        "scaling-change-bytes",
        f"What an epoch writes, by the part of {title} that it changes",
        "changed, %",
        "written, MB",
        [
            Line("epoch", list(zip(changes, wrote, strict=True))),
            Line("that part", expected, expected=True),
        ],
        log_y=True,
    )
    millis = [result["epoch_seconds"] * 1000 for result in found.values()]
    yield Plot(
        "scaling-change-time",
        f"How long an epoch takes, by the part of {title} that it changes",
        "changed, %",
        "epoch, ms",
        [
            Line("epoch", list(zip(changes, millis, strict=True))),
            _fixed_and_proportional(changes, millis),
        ],
    )


def _fixed_and_proportional(xs: list[float], ys: list[float]) -> Line:
    """A straight line through the smallest and the largest: is what lies between on it?"""
    slope = (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if len(xs) > 1 else 0.0
    points = [(x, ys[0] + (x - xs[0]) * slope) for x in xs]
    return Line("fixed + in proportion", points, expected=True)


def _recovery(this: _Run) -> Plot:
    sizes: list[float] = []
    whole: list[float] = []
    own: list[float] = []
    for keys in this.size.recovered:
        this.options.say(f"recovery of {keys:,} keys")
        found = _recovered(keys, this.size.rounds)
        this.raw[f"recovery of {keys:,} keys"] = {"rounds": found}
        sizes.append(keys * _RECOVERED_PAYLOAD / _MB)
        whole.append(median(result["seconds"] for result in found))
        own.append(median(result["seconds"] - result["session"] for result in found))
    expected = _fixed_and_proportional(sizes, whole)
    for megabytes, seconds, after, (_, line) in zip(
        sizes, whole, own, expected.points, strict=True
    ):
        measured = f"{seconds:.1f} s, {after:.1f} of them after the session"
        this.add("recovery", f"{megabytes:,.1f} MB", measured, f"{line:.1f} s")
    return Plot(
        "scaling-recovery",
        "From start after kill -9, store lost, to the first commit",
        "state, MB of values",
        "seconds",
        [
            Line("all", list(zip(sizes, whole, strict=True))),
            Line("behind the session's start", list(zip(sizes, own, strict=True))),
            expected,
        ],
    )


def _recovered(keys: int, rounds: int) -> list[Result]:
    with scratch() as directory:
        params: Params = {
            "backend": "hashmap",
            "keys": keys,
            "payload": _RECOVERED_PAYLOAD,
            "touched": 100,
            "rounds": 1 << 30,
            "scratch": str(directory),
        }
        restart.fill_and_kill(params, directory)
        return [restart.resume(params, directory, forget=True) for _ in range(rounds)]
