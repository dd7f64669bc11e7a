"""The sending end of an edge on which rows stay in batches of Arrow's columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.errors import RecordTooLargeError
from penstock.graph.partitioning import ByKey
from penstock.runtime.grouping import column_of
from penstock.runtime.partials import KeyColumns
from penstock.runtime.payload import encode_batch
from penstock.runtime.writers import LARGEST_PAYLOAD, MOST_ROUTES, Bucket, EdgeWriter, WriteRun


class BatchWriter(EdgeWriter):
    """Its `run` takes a batch, whose rows each go to the receiver of their key."""

    in_batches = True

    def __init__(self, *described: Any) -> None:
        super().__init__(*described)
        assert isinstance(self.edge.partitioning, ByKey)
        self.run = self._in_batches(self.edge.partitioning.select)

    def _in_batches(self, call: Any) -> WriteRun:
        _, route = self._routes()
        buckets = self._buckets
        receivers = _Receivers(lambda key: buckets.index(route(key)))

        def run(batch: Any) -> None:
            receivers.make_room()
            keys = call(batch)
            chosen = np.fromiter(map(receivers.__getitem__, keys), np.int64, len(keys))
            for number, bucket in enumerate(buckets):
                rows = np.flatnonzero(chosen == number)
                if len(rows):
                    whole = len(rows) == len(keys)
                    self._post_batch(bucket, batch if whole else batch.take(column_of(rows)))

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


class _Receivers(dict[Any, int]):
    """Where keys go, by number; found out when a key is first met."""

    def __init__(self, find: Callable[[Any], int]) -> None:
        self._find = find

    def __missing__(self, key: Any) -> int:
        found = self[key] = self._find(key)
        return found

    def make_room(self) -> None:
        if len(self) >= MOST_ROUTES:
            self.clear()
