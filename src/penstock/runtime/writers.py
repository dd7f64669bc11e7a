"""Writers: the sending end of an edge. Records are gathered per receiver and leave as payloads.

A writer's loops are closures made once per task instance, since they see every record.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from penstock.errors import InvalidArgumentError, RecordTooLargeError, UnpicklableError, short_repr
from penstock.graph.partitioning import (
    Broadcast,
    ByKey,
    Custom,
    Forward,
    Partitioning,
    Rebalance,
    Rescale,
    Shuffle,
    rescale_targets,
)
from penstock.runtime.codec import dump
from penstock.runtime.keying import key_converter, key_source
from penstock.runtime.known_records import declared_shape
from penstock.runtime.loops import Step, ending_in_strides
from penstock.runtime.payload import RECORDS, Event, Row, encode_body, make_header
from penstock.runtime.physical import PhysicalEdge, Vertex
from penstock.runtime.timetables import Timetable
from penstock.runtime.watermarks import AHEAD, IDLE, MIN_TIMESTAMP, WATERMARK, Control
from penstock.state.backend import KeyScope
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import check_stream_key, encode_key

Write = Callable[[Any], None]
WriteRun = Callable[[Iterable[Any]], None]

# A payload leaves when it has about this many bytes; its first has one record, to learn its size.
_TARGET_BYTES = 64 * 1024
_MOST_RECORDS = 512
_GROWTH = 8
# Spark hands a payload over in one piece, and none can have more than 2 GiB.
LARGEST_PAYLOAD = 1 << 30
# Put before all others where a receiver sorts by time.
_FIRST = MIN_TIMESTAMP
# So many keys remember their receiver; then the memory starts anew.
MOST_ROUTES = 1_000_000
_PLAIN_KEYS = (int, str)
"""Of most keys: nothing about them is to be checked."""
_NO_MORE = object()


class Outbox:
    """What a task has ready to send."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.bytes = 0
        self.sequence = 0

    def post(self, partition: int, time: int, producer: int, payload: bytes) -> None:
        self.rows.append(Row(partition, time, producer, self.sequence, payload))
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

    __slots__ = (
        "add",
        "events",
        "keep",
        "receivers",
        "sent",
        "since",
        "stamp",
        "timestamps",
        "timetable",
        "values",
    )

    def __init__(self, receivers: range, stamped: bool, roving: bool = False) -> None:
        self.receivers = receivers
        self.timetable = Timetable() if roving else None
        self.timestamps: list[Any] | None = [] if stamped else None
        self.values: list[Any] = []
        self.events: list[Event] = []
        self.since = MIN_TIMESTAMP
        """The watermark that was told before what is gathered."""
        self.sent = False
        """Whether a record has left in the epoch."""
        self.keep: Write
        """Takes a record without its timestamp."""
        self.stamp: Write | None = None if self.timestamps is None else self.timestamps.append
        """Takes the timestamp."""
        self.add: Write
        """Does both."""

    def gather(self, scope: KeyScope, freeze: Callable[[Any], bytes] | None) -> None:
        """Set how records are added: as they are, or frozen; with their timestamps or without.

        Chosen here once, so that the hot path only calls what was chosen.
        """
        append, stamp = self.values.append, self.stamp

        def add_frozen(value: Any) -> None:
            append(freeze(value))  # type: ignore[misc]

        self.keep = keep = append if freeze is None else add_frozen

        def add_stamped(value: Any) -> None:
            keep(value)
            stamp(scope.timestamp)  # type: ignore[misc]

        self.add = keep if stamp is None else add_stamped

    def clear(self) -> None:
        self.values.clear()
        self.events.clear()
        if self.timestamps is not None:
            self.timestamps.clear()


Choose = Callable[[Any], Bucket]


class EdgeWriter:
    """Gathers, encodes and posts the records of one edge from one subtask."""

    in_batches = False
    """Whether what it is given are batches of Arrow's."""

    def __init__(
        self,
        edge: PhysicalEdge,
        sender: tuple[Vertex, int],
        receiver: Vertex,
        scope: KeyScope,
        outbox: Outbox,
        roving: bool = False,
    ) -> None:
        """`roving`: the sender has another part of the input in every epoch."""
        self.edge = edge
        self._vertex, self._subtask = sender
        self._receivers = receiver.parallelism
        self._max_parallelism = receiver.max_parallelism
        self._scope = scope
        self._outbox = outbox
        self._producer = (self._vertex.index << 32) | self._subtask
        self._header = b""
        self._freeze: Callable[[Any], bytes] | None = None
        self._shape = declared_shape(self._vertex, edge.index)
        self._declared = self._shape is not None
        self._random = random.Random()
        self._counts = 0
        self._limit = 1
        self._watermark = MIN_TIMESTAMP
        self._idle = False
        self._posted = [0] * self._receivers
        keyed = isinstance(edge.partitioning, ByKey)
        whole = isinstance(edge.partitioning, Broadcast)
        targets = [range(self._receivers)] if whole else [range(i, i + 1) for i in self._targets()]
        # With columns of Arrow's there are no timestamps to look at.
        self._roving = roving and edge.tells_time and not self.in_batches
        self._buckets = [Bucket(target, edge.stamped, self._roving) for target in targets]
        self._gather()
        choose, gather = self._by_key() if keyed else self._plainly()
        self.write = self._one(choose)
        """Takes one record."""
        self.run: WriteRun = ending_in_strides(gather, self._many)
        """Takes many records."""

    def records_are(self, shape: str | None) -> None:
        """What all records are that come from now on, until it is said anew."""
        if self._declared or shape == self._shape:
            return
        for bucket in self._buckets:
            if bucket.values:
                self._flush(bucket, fresh=False)
        self._shape = shape

    def forget_time(self) -> None:
        """The next epoch begins without a watermark."""
        self._watermark, self._idle = MIN_TIMESTAMP, False

    def begin_epoch(self, epoch: int, token: bytes, frozen: bool) -> None:
        self._header = make_header(
            RECORDS, self.edge.index, self._vertex.index, self._subtask, token
        )
        self._random.seed(f"{epoch}/{self._producer}")
        self._counts = 0
        self._posted = [0] * self._receivers
        if self._roving:
            # By payloads their place among other producers' follows: it must not depend on what
            # this instance has sent before.
            self._limit = 1
        for bucket in self._buckets:
            bucket.clear()
            bucket.since, bucket.sent = self._watermark, False
        if frozen and self._freeze is None:
            self._freeze = self._frozen
            self._gather()

    def begin_part(self) -> None:
        """What comes now need not arrive behind what came before in the epoch. Where hardly
        anything came, it does all the same: payloads are not to be small ones."""
        for bucket in self._buckets:
            timetable = bucket.timetable
            if timetable and timetable.in_part + len(bucket.values) >= self._limit:
                if bucket.values:
                    self._flush(bucket, fresh=False)
                timetable.begin_part()

    def _gather(self) -> None:
        for bucket in self._buckets:
            bucket.gather(self._scope, self._freeze)

    def control(self, control: Control) -> None:
        """Tell every receiver, behind the records that went before."""
        if not self.edge.tells_time:
            return
        kind, time = control
        if kind == WATERMARK:
            self._watermark = time
        else:
            self._idle = kind == IDLE
        if self._roving:
            return  # receivers hear of it at the epoch's end
        for bucket in self._buckets:
            at, events = len(bucket.values), bucket.events
            if events and kind == WATERMARK and events[-1][:2] == (at, WATERMARK):
                events.pop()  # nothing came between the two
            events.append((at, kind, time))

    def unsay(self) -> None:
        """Do not tell what was not posted yet, until the epoch's end, when all is told."""
        for bucket in self._buckets:
            bucket.events.clear()

    def end_epoch(self) -> int:
        """Post what is left; the number of records sent in the epoch."""
        if self.edge.tells_time:
            # In every epoch, since receivers keep nothing about their channels.
            self.control((WATERMARK, self._watermark))
            if self._idle:
                self.control((IDLE, 0))
        for bucket in self._buckets:
            if bucket.values or bucket.events:
                self._flush(bucket, fresh=False)
            if bucket.timetable is not None:
                self._tell(bucket, bucket.timetable)
        return self._counts

    def _tell(self, bucket: Bucket, timetable: Timetable) -> None:
        """What is known now, to be read before all records."""
        events = [(0, WATERMARK, self._watermark), *([(0, IDLE, 0)] if self._idle else [])]
        events += [(0, AHEAD, time) for time in timetable.take()]
        body, _ = encode_body(None, [], False, events)
        self._hand_out(bucket, _FIRST, self._header + body)

    @property
    def posted(self) -> list[int]:
        """How many payloads went to each receiver in the epoch."""
        return self._posted

    def _targets(self) -> range:
        """The receivers that have a bucket: all that are told of control events."""
        partitioning = self.edge.partitioning
        if isinstance(partitioning, Forward):
            return range(self._subtask, self._subtask + 1)
        if isinstance(partitioning, Rescale):
            return rescale_targets(self._subtask, self._vertex.parallelism, self._receivers)
        return range(self._receivers)

    def _one(self, choose: Choose) -> Write:
        flush = self._flush

        def write(value: Any) -> None:
            bucket = choose(value)
            bucket.add(value)
            if len(bucket.values) >= self._limit:
                flush(bucket)

        return write

    def _many(self, gather: WriteRun) -> WriteRun:
        """Gathers in strides after which no bucket is much beyond the limit. Not every record of a
        stride may be there to be gathered."""
        buckets, flush = self._buckets, self._flush
        gathered = [bucket.values for bucket in buckets]

        def gather_stride(records: Iterable[Any], stride: int) -> int:
            before = sum(map(len, gathered))
            gather(records)
            added = sum(map(len, gathered)) - before
            # Only what was alone when it came has seen no other record come, or be dropped.
            alone = stride == 1 and before == 0
            for bucket in buckets:
                # Not the limit that it had before: a flush may have changed it.
                if len(bucket.values) >= self._limit:
                    flush(bucket, alone)
            return added

        def run(values: Iterable[Any]) -> None:
            source = iter(values)
            while True:
                limit = self._limit
                stride = max(limit - max(map(len, gathered)), limit // 8, 1)
                if gather_stride(islice(source, stride), stride) < stride:
                    # Some went no further, or these were the last.
                    value = next(source, _NO_MORE)
                    if value is _NO_MORE:
                        return
                    gather_stride((value,), 1)

        return run

    def _routes(self) -> tuple[dict[Any, Bucket], Choose]:
        """Where keys go, as far as it is known, and how to find out."""
        partitioning = self.edge.partitioning
        assert isinstance(partitioning, ByKey)
        buckets = self._buckets
        max_parallelism, receivers = self._max_parallelism, self._receivers
        routes: dict[Any, Bucket] = {}
        groups = range(max_parallelism)
        by_group = [buckets[subtask_of(group, max_parallelism, receivers)] for group in groups]
        convert = key_converter(partitioning)

        def route(key: Any) -> Bucket:
            call = partitioning.select  # noqa: F841 - by it an error finds its line
            if convert is not None:  # only here: keys that are equal are so when converted
                key = convert(key)
            if key.__class__ not in _PLAIN_KEYS:
                check_stream_key(key)
            bucket = routes.get(key)
            if bucket is None:
                if len(routes) >= MOST_ROUTES:
                    routes.clear()
                routes[key] = bucket = by_group[key_group_of(encode_key(key), max_parallelism)]
            return bucket

        return routes, route

    def _by_key(self) -> tuple[Choose, Step]:
        assert isinstance(self.edge.partitioning, ByKey)
        call = self.edge.partitioning.select
        before, source, given = key_source(call)
        routes, route = self._routes()

        def choose(value: Any) -> Bucket:
            key = call(value)
            try:
                return routes[key]
            except (KeyError, TypeError):
                return route(key)

        # `choose` written out: these lines see most records of most jobs.
        gather = Step(
            *before,
            f"key = {source}",
            "try: bucket = $routes[key]",
            "except (KeyError, TypeError): bucket = $route(key)",
            "bucket.keep(value)",
            *(["bucket.stamp($scope.timestamp)"] if self.edge.stamped else []),
            routes=routes,
            route=route,
            scope=self._scope,
            **given,
        )
        return choose, gather

    def _plainly(self) -> tuple[Choose, Step]:
        choose = self._chooser(self.edge.partitioning)
        return choose, Step("$choose(value).add(value)", choose=choose)

    def _chooser(self, partitioning: Partitioning) -> Choose:
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

    def _custom_chooser(self, partitioning: Custom) -> Choose:
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
        values, timestamps = bucket.values, bucket.timestamps
        count = len(values)
        try:
            body, constant = encode_body(
                timestamps, values, self._freeze is not None, bucket.events, self._shape
            )
        except Exception as error:
            raise UnpicklableError.of(f"a record ({short_repr(values[0])})", error) from None
        if len(body) > LARGEST_PAYLOAD:
            self._flush_halves(bucket)
            return
        self._post(bucket, body, count)
        if count:
            wanted = _TARGET_BYTES * count // max(len(body), 1)
            self._limit = max(1, min(wanted, self._limit * _GROWTH, _MOST_RECORDS))
        bucket.clear()
        if not constant and self._freeze is None:
            self._freeze_from_now_on(fresh and count == 1)

    def _post(self, bucket: Bucket, body: bytes, count: int) -> None:
        if bucket.timetable is not None and bucket.timestamps:
            time = bucket.timetable.note(bucket.timestamps)
        elif not (count or bucket.sent):
            # Whoever sends no record in the epoch holds nobody back: how far it is may be heard
            # before all that others send.
            time = _FIRST
        else:
            time = max(bucket.since, _FIRST + 1)
            # Never back: rows of one producer are to stay in the order in which it made them.
            bucket.since = max(bucket.since, self._watermark)
        self._hand_out(bucket, _FIRST if self.edge.first else time, self._header + body)
        self._counts += count
        bucket.sent = bucket.sent or count > 0

    def _hand_out(self, bucket: Bucket, time: int, payload: bytes) -> None:
        for receiver in bucket.receivers:
            self._outbox.post(receiver, time, self._producer, payload)
            self._posted[receiver] += 1

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
            raise RecordTooLargeError.of(LARGEST_PAYLOAD)
        gathered = [bucket.timestamps, bucket.values]
        whole = [None if part is None else list(part) for part in gathered]
        middle, events = count // 2, list(bucket.events)
        before = [event for event in events if event[0] <= middle]
        behind = [(at - middle, kind, time) for at, kind, time in events if at > middle]
        for half, own in ((slice(0, middle), before), (slice(middle, None), behind)):
            bucket.clear()
            bucket.events.extend(own)
            for part, all_of_it in zip(gathered, whole, strict=True):
                if part is not None and all_of_it is not None:
                    part.extend(all_of_it[half])
            self._flush(bucket, fresh=False)
