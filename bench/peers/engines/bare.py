"""No engine: one loop in one process on one core, dicts for state, nothing durable: the limit.

It calls the same functions as the others do. The watermark follows every record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from bench.peers.engines.orders import paths_in, probe_of
from bench.peers.engines.parquet_rows import rows_of
from bench.peers.functions import (
    Reading,
    counted,
    is_warm,
    prepared,
    sensor_of,
)
from bench.peers.probe import seen_in


def on_one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)


def rows_in(params: dict[str, Any], stream: str = "readings") -> Iterator[Any]:
    for path in paths_in(params, stream):
        yield from rows_of(path)


def map_filter(params: dict[str, Any]) -> dict[str, Any]:
    on_one_core()
    probe = probe_of(params)
    see = probe.see
    for row in rows_in(params):
        reading = prepared(row)
        if is_warm(reading):
            see(reading)
    probe.write()
    return seen_in(params["scratch"])


def keyed_count(params: dict[str, Any]) -> dict[str, Any]:
    on_one_core()
    probe = probe_of(params)
    see = probe.see
    states: dict[str, Any] = {}
    for row in rows_in(params):
        reading: Reading = prepared(row)
        key = sensor_of(reading)
        states[key], answer = counted(states.get(key), reading)
        see(answer)
    probe.write()
    return seen_in(params["scratch"])
