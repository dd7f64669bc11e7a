"""Runs queries and prints what they took; with ``--check`` compares their answers.

Times of a machine that is busy otherwise mean nothing; "CPU" is of all processes of the run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.nexmark.direct import Events, answer
from bench.nexmark.files import event_files
from bench.nexmark.generator import Settings
from bench.nexmark.queries import QUERIES, Query
from bench.nexmark.streams import Streams
from bench.processes import cpu_seconds
from penstock.common import Configuration
from penstock.datastream import SinkFunction, StreamExecutionEnvironment

LOCAL, SPARK = "local", "spark"
_LINGER = 11.0
"""Longer than q12's windows."""


class Run(NamedTuple):
    """One query: how many results, how long it took, and whether they were right if compared."""

    results: int
    seconds: float
    cpu: float
    right: bool | None


def main() -> int:
    args = _arguments()
    unknown = [name for name in args.queries if name not in QUERIES]
    if unknown:
        print(f"no such query: {', '.join(unknown)}; there are {', '.join(QUERIES)}")
        return 2
    settings = Settings(events=args.events, rate=args.rate, seed=args.seed)
    directory = str(event_files(settings))
    events = Events.of(directory) if args.check else None
    make = _maker(args.executor, directory, args.check)
    print(f"{args.events:,} events, {args.rate:,} a second of event time, {args.executor}")
    print(f"{'query':6}{'results':>10}{'seconds':>10}{'events/s':>12}{'CPU µs/event':>14}  answer")
    wrong = 0
    for name in args.queries or QUERIES:
        run = _run(name, make, events)
        wrong += run.right is False
        verdict = {None: "not compared", True: "equal", False: "DIFFERENT"}[run.right]
        print(
            f"{name:6}{run.results:>10,}{run.seconds:>10.1f}{args.events / run.seconds:>12,.0f}"
            f"{run.cpu / args.events * 1e6:>14.2f}  {verdict}",
            flush=True,
        )
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.nexmark", description=__doc__)
    parser.add_argument("queries", nargs="*", help=f"of {', '.join(QUERIES)}; all by default")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=10_000, help="events a second of event time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--executor", choices=[LOCAL, SPARK], default=SPARK)
    parser.add_argument("--check", action="store_true", help="compare with the direct computation")
    return parser.parse_args()


def _maker(executor: str, directory: str, check: bool) -> Callable[[Query, str], Streams]:
    """Makes the streams of a query, each in an environment of its own."""
    spark: Any = None
    if executor == SPARK:
        from penstock.driver.spark_session import spark_session

        spark = spark_session("local[2]", "nexmark")

    def make(query: Query, scratch: str) -> Streams:
        configuration = Configuration()
        wanted = {
            "penstock.executor": executor,
            "parallelism.default": "1" if executor == LOCAL else "2",
            "execution.checkpointing.dir": f"{scratch}/checkpoints",
            "state.backend.local-dir": f"{scratch}/stores",
        }
        for key, value in wanted.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        linger = _LINGER if query.by_the_clock and check else 0.0
        return Streams(env, directory, spark, linger=linger)

    return make


def _run(name: str, make: Callable[[Query, str], Streams], events: Events | None) -> Run:
    query = QUERIES[name]
    with tempfile.TemporaryDirectory(prefix="nexmark-") as scratch:
        streams = make(query, scratch)
        stream = query.build(streams)
        counts: list[int] = []
        started, busy = time.perf_counter(), sum(cpu_seconds().values())
        if events is None:
            stream.add_sink(Counting())
            streams.env.add_epoch_listener(lambda report: counts.append(_counted(report)))
            streams.env.execute(name)
        else:
            outputs = list(stream.execute_and_collect())
            counts.append(len(outputs))
        seconds, cpu = time.perf_counter() - started, sum(cpu_seconds().values()) - busy
    right = None if events is None else query.settled(outputs) == answer(name, events)
    return Run(sum(counts), seconds, cpu, right)


class Counting(SinkFunction):
    """Counts what arrives; a gauge tells the number since it was last asked, which is per epoch."""

    def __init__(self) -> None:
        self._count = 0

    def open(self, runtime_context: Any) -> None:
        runtime_context.get_metrics_group().gauge("results", self._taken)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self._count += 1

    def _taken(self) -> int:
        count, self._count = self._count, 0
        return count


def _counted(report: Any) -> int:
    from bench.job_times import metric

    return metric(report, "results")


if __name__ == "__main__":
    sys.exit(main())
