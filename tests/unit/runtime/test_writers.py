"""The sending end of an edge: who gets what, and that a record is sent as it was emitted."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Types
from penstock.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    RecordTooLargeError,
    TypeMismatchError,
    UnpicklableError,
)
from penstock.graph.location import Location
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
)
from penstock.runtime import writers
from penstock.runtime.loops import Step, before
from penstock.runtime.payload import RECORDS, decode_body, read_header
from penstock.runtime.physical import PhysicalEdge, Vertex
from penstock.runtime.watermarks import IDLE, MIN_TIMESTAMP, WATERMARK
from penstock.runtime.writers import ChangeableRecords, EdgeWriter, Outbox
from penstock.state.backend import KeyScope
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import encode_key

TOKEN = b"attempt1"


def vertex(index: int, parallelism: int) -> Vertex:
    return Vertex(index, f"v{index}", f"v{index}", index, parallelism, 128, (), (), ())


class Sender:
    """A writer with its outbox, in one epoch."""

    def __init__(
        self,
        partitioning: Partitioning,
        receivers: int = 4,
        senders: int = 4,
        subtask: int = 0,
        stamped: bool = False,
        frozen: bool = False,
    ) -> None:
        edge = PhysicalEdge(5, 1, 2, partitioning, 0, Location("f.py", 1), "edge", stamped)
        self.scope = KeyScope()
        self.outbox = Outbox()
        self.writer = EdgeWriter(
            edge, (vertex(1, senders), subtask), vertex(2, receivers), self.scope, self.outbox
        )
        self.epoch = 0
        self.begin(frozen)

    def begin(self, frozen: bool = False) -> None:
        self.epoch += 1
        self.writer.begin_epoch(self.epoch, TOKEN, frozen)

    def send(self, *values: Any) -> None:
        for value in values:
            self.writer.write(value)

    def received(self) -> dict[int, list[Any]]:
        """The values per receiver, after the epoch's end."""
        self.writer.end_epoch()
        found = defaultdict(list)
        for row in self.outbox.take():
            found[row.partition].extend(decode_body(row.payload).values)
        return dict(found)


def test_forward_goes_to_the_same_subtask():
    sender = Sender(Forward(), subtask=2)
    sender.send(1, 2, 3)
    assert sender.received() == {2: [1, 2, 3]}


def test_global_goes_to_the_first():
    sender = Sender(Global(), subtask=2)
    sender.send(1, 2, 3)
    assert sender.received() == {0: [1, 2, 3]}


def test_broadcast_goes_to_all_and_is_encoded_once():
    sender = Sender(Broadcast(), receivers=3)
    sender.send("a", "b")
    assert sender.writer.end_epoch() == 2
    rows = sender.outbox.rows
    assert {0, 1, 2} == {row.partition for row in rows}
    assert len({id(row.payload) for row in rows}) == 2
    assert sender.received() == {receiver: ["a", "b"] for receiver in range(3)}


@pytest.mark.parametrize("subtask", range(4))
def test_rebalance_goes_round(subtask):
    sender = Sender(Rebalance(), receivers=3, subtask=subtask)
    sender.send(*range(9))
    found = sender.received()
    assert {receiver: len(values) for receiver, values in found.items()} == {0: 3, 1: 3, 2: 3}


def test_rebalancing_senders_begin_at_different_receivers():
    firsts = set()
    for subtask in range(4):
        sender = Sender(Rebalance(), subtask=subtask)
        sender.send("first")
        firsts.update(sender.received())
    assert firsts == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("senders", "receivers", "targets"),
    [
        (2, 4, [{0, 1}, {2, 3}]),
        (4, 2, [{0}, {0}, {1}, {1}]),
        (2, 3, [{0}, {1, 2}]),
        (3, 3, [{0}, {1}, {2}]),
    ],
)
def test_rescale_goes_to_its_own_few(senders, receivers, targets):
    for subtask, expected in enumerate(targets):
        sender = Sender(Rescale(), receivers, senders, subtask)
        sender.send(*range(12))
        found = sender.received()
        assert set(found) == expected
        assert len({len(values) for values in found.values()}) == 1


def test_shuffle_is_random_but_the_same_in_each_attempt():
    found = []
    for _ in range(2):
        sender = Sender(Shuffle())
        sender.send(*range(400))
        found.append(sender.received())
    assert found[0] == found[1]
    assert sorted(chain.from_iterable(found[0].values())) == list(range(400))
    assert all(len(values) > 50 for values in found[0].values())


@given(
    st.lists(st.integers(-50, 50) | st.text(max_size=3) | st.booleans()),
    st.integers(1, 9),
)
def test_by_key_goes_to_the_owner_of_the_key(keys, receivers):
    sender = Sender(ByKey(lambda record: record[0]), receivers)
    records = list(enumerate(keys))
    sender.send(*((key, number) for number, key in records))
    sender.writer.end_epoch()
    seen = []
    for row in sender.outbox.take():
        values = decode_body(row.payload).values
        for key, _ in values:
            assert subtask_of(key_group_of(encode_key(key), 128), 128, receivers) == row.partition
        seen.extend(values)
    assert sorted(seen, key=lambda value: value[1]) == [(key, n) for n, key in records]


def test_order_is_kept_per_receiver():
    sender = Sender(ByKey(lambda record: record % 7), receivers=3)
    sender.send(*range(50_000))
    for values in sender.received().values():
        assert values == sorted(values)


@pytest.mark.parametrize("key", [[1], float("nan"), (1, {}), object()])
def test_bad_keys_are_refused(key):
    sender = Sender(ByKey(lambda record: key))
    with pytest.raises(InvalidKeyError):
        sender.send(1)


def test_routes_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(writers, "MOST_ROUTES", 3)
    sender = Sender(ByKey(lambda record: record))
    sender.send(*range(20), *range(20))
    assert sorted(chain.from_iterable(sender.received().values())) == sorted([*range(20)] * 2)


def test_custom_asks_the_user():
    sender = Sender(Custom(lambda key, n: key % n, lambda record: record[0]), receivers=3)
    sender.send((0, "a"), (4, "b"), (3, "c"))
    assert sender.received() == {0: [(0, "a"), (3, "c")], 1: [(4, "b")]}


@pytest.mark.parametrize("answer", [-1, 3, 1.0, None, "0"])
def test_custom_answers_are_checked(answer):
    sender = Sender(Custom(lambda key, n: answer, lambda record: record), receivers=3)
    with pytest.raises(InvalidArgumentError, match="from 0 to 2"):
        sender.send(1)


def test_timestamps_travel_with_their_records():
    sender = Sender(ByKey(lambda record: "k"), receivers=1, stamped=True)
    for number, timestamp in enumerate([5, None, 7]):
        sender.scope.timestamp = timestamp
        sender.send(number)
    sender.writer.end_epoch()
    bodies = [decode_body(row.payload) for row in sender.outbox.take()]
    assert [stamp for body in bodies for stamp in body.timestamps or ()] == [5, None, 7]
    assert [value for body in bodies for value in body.values] == [0, 1, 2]


def test_headers_name_edge_sender_and_attempt():
    sender = Sender(Forward(), subtask=3)
    sender.send(1)
    (row,) = sender.outbox.take()
    header = read_header(row.payload)
    assert (header.kind, header.edge, header.vertex, header.subtask) == (RECORDS, 5, 1, 3)
    assert header.token == TOKEN
    assert row.producer == (1 << 32) | 3


def test_sequence_numbers_rise():
    sender = Sender(Rebalance())
    sender.send(*range(100))
    sender.writer.end_epoch()
    numbers = [row.sequence for row in sender.outbox.take()]
    assert numbers == sorted(set(numbers))


# How much at once


def test_payloads_grow_with_small_records_and_stay_near_the_target():
    sender = Sender(Forward())
    sender.send(*["x" * 100] * 20_000)
    sender.writer.end_epoch()
    rows = sender.outbox.take()
    counts = [len(decode_body(row.payload).values) for row in rows]
    assert counts[:4] == [1, 8, 64, 512]
    assert sum(counts) == 20_000
    assert max(len(row.payload) for row in rows) < 2 * 64 * 1024


def test_tiny_records_have_a_most_number():
    sender = Sender(Forward())
    sender.send(*[0] * 50_000)
    sender.writer.end_epoch()
    assert max(len(decode_body(row.payload).values) for row in sender.outbox.take()) == 512


def test_keys_of_a_declared_type_are_converted():
    """Whatever is equal when it has been converted goes the same way."""
    sender = Sender(ByKey(lambda record: record[0], key_type=Types.DOUBLE()), frozen=True)
    sender.send((7, "int"), (7.0, "float"), (np.float64(7), "numpy"), (7, "again"))
    (values,) = sender.received().values()
    assert [name for _, name in values] == ["int", "float", "numpy", "again"]
    lists = Sender(ByKey(lambda record: record, key_type=Types.TUPLE([Types.LONG()])), frozen=True)
    lists.send([1], (1,), [1])
    (values,) = lists.received().values()
    assert values == [[1], (1,), [1]]
    with pytest.raises(TypeMismatchError):
        sender.send(("seven", "str"))


def test_large_records_go_one_by_one():
    sender = Sender(Forward())
    sender.send(*[b"x" * 300_000] * 3)
    assert [len(decode_body(row.payload).values) for row in sender.outbox.take()] == [1, 1, 1]


def test_the_outbox_knows_how_much_waits():
    sender = Sender(Forward())
    sender.send(1)
    assert sender.outbox.bytes == len(sender.outbox.rows[0].payload)
    sender.outbox.take()
    assert sender.outbox.bytes == 0


def test_a_record_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(writers, "LARGEST_PAYLOAD", 1000)
    sender = Sender(Forward())
    sender.send("small")
    with pytest.raises(RecordTooLargeError, match="split it"):
        sender.send(*["x" * 2000] * 8)


def test_what_is_left_of_a_failed_epoch_is_not_sent():
    sender = Sender(Forward())
    sender.send(1, 2, 3)
    sender.outbox.take()
    sender.begin()
    sender.send(7)
    assert sender.received() == {0: [7]}


# Records that change after they were emitted


@pytest.mark.parametrize("partitioning", [Forward(), Broadcast(), ByKey(lambda record: 1)])
def test_changes_after_emission_are_not_sent(partitioning):
    """The first record of the edge is changeable, so each is frozen as it is emitted."""
    sender = Sender(partitioning)
    record = [0]
    for number in range(100):
        record[0] = number
        sender.send(record)
        record[0] = -1
    for values in sender.received().values():
        assert values == [[number] for number in range(100)]


def test_frozen_records_stay_frozen_in_later_epochs():
    sender = Sender(Forward())
    sender.send([0])
    sender.received()
    for _ in range(3):
        sender.begin()
        record = [1]
        sender.send(record, record)
        record[0] = 2
        assert sender.received() == {0: [[1], [1]]}


def test_constants_and_changeable_records_may_mix_on_a_frozen_edge():
    sender = Sender(Forward(), frozen=True)
    values = [1, "a", [2], (3, {}), None, b"x"]
    sender.send(*values)
    assert sender.received() == {0: values}


def test_a_changeable_record_among_constants_asks_for_another_run():
    sender = Sender(Forward())
    sender.send(1)
    sender.send(2, [3])
    with pytest.raises(ChangeableRecords) as found:
        sender.writer.end_epoch()
    assert found.value.edge == 5
    sender = Sender(Forward(), frozen=True)
    sender.send(1, 2, [3])
    assert sender.received() == {0: [1, 2, [3]]}


def test_a_lone_changeable_record_at_the_end_is_not_sent_late():
    sender = Sender(Forward())
    sender.send(1)
    record = [2]
    sender.send(record)  # waits: it is alone, but not sent at once
    record[0] = -1
    with pytest.raises(ChangeableRecords):
        sender.writer.end_epoch()


def test_freezing_does_not_touch_what_waits_for_other_receivers():
    sender = Sender(Custom(lambda key, n: key, lambda record: record[0]), receivers=2)
    sender.send((1, ["changeable"]))
    sender.send((0, b"a"), (0, b"b"), (1, b"c"), (0, ["d"]))
    assert sender.received() == {
        0: [(0, b"a"), (0, b"b"), (0, ["d"])],
        1: [(1, ["changeable"]), (1, b"c")],
    }


@pytest.mark.parametrize("partitioning", [ByKey(lambda record: record % 7), Rebalance(), Forward()])
def test_a_run_arrives_like_its_records_one_by_one(partitioning):
    one_by_one, at_once = Sender(partitioning, 3), Sender(partitioning, 3)
    one_by_one.send(*range(30_000))
    at_once.writer.run(iter(range(30_000)))
    assert at_once.received() == one_by_one.received()


def test_a_run_of_large_records_is_not_gathered():
    sender = Sender(Forward())
    waiting = 0

    def records():
        nonlocal waiting
        for _ in range(5):
            waiting = max(waiting, sum(len(b.values) for b in sender.writer._buckets))
            yield b"x" * 300_000

    sender.writer.run(records())
    assert waiting == 0
    assert len(sender.outbox.take()) == 5


def test_a_run_of_changeable_records_is_frozen_record_by_record():
    sender = Sender(ByKey(lambda record: record["k"]), receivers=2)

    def records():
        record = {}
        for number in range(100):
            record.update(k=number % 5, number=number)
            yield record

    sender.writer.run(records())
    found = chain.from_iterable(sender.received().values())
    assert sorted(record["number"] for record in found) == list(range(100))


def _kept(sender: Sender, kept: set[int], records: Any) -> Any:
    """A run of records that are all the same list, of which a filter behind keeps some."""
    record = [0]

    def change(value):
        record[:] = value
        return record

    run = before(
        sender.writer.run,
        Step("if not $call(value): continue", call=lambda record: record[0] in kept),
    )
    before(run, Step("value = $call(value)", call=change))(records)
    return sender.received()


@pytest.mark.parametrize("first", range(4))
def test_a_record_is_not_changed_by_those_that_a_filter_drops(first):
    sender = Sender(Forward())
    assert _kept(sender, {first}, [[n] for n in range(5)]) == {0: [[first]]}


@given(st.sets(st.integers(0, 19)), st.integers(1, 3))
def test_filters_before_a_run_of_changeable_records(kept, receivers):
    partitioning = Custom(lambda key, n: key % n, lambda record: record[0])
    records = [[n] for n in range(20)]
    try:
        found = _kept(Sender(partitioning, receivers), kept, records)
    except ChangeableRecords:
        found = _kept(Sender(partitioning, receivers, frozen=True), kept, records)
    assert sorted(chain.from_iterable(found.values())) == [[n] for n in sorted(kept)]


def test_a_record_that_waited_is_not_taken_for_a_new_one():
    """Large records of another receiver make payloads so small that it is enough for one."""
    sender = Sender(Custom(lambda key, n: key, lambda record: record[0]), receivers=2)
    sender.send((0, "teaches"))
    record = [1]

    def records():
        yield 1, record
        record[0] = -1
        yield from [(0, "x" * 300_000)] * 8

    with pytest.raises(ChangeableRecords):
        sender.writer.run(records())
        sender.writer.end_epoch()


def test_payloads_are_counted_by_receiver():
    sender = Sender(ByKey(lambda record: record), receivers=4)
    sender.send(*range(1000))
    sender.writer.end_epoch()
    counted = Counter(row.partition for row in sender.outbox.take())
    assert sender.writer.posted == [counted[receiver] for receiver in range(4)]
    sender.begin()
    assert sender.writer.posted == [0] * 4


def test_small_records_then_large_ones(monkeypatch):
    """Each of the large ones could go alone."""
    monkeypatch.setattr(writers, "LARGEST_PAYLOAD", 1000)
    sender = Sender(Forward())
    sender.send(0, *["x" * 900] * 8)
    assert sender.received() == {0: [0, *["x" * 900] * 8]}


def test_what_cannot_be_pickled_is_named():
    for frozen in (False, True):
        sender = Sender(Forward(), frozen=frozen)
        with pytest.raises(UnpicklableError, match=r"a record .*generator"):
            sender.send(x for x in ())


# Control events


def told(sender: Sender) -> dict[int, list[Any]]:
    """What each receiver is told, records and control events in order."""
    sender.writer.end_epoch()
    found: dict[int, list[Any]] = defaultdict(list)
    for row in sender.outbox.take():
        body, start = decode_body(row.payload), 0
        for at, kind, time in body.events:
            found[row.partition] += [*body.values[start:at], (kind, time)]
            start = at
        found[row.partition] += body.values[start:]
    return dict(found)


def test_watermarks_stay_between_their_records():
    sender = Sender(Forward(), stamped=True)
    sender.send(1, 2)
    sender.writer.control((WATERMARK, 10))
    sender.writer.control((WATERMARK, 20))
    sender.send(3)
    sender.writer.control((WATERMARK, 30))
    assert told(sender) == {0: [1, 2, (WATERMARK, 20), 3, (WATERMARK, 30)]}


def test_every_receiver_hears_of_the_watermark_in_every_epoch():
    sender = Sender(ByKey(lambda record: record), receivers=3, stamped=True)
    sender.writer.control((WATERMARK, 10))
    assert told(sender) == {n: [(WATERMARK, 10)] for n in range(3)}
    sender.begin()
    sender.writer.control((IDLE, 0))
    assert told(sender) == {n: [(IDLE, 0), (WATERMARK, 10), (IDLE, 0)] for n in range(3)}


def test_edges_without_timestamps_have_no_control_events():
    sender = Sender(Forward())
    sender.writer.control((WATERMARK, 10))
    assert told(sender) == {}


def test_records_whose_shape_changes_do_not_travel_together() -> None:
    """A run has one shape, which a source tells before it emits the first of them."""
    sender = Sender(Forward(), receivers=1, senders=1)
    sender.writer.records_are("(i)")
    sender.writer.run([(1,), (2,), (3,)])
    sender.writer.records_are("(s)")
    sender.writer.run([("a",)])
    sender.writer.records_are(None)
    sender.writer.run([(b"x",), ((1, 2),)])
    assert sender.received() == {0: [(1,), (2,), (3,), ("a",), (b"x",), ((1, 2),)]}


def test_a_declared_type_stays_what_it_is() -> None:
    sender = Sender(Forward(), receivers=1, senders=1)
    sender.writer._shape, sender.writer._declared = "i", True
    sender.writer.records_are("(s)")
    sender.send(1, 2)
    assert sender.received() == {0: [1, 2]}


def times_of(sender: Sender) -> list[int]:
    return [row.time for row in sender.outbox.take()]


def post(sender: Sender, value: Any) -> None:
    """A payload with one record."""
    sender.send(value)
    for bucket in sender.writer._buckets:
        if bucket.values:
            sender.writer._flush(bucket)


def test_payloads_say_how_far_time_was_when_they_began() -> None:
    sender = Sender(Forward(), receivers=1, senders=1, stamped=True)
    for at in (1, 2, 3):
        sender.writer.control((WATERMARK, at * 10))
        post(sender, at)
    assert times_of(sender) == [MIN_TIMESTAMP + 1, 10, 20]
    sender.begin()
    sender.send("next epoch")
    sender.writer.end_epoch()
    assert set(times_of(sender)) == {30}


def test_time_of_payloads_never_goes_back() -> None:
    """Rows of a producer would change places."""
    sender = Sender(Forward(), receivers=1, senders=1, stamped=True)
    for at in (20, 10, 15, 30, 5):
        sender.writer.control((WATERMARK, at))
        post(sender, at)
    times = times_of(sender)
    assert times == sorted(times)


def test_who_sends_no_record_is_heard_first() -> None:
    """In every epoch anew, and by receiver."""
    sender = Sender(ByKey(lambda value: value), receivers=2, senders=1, stamped=True)
    sender.writer.control((WATERMARK, 10))
    sender.writer.end_epoch()
    assert times_of(sender) == [MIN_TIMESTAMP] * 2
    sender.begin()
    post(sender, "to one of them")
    sender.writer.end_epoch()
    assert sorted(times_of(sender)) == [MIN_TIMESTAMP, 10, 10]
    sender.begin()
    sender.writer.end_epoch()
    assert times_of(sender) == [MIN_TIMESTAMP] * 2


def test_what_is_to_be_read_first_is() -> None:
    sender = Sender(Forward(), receivers=1, senders=1)
    later = sender.writer
    sender.writer = EdgeWriter(
        replace(later.edge, first=True),
        (vertex(1, 1), 0),
        vertex(2, 1),
        sender.scope,
        sender.outbox,
    )
    sender.begin()
    sender.send("x")
    sender.writer.end_epoch()
    assert times_of(sender) == [MIN_TIMESTAMP]
