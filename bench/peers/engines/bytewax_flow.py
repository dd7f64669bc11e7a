"""Bytewax, as one process or as a cluster of several; no recovery store, which is its quickest.

Each process reads the rows of its share of the keys; Bytewax exchanges them by a hash of its own.
"""

from __future__ import annotations

import multiprocessing
import socket
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import bytewax.operators as op
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax._bytewax import cli_main
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from bench.peers.engines.orders import called, paths_in, probe_of
from bench.peers.engines.parquet_rows import rows_in
from bench.peers.probe import seen_in

BATCH_ROWS = 2_000

Build = Callable[[dict[str, Stream[Any]]], Stream[Any]]
"""From the streams of rows by name to the stream of answers, keyed or not."""


def run(params: dict[str, Any]) -> dict[str, Any]:
    processes = params["processes"]
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(processes)]
    if processes == 1:
        _work(params, 0, None)
    else:
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=_work, args=(params, number, addresses))
            for number in range(processes)
        ]
        for other in others:
            other.start()
        for other in others:
            other.join()
            assert other.exitcode == 0, f"a process of Bytewax's ended with {other.exitcode}"
    return seen_in(params["scratch"])


def _work(params: dict[str, Any], number: int, addresses: list[str] | None) -> None:
    pa.set_cpu_count(1)
    flow = Dataflow(params["program"])
    rows = {stream: op.input(stream, flow, _Files(params, stream)) for stream in params["inputs"]}
    build: Build = called(params["bytewax"])
    op.output("answers", build(rows), _Answers(params))
    if addresses is None:
        cli_main(flow)
    else:
        cli_main(flow, process_id=number, addresses=addresses)


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class _Files(FixedPartitionedSource[Any, int]):
    """A partition for each process."""

    def __init__(self, params: dict[str, Any], stream: str) -> None:
        self._params = params
        self._stream = stream

    def list_parts(self) -> list[str]:
        return [str(number) for number in range(self._params["processes"])]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Any:
        return _Share(self._batches(int(for_part)))

    def _batches(self, part: int) -> Iterable[list[Any]]:
        for path in paths_in(self._params, self._stream):
            table = pq.read_table(path, use_threads=False)
            table = _share_of(table, part, self._params["processes"])
            for start in range(0, len(table), BATCH_ROWS):
                yield list(rows_in(table.slice(start, BATCH_ROWS).combine_chunks()))


def _share_of(table: pa.Table, part: int, parts: int) -> pa.Table:
    """The rows of some keys: by the first column, like a topic that is partitioned by key.

    A key's time is that of its own records in Bytewax, so they must stay in order.
    """
    if parts == 1:
        return table
    coded = table.column(0).combine_chunks().dictionary_encode()
    mine = np.array(
        [zlib.crc32(str(key).encode()) % parts == part for key in coded.dictionary.to_pylist()]
    )
    return table.filter(pa.array(mine[coded.indices.to_numpy()]))


class _Share(StatefulSourcePartition[Any, int]):
    def __init__(self, batches: Iterable[list[Any]]) -> None:
        self._batches = iter(batches)

    def next_batch(self) -> list[Any]:
        try:
            return next(self._batches)
        except StopIteration:
            raise StopIteration from None

    def snapshot(self) -> int:
        return 0


class _Answers(DynamicSink[Any]):
    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return _Probed(self._params)


class _Probed(StatelessSinkPartition[Any]):
    def __init__(self, params: dict[str, Any]) -> None:
        self._probe = probe_of(params)

    def write_batch(self, items: list[Any]) -> None:
        self._probe.see_all(items)

    def close(self) -> None:
        self._probe.write()
