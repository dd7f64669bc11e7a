"""Penstock as in `penstock_job`, but its tasks read the files themselves, as its Python peers do.

How much an epoch reads is up to Penstock, so the mark is the commit of the first epoch by which as
many rows have been read as are cold, and it is told which share of all came behind it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pyarrow.parquet as pq

from bench import jobs
from bench.measure import Params, Result
from bench.peers.engines.orders import called, paths_in
from bench.peers.engines.penstock_job import executed, told
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.parquet import ParquetRecords


def run(params: Params) -> Result:
    jobs.session()  # starting it is no part of what is measured
    env = jobs.environment(params)
    rows = {}
    for stream in params["inputs"]:
        source = source_of(params, stream, ParquetRecords(record_type=tuple))
        timeless = WatermarkStrategy.no_watermarks()
        rows[stream] = env.from_source(source, timeless, stream).uid(uid_of(stream))
    return answered(env, called(params["flink"])(rows), params)


def answered(env: Any, answers: Any, params: Params) -> Result:
    """Run the job whose last stream is `answers`."""
    ends = executed(env, answers, params)
    uids = [uid_of(stream) for stream in params["inputs"]]
    read = list(accumulate(sum(r.records_in.get(uid, 0) for uid in uids) for _, r in ends))
    cold = sum(_rows_in(params, stream) for stream in params["inputs"])
    mark = next(number for number, so_far in enumerate(read) if so_far >= cold)
    return {
        **told([report for _, report in ends]),
        "seconds": ends[-1][0] - ends[mark][0],
        "share": 1 - read[mark] / read[-1],
    }


def source_of(params: Params, stream: str, records: ParquetRecords) -> FileSource:
    paths = [str(path) for path in paths_in(params, stream)]
    return FileSource.for_bulk_file_format(records, *paths).in_time_order().build()


def uid_of(stream: str) -> str:
    """By which reports tell how much of a stream was read."""
    return f"rows-{stream}"


def _rows_in(params: Params, stream: str) -> int:
    """Of the cold files."""
    paths = paths_in(params, stream)[: params["cold_files"]]
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)
