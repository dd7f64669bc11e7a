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
    class_of,
    counted,
    is_warm,
    prepared,
    sensor_of,
    threshold_of,
    words_of,
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


def word_count(params: dict[str, Any]) -> dict[str, Any]:
    on_one_core()
    probe = probe_of(params)
    see = probe.see
    counts: dict[str, int] = {}
    for row in rows_in(params, "lines"):
        for word, at in words_of(row):
            count = counts[word] = counts.get(word, 0) + 1
            see((word, at, count))
    probe.write()
    return seen_in(params["scratch"])


def broadcast_rules(params: dict[str, Any]) -> dict[str, Any]:
    """The rules of a file before its readings."""
    on_one_core()
    probe = probe_of(params)
    see = probe.see
    rules: dict[int, float] = {}
    both = zip(paths_in(params, "rules"), paths_in(params, "readings"), strict=True)
    for new_rules, readings in both:
        for rule in rows_of(new_rules):
            rules[rule[0]] = rule[2]
        for row in rows_of(readings):
            reading = prepared(row)
            kind = class_of(reading[0])
            limit = rules.get(kind)
            if reading[2] >= (threshold_of(kind) if limit is None else limit):
                see(reading)
    probe.write()
    return seen_in(params["scratch"])
