"""Timetables: what a receiver knows of what is still to come."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.timetables import Arrivals, Timetable
from penstock.runtime.watermarks import MIN_TIMESTAMP

TIMES = st.integers(0, 30)
PAYLOADS = st.lists(st.lists(TIMES, min_size=1, max_size=4), max_size=6)
"""Of one part of a sender's input, in the order in which they leave."""


@given(st.lists(st.lists(PAYLOADS, max_size=3), max_size=3))
def test_nothing_is_older_than_what_was_told(senders: list[list[list[list[int]]]]) -> None:
    rows, arrivals = [], Arrivals()
    for sender, parts in enumerate(senders):
        timetable, sequence = Timetable(), 0
        for part_number, part in enumerate(parts):
            behind = MIN_TIMESTAMP
            for payload in part:
                behind = timetable.note(payload, behind)
                rows.append((behind, sender, sequence, part_number, payload))
                sequence += 1
        for time in timetable.take():
            arrivals.expect(sender, time)
    rows.sort(key=lambda row: row[:3])

    for number, (_, sender, _, _, _) in enumerate(rows):
        to_come = [min(payload) for *_, payload in rows[number:]]
        assert arrivals.arrive(sender) == min(to_come)
    for sender, parts in enumerate(senders):
        for part_number in range(len(parts)):
            left = [row[2] for row in rows if row[1] == sender and row[3] == part_number]
            assert left == sorted(left)


def test_records_without_a_timestamp_hold_time_back() -> None:
    timetable, arrivals = Timetable(), Arrivals()
    payloads: list[list[Any]] = [[5], [None, 7], [9]]
    behind = MIN_TIMESTAMP
    for payload in payloads:
        behind = timetable.note(payload, behind)
    for time in timetable.take():
        arrivals.expect(0, time)
    assert [arrivals.arrive(0) for _ in payloads] == [MIN_TIMESTAMP, MIN_TIMESTAMP, 9]


def test_of_senders_without_a_timetable_nothing_is_known() -> None:
    arrivals = Arrivals()
    arrivals.expect(0, 5)
    assert arrivals.arrive(1) is None
    assert arrivals.arrive(0) == 5
    assert arrivals.arrive(0) is None  # another attempt's, which the driver will refuse
