"""Writers: the sending end of an edge. Records are gathered per receiver and leave as payloads.

A writer's `write` is a closure made once per task instance, since it is called for every record.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from penstock.errors import InvalidArgumentError, RecordTooLargeError, UnpicklableError, short_repr
from penstock.graph.partitioning import (
    Broadcast,
    ByKey,
    Custom,
    Forward,
    Global,
    Partitioning,
    Rebalance,
    Rescale,
    Shuffle,
    rescale_targets,
)
from penstock.runtime.codec import dump
from penstock.runtime.payload import RECORDS, Row, encode_body, make_header
from penstock.runtime.physical import PhysicalEdge, Vertex
from penstock.state.backend import KeyScope
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import check_key, encode_key

Write = Callable[[Any], None]

# A payload leaves when it has about this many bytes; its first has one record, to learn its size.
_TARGET_BYTES = 128 * 1024
_MOST_RECORDS = 8192
_GROWTH = 8
# Spark hands a payload over in one piece, and none can have more than 2 GiB.
LARGEST_PAYLOAD = 1 << 30
# So many keys remember their receiver; then the memory starts anew.
_MOST_ROUTES = 1_000_000


class Outbox:
    """What a task has ready to send."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.bytes = 0
        self.sequence = 0

    def post(self, partition: int, producer: int, payload: bytes) -> None:
        self.rows.append(Row(partition, producer, self.sequence, payload))
        self.sequence += 1
        self.bytes += len(payload)

    def take(self) -> list[Row]:
        rows, self.rows, self.bytes = self.rows, [], 0
        return rows


class ChangeableRecords(Exception):
    """Records of an edge were gathered as constants and are not: run the epoch again."""

    def __init__(self, edge: int) -> None:
        super().__init__(edge)
        self.edge = edge


class Bucket:
    """The records gathered for one receiver (or for all, when broadcast)."""

    __slots__ = ("keys", "limit", "receivers", "timestamps", "values")

    def __init__(self, receivers: range, keyed: bool, stamped: bool) -> None:
        self.receivers = receivers
        self.keys: list[Any] | None = [] if keyed else None
        self.timestamps: list[Any] | None = [] if stamped else None
        self.values: list[Any] = []
        self.limit = 1


class EdgeWriter:
    """Gathers, encodes and posts the records of one edge from one subtask."""

    def __init__(
        self,
        edge: PhysicalEdge,
        sender: tuple[Vertex, int],
        receiver: Vertex,
        scope: KeyScope,
        outbox: Outbox,
    ) -> None:
        self.edge = edge
        self._vertex, self._subtask = sender
        self._receivers = receiver.parallelism
        self._max_parallelism = receiver.max_parallelism
        self._scope = scope
        self._outbox = outbox
        self._stamped = edge.stamped
        self._producer = (self._vertex.index << 32) | self._subtask
        self._header = b""
        self._freeze: Callable[[Any], bytes] | None = None
        self._random = random.Random()
        self._counts = 0
        keyed = isinstance(edge.partitioning, ByKey)
        whole = isinstance(edge.partitioning, Broadcast)
        targets = [range(self._receivers)] if whole else [range(i, i + 1) for i in self._targets()]
        self._buckets = [Bucket(target, keyed, edge.stamped) for target in targets]
        self.write = self._keyed_write() if keyed else self._plain_write()

    def begin_epoch(self, epoch: int, token: bytes, frozen: bool) -> None:
        self._header = make_header(
            RECORDS, self.edge.index, self._vertex.index, self._subtask, token
        )
        self._random.seed(f"{epoch}/{self._producer}")
        self._counts = 0
        if frozen and self._freeze is None:
            self._freeze = self._frozen
        for bucket in self._buckets:
            bucket.values.clear()
            for gathered in (bucket.keys, bucket.timestamps):
                if gathered is not None:
                    gathered.clear()

    def end_epoch(self) -> int:
        """Post what is left; the number of records sent in the epoch."""
        for bucket in self._buckets:
            if bucket.values:
                self._flush(bucket)
        return self._counts

    def _targets(self) -> range:
        """The receivers that have a bucket."""
        partitioning = self.edge.partitioning
        if isinstance(partitioning, Forward):
            return range(self._subtask, self._subtask + 1)
        if isinstance(partitioning, Global):
            return range(1)
        if isinstance(partitioning, Rescale):
            return rescale_targets(self._subtask, self._vertex.parallelism, self._receivers)
        return range(self._receivers)

    def _keyed_write(self) -> Write:
        partitioning = self.edge.partitioning
        assert isinstance(partitioning, ByKey)
        call = partitioning.select
        scope = self._scope
        flush = self._flush
        stamped = self._stamped
        buckets = self._buckets
        max_parallelism, receivers = self._max_parallelism, self._receivers
        routes: dict[Any, Any] = {}

        def admit(key: Any) -> Any:
            check_key(key)
            group = key_group_of(encode_key(key), max_parallelism)
            bucket = buckets[subtask_of(group, max_parallelism, receivers)]
            assert bucket.keys is not None
            if len(routes) >= _MOST_ROUTES:
                routes.clear()
            routes[key] = route = (bucket.keys.append, bucket.values.append, bucket.values, bucket)
            return route

        def write(value: Any) -> None:
            key = call(value)
            try:
                add_key, add_value, values, bucket = routes[key]
            except (KeyError, TypeError):
                add_key, add_value, values, bucket = admit(key)
            add_key(key)
            freeze = self._freeze
            add_value(value if freeze is None else freeze(value))
            if stamped:
                bucket.timestamps.append(scope.timestamp)
            if len(values) >= bucket.limit:
                flush(bucket)

        return write

    def _plain_write(self) -> Write:
        scope = self._scope
        flush = self._flush
        stamped = self._stamped
        choose = self._chooser(self.edge.partitioning)

        def write(value: Any) -> None:
            bucket = choose(value)
            values = bucket.values
            freeze = self._freeze
            values.append(value if freeze is None else freeze(value))
            if stamped:
                bucket.timestamps.append(scope.timestamp)  # type: ignore[union-attr]
            if len(values) >= bucket.limit:
                flush(bucket)

        return write

    def _chooser(self, partitioning: Partitioning) -> Callable[[Any], Bucket]:
        buckets = self._buckets
        if isinstance(partitioning, Custom):
            return self._custom_chooser(partitioning)
        if isinstance(partitioning, Shuffle):
            pick = self._random.choice
            return lambda value: pick(buckets)
        if isinstance(partitioning, Rebalance | Rescale):
            at = self._subtask if isinstance(partitioning, Rebalance) else 0

            def next_bucket(value: Any) -> Bucket:
                nonlocal at
                at += 1
                return buckets[at % len(buckets)]

            return next_bucket
        only = buckets[0]
        return lambda value: only

    def _custom_chooser(self, partitioning: Custom) -> Callable[[Any], Bucket]:
        select, call = partitioning.select, partitioning.partition
        buckets, receivers = self._buckets, self._receivers

        def chosen(value: Any) -> Bucket:
            index = call(select(value), receivers)
            if not isinstance(index, int) or not 0 <= index < receivers:
                raise InvalidArgumentError.of(
                    "the partitioner's answer", f"an int from 0 to {receivers - 1}", index
                )
            return buckets[index]

        return chosen

    def _frozen(self, value: Any) -> bytes:
        call = dump
        try:
            return call(value)
        except Exception as error:
            raise UnpicklableError.of(f"a record ({short_repr(value)})", error) from None

    def _flush(self, bucket: Bucket) -> None:
        values, keys, timestamps = bucket.values, bucket.keys, bucket.timestamps
        count = len(values)
        try:
            body, constant = encode_body(keys, timestamps, values, self._freeze is not None)
        except Exception as error:
            raise UnpicklableError.of(f"a record ({short_repr(values[0])})", error) from None
        if not constant:
            if count > 1:
                raise ChangeableRecords(self.edge.index)
            # A single record that is encoded at once is right whatever it is; those after it
            # are frozen one by one.
            self._freeze = self._frozen
        if len(body) > LARGEST_PAYLOAD:
            raise RecordTooLargeError(
                f"{count} record(s) take {len(body):,} bytes, more than {LARGEST_PAYLOAD:,}; "
                "split large records or pass a reference to where the data is"
            )
        payload = self._header + body
        for receiver in bucket.receivers:
            self._outbox.post(receiver, self._producer, payload)
        self._counts += count
        wanted = _TARGET_BYTES * count // max(len(body), 1)
        bucket.limit = max(1, min(wanted, bucket.limit * _GROWTH, _MOST_RECORDS))
        values.clear()
        if keys is not None:
            keys.clear()
        if timestamps is not None:
            timestamps.clear()
