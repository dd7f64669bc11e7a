"""Timetables: what a receiver knows of what is still to come."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph.location import Location
from penstock.graph.partitioning import Broadcast, ByKey, Partitioning
from penstock.runtime.payload import Row, decode_body, read_header
from penstock.runtime.physical import PhysicalEdge, Vertex
from penstock.runtime.timetables import Arrivals, Timetable
from penstock.runtime.watermarks import AHEAD, MIN_TIMESTAMP, WATERMARK
from penstock.runtime.writers import EdgeWriter, Outbox
from penstock.state.backend import KeyScope

RECEIVERS = 3
TIMES = st.integers(0, 30)
PAYLOADS = st.lists(st.lists(TIMES, min_size=1, max_size=4), max_size=6)
"""Of one part of a sender's input, in the order in which they leave."""


@given(st.lists(st.lists(PAYLOADS, max_size=3), max_size=3))
def test_it_is_known_what_is_still_to_come(senders: list[list[list[list[int]]]]) -> None:
    rows, arrivals = [], Arrivals()
    for sender, parts in enumerate(senders):
        timetable, sequence = Timetable(), 0
        for number, part in enumerate(parts):
            timetable.begin_part()
            for payload in part:
                rows.append((timetable.note(payload), sender, sequence, number, payload))
                sequence += 1
            assert timetable.in_part == sum(map(len, part))
        for time in timetable.take():
            arrivals.expect(sender, time)
    rows.sort(key=lambda row: row[:3])

    assert arrivals.expected == len(rows)
    for at, (_, sender, _, _, payload) in enumerate(rows):
        assert arrivals.least is not None
        assert arrivals.least <= min(payload)
        assert arrivals.passed(sender)
        assert arrivals.least == min((min(later[4]) for later in rows[at + 1 :]), default=None)
    for sender, parts in enumerate(senders):
        for number in range(len(parts)):
            left = [row[2] for row in rows if row[1] == sender and row[3] == number]
            assert left == sorted(left)


def test_records_without_a_timestamp_hold_time_back() -> None:
    timetable, arrivals = Timetable(), Arrivals()
    payloads: list[list[Any]] = [[5], [None, 7], [9]]
    for payload in payloads:
        timetable.note(payload)
    for time in timetable.take():
        arrivals.expect(0, time)
    told = []
    for _ in payloads:
        told.append(arrivals.least)
        arrivals.passed(0)
    assert told == [MIN_TIMESTAMP, MIN_TIMESTAMP, 9]


def test_of_senders_without_a_timetable_nothing_is_known() -> None:
    arrivals = Arrivals()
    arrivals.expect(0, 5)
    assert not arrivals.passed(1)
    assert arrivals.least == 5
    assert arrivals.passed(0)
    assert not arrivals.passed(0)  # another attempt's, which the driver will refuse
    assert arrivals.least is None


def test_steps_are_few_and_the_last_payload_is_one() -> None:
    arrivals = Arrivals()
    for time in range(1000):
        arrivals.expect(0, time)
    steps = [arrivals.passed(0) for _ in range(1000)]
    assert 64 <= sum(steps) <= 70
    assert steps[-1]


KEYS = 7


@pytest.mark.parametrize("partitioning", [ByKey(lambda record: record[0]), Broadcast()])
@pytest.mark.parametrize("seed", range(5))
def test_of_writers(partitioning: Partitioning, seed: int) -> None:
    """Records of a part and key come in their order; none is older than what had been told."""
    rng = random.Random(seed)
    rows: list[Row] = []
    posted: Counter[tuple[int, int]] = Counter()
    for sender in range(RECEIVERS):
        outbox, scope = Outbox(), KeyScope()
        edge = PhysicalEdge(0, 0, 1, partitioning, 0, Location("f.py", 1), "edge", True)
        writer = EdgeWriter(edge, (vertex(0), sender), vertex(1), scope, outbox, roving=True)
        writer.begin_epoch(1, b"attempt1", False)
        number = 0
        for part in range(rng.randint(0, 4)):
            writer.begin_part()
            begin = rng.randint(0, 3000)
            for i in range(rng.randint(0, 900)):
                scope.timestamp = begin + i + rng.randint(-50, 50)
                writer.write((rng.randrange(KEYS), part, number, scope.timestamp))
                number += 1
        writer.control((WATERMARK, 5000))
        writer.end_epoch()
        posted.update({(sender, at): count for at, count in enumerate(writer.posted) if count})
        rows += outbox.take()

    received: Counter[tuple[int, int]] = Counter()
    for receiver in range(RECEIVERS):
        arrivals, last = Arrivals(), {}
        own = [row for row in rows if row.partition == receiver]
        for row in sorted(own, key=lambda row: (row.time, row.producer, row.sequence)):
            sender, body = read_header(row.payload).subtask, decode_body(row.payload)
            received[sender, receiver] += 1
            for _, kind, time in body.events:
                if kind == AHEAD:
                    arrivals.expect(sender, time)
            for key, part, number, time in body.values:
                assert arrivals.least is not None
                assert arrivals.least <= time
                assert last.get((sender, part, key), -1) < number
                last[sender, part, key] = number
            if body.values:
                arrivals.passed(sender)
        assert arrivals.least is None
    assert received == posted


def test_a_new_instance_sends_what_one_sends_that_has_worked_before() -> None:
    def sent(writer: EdgeWriter, outbox: Outbox, scope: KeyScope, epoch: int) -> list[Row]:
        writer.forget_time()
        outbox.sequence = 0
        writer.begin_epoch(epoch, b"attempt1", False)
        for i in range(700):
            scope.timestamp = epoch * 1000 + i - i % 40
            writer.write((i % KEYS, i))
        writer.control((WATERMARK, epoch * 1000))
        writer.end_epoch()
        return outbox.take()

    def made() -> tuple[EdgeWriter, Outbox, KeyScope]:
        outbox, scope = Outbox(), KeyScope()
        partitioning = ByKey(lambda record: record[0])
        edge = PhysicalEdge(0, 0, 1, partitioning, 0, Location("f.py", 1), "edge", True)
        return (
            EdgeWriter(edge, (vertex(0), 0), vertex(1), scope, outbox, roving=True),
            outbox,
            scope,
        )

    worked = made()
    for epoch in range(3):
        sent(*worked, epoch)
    again = sent(*worked, 3)
    assert len(again) > 2 * RECEIVERS
    assert again == sent(*made(), 3)


def vertex(index: int) -> Vertex:
    return Vertex(index, f"v{index}", f"v{index}", index, RECEIVERS, 128, (), (), ())
