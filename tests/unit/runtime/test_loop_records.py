"""Records on their way back are dealt out to the head's subtasks, whatever their number is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.loop_records import entries_of
from penstock.runtime.payload import HEADER_SIZE, Row
from penstock.state.key_groups import UPPER_BOUND, key_group_range

SUBTASKS = st.integers(1, 40)


def _rows(partitions: list[int]) -> list[Row]:
    header = bytes(HEADER_SIZE)
    return [Row(p, 0, 7, n, header + n.to_bytes(4, "big")) for n, p in enumerate(partitions)]


@given(st.data(), SUBTASKS, SUBTASKS)
def test_each_payload_has_one_reader(data: st.DataObject, before: int, after: int) -> None:
    partitions = data.draw(st.lists(st.integers(0, before - 1), max_size=60))
    entries = entries_of("head", before, _rows(partitions))
    assert [entry.value for entry in entries] == [n.to_bytes(4, "big") for n in range(len(entries))]
    for entry in entries:
        readers = [
            subtask
            for subtask in range(after)
            if key_group_range(subtask, UPPER_BOUND, after)[0] <= entry.key_group
            and entry.key_group <= key_group_range(subtask, UPPER_BOUND, after)[1]
        ]
        assert len(readers) == 1


@given(st.data(), SUBTASKS)
def test_the_receiver_reads_in_the_order_of_sending(data: st.DataObject, subtasks: int) -> None:
    partitions = data.draw(st.lists(st.integers(0, subtasks - 1), max_size=60))
    entries = sorted(entries_of("head", subtasks, _rows(partitions)), key=lambda e: e.packed())
    for subtask in range(subtasks):
        first, last = key_group_range(subtask, UPPER_BOUND, subtasks)
        mine = [e.value for e in entries if first <= e.key_group <= last]
        sent = [n.to_bytes(4, "big") for n, p in enumerate(partitions) if p == subtask]
        assert mine == sent


def test_few_payloads_are_spread_over_more_subtasks() -> None:
    entries = entries_of("head", 1, _rows([0, 0, 0, 0]))
    owners = [entry.key_group * 4 // UPPER_BOUND for entry in entries]
    assert owners == [0, 1, 2, 3]
