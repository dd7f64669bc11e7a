"""Buffers in order of time compared with plain lists, over random steps."""

from __future__ import annotations

import pickle
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.state import time_buffer
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keyed_state import KeyedState
from penstock.storage.entries import Entry
from penstock.storage.memory_store import MemoryStore

KEYS = st.sampled_from(["a", "b", 3])
TIMES = st.integers(-20, 20)
STEPS = st.lists(
    st.tuples(st.just("add"), KEYS, TIMES, st.none())
    | st.tuples(st.just("between"), KEYS, TIMES, TIMES)
    | st.tuples(st.just("drop"), KEYS, TIMES, st.none())
    | st.tuples(
        st.sampled_from(["epoch", "spill", "forget", "new instance"]),
        st.none(),
        st.none(),
        st.none(),
    ),
    max_size=60,
)


class Buffers:
    def __init__(self, keep: int) -> None:
        self.store = MemoryStore()
        self.epoch = 0
        self.scope = KeyScope()
        self.spilled: list[Entry] = []
        self._keep = keep
        self.open()

    def open(self) -> None:
        base = StateBase("op", 128, lambda: self.store, MemoryStore)
        self.state = KeyedState(
            self.scope, base, (0, 127), lambda: 0, lambda: self.epoch, keep=self._keep
        )
        self.buffer = self.state.buffer("records")

    def end_epoch(self) -> None:
        self.epoch += 1
        changes = [(e.packed(), e.value) for e in [*self.spilled, *self.state.snapshot()]]
        self.spilled.clear()
        self.store.apply(changes, str(self.epoch))
        self.state.end_epoch()


@settings(deadline=None, max_examples=300)
@given(STEPS, st.integers(0, 4), st.sampled_from([0, 1, 2, 64]))
def test_like_a_list(steps, keep, few):
    with patch.object(time_buffer, "_FEW", few):
        _compare(steps, keep)


def _compare(steps, keep):
    buffers, model = Buffers(keep), {}
    for number, (step, key, first, last) in enumerate(steps):
        buffers.scope.key = key
        mine = model.setdefault(key, [])
        if step == "add":
            assert buffers.buffer.add(first, number) or mine
            mine.append((first, number))
        elif step == "between":
            found = list(buffers.buffer.between(first, last))
            assert found == sorted(pair for pair in mine if first <= pair[0] <= last)
        elif step == "drop":
            mine[:] = [pair for pair in mine if pair[0] > first]
            assert buffers.buffer.drop(first) == min((time for time, _ in mine), default=None)
        elif step == "forget":
            buffers.buffer.forget()
        elif step == "spill":
            buffers.spilled += [e for part in buffers.state.spill() for e in part]
        else:
            buffers.end_epoch()
            if step == "new instance":
                buffers.open()
        _counts_are_right(buffers.buffer)
    for key, mine in model.items():
        if key is not None:
            buffers.scope.key = key
            assert list(buffers.buffer.between(-20, 20)) == sorted(mine)
            assert buffers.buffer.drop(20) is None
    buffers.end_epoch()
    assert list(buffers.store.scan(b"")) == []
    buffers.buffer.drop_empty()
    assert (buffers.buffer.pending, buffers.buffer.held) == (0, 0)


def _counts_are_right(buffer):
    """By the records in memory; a removal counts one."""
    pending = settled = 0
    for held in buffer._keys.values():
        assert held.times == sorted(held.records)
        pending += sum(len(held.records.get(time, "-")) for time in held.changed)
        settled += sum(len(held.records[time]) for time in held.records.keys() - held.changed)
    assert (buffer.pending, buffer._settled) == (pending, settled)
    assert buffer._changed == {key: held for key, held in buffer._keys.items() if held.changed}


def test_only_what_is_needed_is_read():
    """Of a key with many records; and what is dropped is not read at all."""
    buffers = Buffers(keep=100)
    buffers.scope.key = "a"
    for time in range(1000):
        buffers.buffer.add(time, time)
    buffers.end_epoch()
    buffers.open()
    loaded = []
    buffers.buffer._loads = lambda raw: loaded.append(raw) or pickle.loads(raw)

    assert [time for time, _ in buffers.buffer.between(990, 2000)] == list(range(990, 1000))
    assert [time for time, _ in buffers.buffer.between(980, 985)] == list(range(980, 986))
    assert [time for time, _ in buffers.buffer.between(985, 992)] == list(range(985, 993))
    assert len(loaded) == 10 + 10
    assert [time for time, _ in buffers.buffer.between(500, 505)] == list(range(500, 506))
    assert len(loaded) == 20 + 6
    assert buffers.buffer.drop(899) == 900
    assert len(loaded) == 26
    assert [time for time, _ in buffers.buffer.between(0, 2000)] == list(range(900, 1000))


def test_the_earlier_half_is_let_go():
    buffers = Buffers(keep=100)
    for key in "ab":
        buffers.scope.key = key
        for time in range(100):
            buffers.buffer.add(time, time)
    buffers.end_epoch()

    assert buffers.buffer.held == 98  # what the middle is goes too
    assert [held.times[0] for held in buffers.buffer._keys.values()] == [51, 51]


def test_what_is_written_is_let_go_whatever_has_changed():
    """Many early times have changed, few later ones have many records that are written."""
    buffers = Buffers(keep=1000)
    buffers.scope.key = "a"
    for number in range(300):
        buffers.buffer.add(5000 + number % 3, number)
    buffers.end_epoch()
    for time in range(100):
        buffers.buffer.add(time, time)
    buffers.buffer.forget()

    assert (buffers.buffer.pending, buffers.buffer.held) == (100, 100)


def test_keys_that_come_and_go_in_an_epoch_are_let_go():
    buffers = Buffers(keep=100)
    for key in range(1000):
        buffers.scope.key = key
        buffers.buffer.add(key, "record")
        assert buffers.buffer.drop(key) is None

    assert (buffers.buffer.pending, buffers.buffer.held) == (0, 1000)
    buffers.buffer.forget()
    assert not buffers.buffer._keys
    assert not buffers.buffer._changed


@pytest.mark.parametrize("dropped", [time_buffer.MAX_TIME, 5000])
def test_times_may_be_any(dropped):
    """The end of time comes to instances that know nothing of a key; bounds may reach beyond it."""
    buffers = Buffers(keep=100)
    buffers.scope.key = "a"
    for time in range(1000):
        buffers.buffer.add(time, time)
    buffers.end_epoch()
    for low, high in [(-(1 << 70), 5), (990, 1 << 70), (-(1 << 70), 1 << 70)]:
        buffers.open()
        found = [time for time, _ in buffers.buffer.between(low, high)]
        assert found == [time for time in range(1000) if low <= time <= high]
    buffers.open()
    assert buffers.buffer.drop(dropped) is None
    buffers.end_epoch()
    assert list(buffers.store.scan(b"")) == []


def test_what_was_dropped_is_not_looked_at_again():
    buffers = Buffers(keep=100)
    buffers.scope.key = "a"
    for time in range(1000):
        buffers.buffer.add(time, time)
    buffers.end_epoch()
    buffers.open()
    scanned = []
    stored = buffers.buffer._stored
    buffers.buffer._stored = lambda *span: (scanned.append(1) or each for each in stored(*span))
    assert list(buffers.buffer.between(990, 990)) == [(990, 990)]
    scanned.clear()
    for last in range(0, 900, 10):
        assert buffers.buffer.drop(last) == last + 1
    assert len(scanned) < 2 * 900
    buffers.buffer.add(5, 5)
    assert buffers.buffer.drop(6) == 891
