"""Where a record's time goes inside the Python tasks, without Spark's transport between them.

``python -m bench.task_profile [--profile]`` runs the source task and the keyed task of the keyed
benchmark in this process and prints the processor time per record; with ``--profile`` also what
cProfile says about each.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq

from bench import data
from bench.functions import CountAndSum, CountingSink, ToFahrenheit, sensor_of
from bench.jobs import PARALLELISM, environment, session
from penstock.driver.spark_stages import column_values
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.payload import Row
from penstock.runtime.physical import PhysicalPlan
from penstock.runtime.tasks import run_spark_source, run_stage

_LINES = 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--files", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        plan = _plan(scratch)
        for epoch, path in enumerate(data.files_of(str(data.readings()), args.files)):
            _epoch(plan, epoch, path, args.profile and epoch == args.files - 1)


def _plan(scratch: str) -> PhysicalPlan:
    env = environment({"scratch": scratch})
    frame = session().readStream.schema(data.SCHEMA).parquet(str(data.readings()))
    (
        env.from_spark(frame, record_type=tuple, bounded=True)
        .map(ToFahrenheit())
        .key_by(sensor_of)
        .process(CountAndSum())
        .add_sink(CountingSink())
    )
    plan: PhysicalPlan = env._plan()
    return plan


def _epoch(plan: PhysicalPlan, epoch: int, path: str, profile: bool) -> None:
    # No base is read: instances go on from the epoch before, since they find their own tokens.
    order = EpochOrder(epoch, None, int(time.time() * 1000), tokens=_Any())
    batches = _measured("read Parquet", lambda: list(pq.ParquetFile(path).iter_batches()), False)
    records = _measured(
        "Arrow to tuples",
        lambda: [
            (batch.num_rows, list(zip(*map(column_values, batch.columns), strict=True)))
            for batch in batches
        ],
        profile,
    )
    source = plan.at_level(0)[0]
    rows: list[Row] = _measured(
        "source task",
        lambda: _flat(run_spark_source(plan, source, 0, order, records)),
        profile,
    )
    for partition in range(PARALLELISM):
        mine = [row for row in rows if row.partition == partition]
        _measured(
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


def _measured(what: str, call: Callable[[], Any], profile: bool) -> Any:
    profiler = cProfile.Profile() if profile else None
    started = time.process_time()
    result = profiler.runcall(call) if profiler else call()
    nanos = (time.process_time() - started) / data.ROWS_PER_FILE * 1e9
    print(f"{what:40} {nanos:8.0f} ns per record of the file")
    if profiler:
        stats = pstats.Stats(profiler)
        stats.sort_stats("tottime").print_stats(_LINES)
    return result


if __name__ == "__main__":
    main()
