"""Penstock as in `penstock_job`, but its tasks read the files themselves, as its Python peers do.

How much an epoch reads is up to Penstock, so the mark is the commit of the first epoch by which as
many rows have been read as are cold, and it is told which share of all came behind it.
"""

from __future__ import annotations

from itertools import accumulate

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
        paths = [str(path) for path in paths_in(params, stream)]
        files = FileSource.for_bulk_file_format(ParquetRecords(record_type=tuple), *paths)
        source = files.in_time_order().build()
        timeless = WatermarkStrategy.no_watermarks()
        rows[stream] = env.from_source(source, timeless, stream).uid(_uid(stream))
    ends = executed(env, called(params["flink"])(rows), params)
    uids = [_uid(stream) for stream in params["inputs"]]
    read = list(accumulate(sum(r.records_in.get(uid, 0) for uid in uids) for _, r in ends))
    cold = sum(_rows_in(params, stream) for stream in params["inputs"])
    mark = next(number for number, so_far in enumerate(read) if so_far >= cold)
    return {
        **told([report for _, report in ends]),
        "seconds": ends[-1][0] - ends[mark][0],
        "share": 1 - read[mark] / read[-1],
    }


def _uid(stream: str) -> str:
    return f"rows-{stream}"


def _rows_in(params: Params, stream: str) -> int:
    """Of the cold files."""
    paths = paths_in(params, stream)[: params["cold_files"]]
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)
