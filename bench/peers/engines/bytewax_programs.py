"""The programs as dataflows of Bytewax."""

from __future__ import annotations

from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from bench.peers.functions import counted, is_warm, prepared, sensor_of

Streams = dict[str, Stream[Any]]


def map_filter(rows: Streams) -> Stream[Any]:
    return op.filter("warm", op.map("prepare", rows["readings"], prepared), is_warm)


def keyed_count(rows: Streams) -> Stream[Any]:
    return op.key_rm("answer", op.stateful_map("count", _keyed(rows), counted))


def _keyed(rows: Streams) -> Stream[Any]:
    return op.key_on("sensor", op.map("prepare", rows["readings"], prepared), sensor_of)
