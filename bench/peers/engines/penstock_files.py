"""Penstock as in `penstock_job`, but its tasks read the files themselves, as its Python peers do.

How much an epoch reads is up to Penstock, so the mark is the commit of the first epoch by which all
cold rows have been read, and the rows behind it are told.
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
        source = FileSource.for_bulk_file_format(ParquetRecords(record_type=tuple), *paths).build()
        rows[stream] = env.from_source(source, WatermarkStrategy.no_watermarks(), stream)
    ends = executed(env, called(params["flink"])(rows), params)
    # A source has the most records of all operators: nothing here makes several out of one.
    read = list(accumulate(max(report.records_in.values(), default=0) for _, report in ends))
    cold = sum(_rows_in(params, stream) for stream in params["inputs"])
    mark = next(number for number, so_far in enumerate(read) if so_far >= cold)
    return {
        **told([report for _, report in ends]),
        "seconds": ends[-1][0] - ends[mark][0],
        "rows": read[-1] - read[mark],
    }


def _rows_in(params: Params, stream: str) -> int:
    """Of the cold files."""
    paths = paths_in(params, stream)[: params["cold_files"]]
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)
