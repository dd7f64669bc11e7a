"""Where a record's time goes inside the Python tasks, without Spark's transport between them.

``python -m bench.task_profile [--job tumbling] [--profile]`` runs the source task and the keyed
task of the keyed benchmark, or of one of the window benchmark's jobs, in this process and prints
the processor time per record; with ``--profile`` also what cProfile says about the last epoch. A
minute's window lasts six files, so the mean over the epochs has its firing in it, in its share.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import pyarrow.parquet as pq

from bench import data
from bench.contenders import window_job
from bench.functions import CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.jobs import PARALLELISM, environment, session
from bench.timed_data import timed_readings
from bench.windows import PATTERNS
from penstock.datastream.connectors._arrow_columns import column_values
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.operators.sources import SourceRecords
from penstock.runtime.payload import Row
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.tasks import run_spark_source, run_stage

_KEYED = "keyed"
_LINES = 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--job", choices=[_KEYED, *PATTERNS], default=_KEYED)
    parser.add_argument("--files", type=int, help="3; for windows 16")
    parser.add_argument("--files-per-epoch", type=int, help="1; for windows 4, as is measured")
    args = parser.parse_args()
    files = args.files or (3 if args.job == _KEYED else 16)
    at_once = args.files_per_epoch or (1 if args.job == _KEYED else 4)
    pattern = PATTERNS.get(args.job)
    directory = str(timed_readings(pattern, files) if pattern else data.readings())
    spent = _Spent()
    with tempfile.TemporaryDirectory() as scratch:
        plan = _plan(scratch, args.job, directory)
        paths = data.files_of(directory, files)
        for epoch, first in enumerate(range(0, files, at_once)):
            last = first + at_once >= files
            _epoch(plan, epoch, paths[first : first + at_once], args.profile and last, spent)
    print("\nmean of the epochs after the first, without a profiled one:")
    for what, nanos in spent.items():
        print(f"{what:40} {mean(nanos[1:] or nanos):8.0f} ns per record")


def _plan(scratch: str, job: str, directory: str) -> PhysicalPlan:
    env = environment({"scratch": scratch})
    frame = session().readStream.schema(data.SCHEMA).parquet(directory)
    readings = env.from_spark(frame, record_type=tuple, bounded=True)
    if job == _KEYED:
        keyed = readings.map(ToFahrenheit()).key_by(sensor_of)
        keyed.process(CountAndSum()).add_sink(CountingSink())
    else:
        window_job.build(readings, job)
    plan: PhysicalPlan = env._plan()
    return plan


class _Spent(dict[str, list[float]]):
    """Nanoseconds per record of each part, epoch by epoch."""

    records = 0
    """Of the epoch at hand."""


def _epoch(plan: PhysicalPlan, epoch: int, paths: list[str], profile: bool, spent: _Spent) -> None:
    # No base is read: instances go on from the epoch before, since they find their own tokens.
    order = EpochOrder(epoch, None, int(time.time() * 1000), tokens=_Any())
    spent.records = len(paths) * data.ROWS_PER_FILE
    batches = _measured(
        spent,
        "read Parquet",
        lambda: [b for path in paths for b in pq.ParquetFile(path).iter_batches()],
        False,
    )
    records = _measured(
        spent,
        "Arrow to tuples",
        lambda: [
            SourceRecords(
                batch.num_rows, None, list(zip(*map(column_values, batch.columns), strict=True))
            )
            for batch in batches
        ],
        profile,
    )
    source = plan.at_level(0)[0]
    rows: list[Row] = _measured(
        spent,
        "source task",
        lambda: _flat(run_spark_source(plan, source, 0, order, records)),
        profile,
    )
    for partition in range(PARALLELISM):
        mine = [row for row in rows if row.partition == partition]
        _measured(
            spent,
            f"keyed task {partition} (half of the records)",
            lambda partition=partition, mine=mine: _flat(  # type: ignore[misc]
                run_stage(plan, 1, partition, order, mine)
            ),
            profile,
        )


class _Any(dict[str, str]):
    """Agrees to whatever instance there is."""

    def get(self, key: str, default: Any = None) -> Any:
        return _Same()


class _Same:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _flat(groups: Iterator[list[Row]]) -> list[Row]:
    return [row for group in groups for row in group]


def _measured(spent: _Spent, what: str, call: Callable[[], Any], profile: bool) -> Any:
    profiler = cProfile.Profile() if profile else None
    started = time.process_time()
    result = profiler.runcall(call) if profiler else call()
    nanos = (time.process_time() - started) / spent.records * 1e9
    if not profile:  # which makes it slower
        spent.setdefault(what, []).append(nanos)
    print(f"{what:40} {nanos:8.0f} ns per record")
    if profiler:
        stats = pstats.Stats(profiler)
        stats.sort_stats("tottime").print_stats(_LINES)
    return result


if __name__ == "__main__":
    main()
