"""Writers: the sending end of an edge. Records are gathered per receiver and leave as payloads.

A writer's `write` is a closure made once per task instance, since it is called for every record.
"""

from __future__ import annotations

import copy
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
_MOST_RECORDS = 4096
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

    __slots__ = ("add", "add_key", "keys", "limit", "receivers", "timestamps", "values")

    def __init__(self, receivers: range, keyed: bool, stamped: bool) -> None:
        self.receivers = receivers
        self.keys: list[Any] | None = [] if keyed else None
        self.timestamps: list[Any] | None = [] if stamped else None
        self.values: list[Any] = []
        self.limit = 1
        self.add: Write
        self.add_key: Write

    def gather(self, scope: KeyScope, freeze: Callable[[Any], bytes] | None) -> None:
        """Set how records are added: as they are, or frozen; with their timestamps or without.

        Chosen here once, so that the hot path only calls what was chosen.
        """
        append, stamps = self.values.append, self.timestamps

        def add_frozen(value: Any) -> None:
            append(freeze(value))  # type: ignore[misc]

        add = append if freeze is None else add_frozen

        def add_stamped(value: Any) -> None:
            add(value)
            stamps.append(scope.timestamp)  # type: ignore[union-attr]

        self.add = add if stamps is None else add_stamped
        if self.keys is not None:
            append_key = self.keys.append

            def add_copied_key(key: Any) -> None:
                append_key(copy.deepcopy(key))

            self.add_key = append_key if freeze is None else add_copied_key

    def clear(self) -> None:
        self.values.clear()
        for gathered in (self.keys, self.timestamps):
            if gathered is not None:
                gathered.clear()


def _typed(partitioning: ByKey) -> Callable[[Any], Any]:
    """The key selector; with a declared key type, what it gives is checked and converted."""
    call = partitioning.select
    convert = None if partitioning.key_type is None else partitioning.key_type.converter()
    if convert is None:
        return call

    def select(value: Any) -> Any:
        return convert(call(value))

    return select


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
        self._routes: dict[Any, Any] = {}
        keyed = isinstance(edge.partitioning, ByKey)
        whole = isinstance(edge.partitioning, Broadcast)
        targets = [range(self._receivers)] if whole else [range(i, i + 1) for i in self._targets()]
        self._buckets = [Bucket(target, keyed, edge.stamped) for target in targets]
        self._gather()
        self.write = self._keyed_write() if keyed else self._plain_write()

    def begin_epoch(self, epoch: int, token: bytes, frozen: bool) -> None:
        self._header = make_header(
            RECORDS, self.edge.index, self._vertex.index, self._subtask, token
        )
        self._random.seed(f"{epoch}/{self._producer}")
        self._counts = 0
        for bucket in self._buckets:
            bucket.clear()
        if frozen and self._freeze is None:
            self._freeze = self._frozen
            self._gather()

    def _gather(self) -> None:
        self._routes.clear()
        for bucket in self._buckets:
            bucket.gather(self._scope, self._freeze)

    def end_epoch(self) -> int:
        """Post what is left; the number of records sent in the epoch."""
        for bucket in self._buckets:
            if bucket.values:
                self._flush(bucket, fresh=False)
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
        call = _typed(partitioning)
        flush = self._flush
        buckets = self._buckets
        max_parallelism, receivers = self._max_parallelism, self._receivers
        routes = self._routes

        def admit(key: Any) -> Any:
            check_key(key)
            group = key_group_of(encode_key(key), max_parallelism)
            bucket = buckets[subtask_of(group, max_parallelism, receivers)]
            if len(routes) >= _MOST_ROUTES:
                routes.clear()
            routes[key] = route = (bucket.add_key, bucket.add, bucket.values, bucket)
            return route

        def write(value: Any) -> None:
            key = call(value)
            try:
                add_key, add, values, bucket = routes[key]
            except (KeyError, TypeError):
                add_key, add, values, bucket = admit(key)
            add_key(key)
            add(value)
            if len(values) >= bucket.limit:
                flush(bucket)

        return write

    def _plain_write(self) -> Write:
        flush = self._flush
        choose = self._chooser(self.edge.partitioning)

        def write(value: Any) -> None:
            bucket = choose(value)
            bucket.add(value)
            if len(bucket.values) >= bucket.limit:
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
            answer = call(select(value), receivers)
            index = answer.__index__() if hasattr(answer, "__index__") else -1
            if not 0 <= index < receivers:
                raise InvalidArgumentError.of(
                    "the partitioner's answer", f"an int from 0 to {receivers - 1}", answer
                )
            return buckets[index]

        return chosen

    def _frozen(self, value: Any) -> bytes:
        call = dump
        try:
            return call(value)
        except Exception as error:
            raise UnpicklableError.of(f"a record ({short_repr(value)})", error) from None

    def _flush(self, bucket: Bucket, fresh: bool = True) -> None:
        """Post what a bucket holds. `fresh`: its last record has only just been added."""
        values, keys, timestamps = bucket.values, bucket.keys, bucket.timestamps
        count = len(values)
        try:
            body, constant = encode_body(keys, timestamps, values, self._freeze is not None)
        except Exception as error:
            raise UnpicklableError.of(f"a record ({short_repr(values[0])})", error) from None
        if len(body) > LARGEST_PAYLOAD:
            self._flush_halves(bucket)
            return
        payload = self._header + body
        for receiver in bucket.receivers:
            self._outbox.post(receiver, self._producer, payload)
        self._counts += count
        wanted = _TARGET_BYTES * count // max(len(body), 1)
        bucket.limit = max(1, min(wanted, bucket.limit * _GROWTH, _MOST_RECORDS))
        bucket.clear()
        if not constant and self._freeze is None:
            self._freeze_from_now_on(fresh and count == 1)

    def _freeze_from_now_on(self, sound: bool) -> None:
        """Records of this edge can change after they were emitted.

        A single one that was encoded at once is right all the same. Any that waited may have
        changed meanwhile, and then only running the epoch again helps.
        """
        if not sound:
            raise ChangeableRecords(self.edge.index)
        for bucket in self._buckets:
            if bucket.values:
                self._flush(bucket, fresh=False)
        self._freeze = self._frozen
        self._gather()

    def _flush_halves(self, bucket: Bucket) -> None:
        """Records that are too large to go together."""
        count = len(bucket.values)
        if count == 1:
            raise RecordTooLargeError(
                f"a record takes more than {LARGEST_PAYLOAD:,} bytes; "
                "split it, or pass a reference to where the data is"
            )
        gathered = [bucket.keys, bucket.timestamps, bucket.values]
        whole = [None if part is None else list(part) for part in gathered]
        for half in (slice(0, count // 2), slice(count // 2, None)):
            bucket.clear()
            for part, all_of_it in zip(gathered, whole, strict=True):
                if part is not None and all_of_it is not None:
                    part.extend(all_of_it[half])
            self._flush(bucket, fresh=False)
