"""The sending end of an edge on which rows stay in batches of Arrow's columns."""

from __future__ import annotations

from array import array
from typing import Any

import pyarrow as pa

from penstock.errors import RecordTooLargeError
from penstock.graph.partitioning import ByKey
from penstock.runtime.partials import KeyColumns
from penstock.runtime.payload import encode_batch
from penstock.runtime.writers import LARGEST_PAYLOAD, Bucket, EdgeWriter, WriteRun


class BatchWriter(EdgeWriter):
    """Its `run` takes a batch, whose rows each go to the receiver of their key."""

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        assert isinstance(self.edge.partitioning, ByKey)
        self.run = self._in_batches(self.edge.partitioning.select)

    def _in_batches(self, call: Any) -> WriteRun:
        routes, route = self._routes()
        buckets = self._buckets

        def run(batch: Any) -> None:
            chosen: dict[Bucket, list[int]] = {bucket: [] for bucket in buckets}
            for row, key in enumerate(call(batch)):
                try:
                    bucket = routes[key]
                except KeyError:
                    bucket = route(key)
                chosen[bucket].append(row)
            for bucket, rows in chosen.items():
                if rows:
                    self._post_batch(bucket, batch.take(_numbers(rows)))

        return run

    def _post_batch(self, bucket: Bucket, batch: Any) -> None:
        """Post a batch of Arrow's, behind what a bucket has to tell."""
        body = encode_batch(batch, bucket.events)
        rows = batch.num_rows
        if len(body) <= LARGEST_PAYLOAD:
            self._post(bucket, body, rows)
            bucket.clear()
            return
        if rows == 1:
            raise RecordTooLargeError.of(LARGEST_PAYLOAD)
        self._post_batch(bucket, batch.slice(0, rows // 2))
        self._post_batch(bucket, batch.slice(rows // 2))


def takes_batches(partitioning: Any) -> bool:
    """Whether what goes this way stays in batches."""
    return isinstance(partitioning, ByKey) and isinstance(partitioning.select, KeyColumns)


def _numbers(rows: list[int]) -> Any:
    """Not by `pa.array`, whose first call imports pandas: half a second in every worker."""
    return pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(array("i", rows))])
