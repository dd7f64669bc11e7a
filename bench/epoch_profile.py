"""By hand: what an epoch with few records costs in processor time, thread by thread, and in counts.

Counts and processor time mean something on a busy machine, too, where times on the clock do not:

    python -m bench.epoch_profile --epochs 100 [--kind python] [--set spark.x=y] [--jfr out.jfr]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.epoch_cost import small_epochs
from bench.jobs import MASTER
from bench.measure import median
from bench.processes import cpu_seconds
from penstock.driver import spark_session as sessions

_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    args = _parser().parse_args()
    settings = dict(text.split("=", 1) for text in args.set)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    if "spark.driver.extraJavaOptions" in settings:
        sessions._STATIC.pop("spark.driver.extraJavaOptions")
    for key in settings:
        sessions._STATIC.pop(key, None)
        sessions._QUERY.pop(key, None)
    spark = sessions.spark_session(MASTER, "bench")
    for key, value in settings.items():
        if not key.startswith(("spark.driver", "spark.ui.enabled")):
            try:
                spark.conf.set(key, value)
            except Exception as error:
                print(f"{key}: {str(error).splitlines()[0]}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        measured = _measure(spark, args, scratch)
    print(json.dumps(measured, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.epoch_profile", description=__doc__)
    parser.add_argument("--kind", default="spark", choices=["spark", "python"])
    parser.add_argument("--cold", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], help="a setting of Spark's")
    parser.add_argument("--jfr", help="where to leave a recording of the JVM's")
    return parser


def _measure(spark: SparkSession, args: Any, scratch: str) -> dict[str, Any]:
    jvm = _jvm()
    ends: list[tuple[float, Any]] = []
    env = small_epochs(spark, {"scratch": scratch, "kind": args.kind})
    env.add_epoch_listener(lambda report: ends.append((time.perf_counter(), report)))
    calls = Counter[str]()
    _count_calls(calls)
    running = env.execute_async("epoch profile")

    def reach(count: int) -> None:
        while len(ends) < count and not running.get_job_execution_result().done():
            time.sleep(0.02)

    reach(10)
    first = _seen(jvm)
    reach(args.cold)
    if args.jfr:
        subprocess.run(["jcmd", str(jvm), "JFR.start", "name=e", "settings=profile"], check=True)
    calls.clear()
    before = _seen(jvm)
    reach(args.cold + args.epochs)
    after = _seen(jvm)
    done = len(ends) - args.cold
    if args.jfr:
        dump = ["jcmd", str(jvm), "JFR.dump", "name=e", f"filename={Path(args.jfr).absolute()}"]
        subprocess.run(dump, check=True)
    counted = dict(calls)
    running.cancel().result(60)
    periods = [b[0] - a[0] for a, b in zip(ends[args.cold :], ends[args.cold + 1 :], strict=False)]
    return {
        "epochs": done,
        "median ms on the clock": median(periods) * 1000,
        "best tenth": sorted(periods)[len(periods) // 10] * 1000,
        "steps ms": {
            step: median(r.seconds_by_step[step] for _, r in ends[args.cold :]) * 1000
            for step in ends[-1][1].seconds_by_step
        },
        "CPU ms/epoch": _difference(before["cpu"], after["cpu"], done),
        "JVM threads, CPU ms/epoch": _difference(before["threads"], after["threads"], done),
        "cold (10 to --cold), JVM CPU ms/epoch": _difference(
            first["cpu"], before["cpu"], args.cold - 10
        ),
        "cold threads": _difference(first["threads"], before["threads"], args.cold - 10),
        "py4j calls/epoch": round(sum(counted.values()) / done, 1),
        "py4j": {k: round(v / done, 1) for k, v in Counter(counted).most_common(25)},
    }


def _count_calls(calls: Counter[str]) -> None:
    """Every command that the driver sends to the JVM."""
    from py4j import clientserver

    send = clientserver.ClientServerConnection.send_command

    def counted(self: Any, command: str, *more: Any) -> Any:
        parts = command.split("\n")
        calls[" ".join(p for p in parts[:3] if p)[:60]] += 1
        return send(self, command, *more)

    clientserver.ClientServerConnection.send_command = counted


def _jvm() -> int:
    me = os.getpid()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if int(stat[1]) == me and b"java" in command.split(b"\0")[0]:
                return int(entry)
    raise SystemExit("no JVM")


def _seen(jvm: int) -> dict[str, Any]:
    threads: Counter[str] = Counter()
    for task in os.listdir(f"/proc/{jvm}/task"):
        try:
            text = Path(f"/proc/{jvm}/task/{task}/stat").read_text()
            nanos = int(Path(f"/proc/{jvm}/task/{task}/schedstat").read_text().split()[0])
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        threads[re.sub(r"[-# ]*\d+.*$", "", name)] += nanos / 1e9
    return {"cpu": cpu_seconds(), "threads": threads}


def _difference(before: Any, after: Any, epochs: int) -> dict[str, float]:
    spent = {k: (after[k] - before.get(k, 0.0)) / epochs * 1000 for k in after}
    return {k: round(v, 2) for k, v in sorted(spent.items(), key=lambda i: -i[1]) if v >= 0.05}


if __name__ == "__main__":
    main()
