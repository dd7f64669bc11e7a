"""Timers compared with a plain set, over random registrations, deletions, firings, snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidArgumentError
from penstock.state import timers as module
from penstock.state.backend import KeyScope, StateBase
from penstock.state.timers import MAX_TIME, TimerTable
from penstock.storage.memory_store import MemoryStore

KEYS = st.sampled_from(["a", "b", 1, 2.5, (1, "x"), None])
TIMES = st.integers(-20, 60)
STEPS = st.lists(
    st.tuples(st.just("register"), KEYS, TIMES)
    | st.tuples(st.just("delete"), KEYS, TIMES)
    | st.tuples(st.just("fire"), st.none(), TIMES)
    | st.tuples(st.just("snapshot"), st.none(), st.just(0))
    | st.tuples(st.just("spill"), st.none(), st.just(0))
    | st.tuples(st.just("forget"), st.none(), st.just(0))
    | st.tuples(st.just("new instance"), st.none(), st.just(0)),
    max_size=60,
)


class Timers:
    def __init__(self) -> None:
        self.store = MemoryStore()
        self.epoch = 0
        self.scope = KeyScope()
        self.open()

    def open(self) -> None:
        self.base = StateBase("op", 128, lambda: self.store, MemoryStore)
        self.table = TimerTable("timers", self.scope, self.base, (0, 127))

        self.spilled = []

    def spill(self) -> None:
        """In the middle of an epoch."""
        entries = list(self.table.snapshot(2))
        self.spilled += entries
        self.base.spill.add(entries)

    def snapshot(self) -> None:
        entries = [*self.spilled, *self.table.snapshot(1000)]
        self.spilled = []
        self.epoch += 1
        self.store.apply([(e.packed(), e.value) for e in entries], str(self.epoch))
        self.base.end_epoch()


@settings(deadline=None)
@given(STEPS, st.integers(1, 5))
def test_like_a_set(steps, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", at_once)
        timers, model = Timers(), set()
        for step, key, time in steps:
            timers.scope.key = key
            if step == "register":
                timers.table.register(time)
                model.add((time, key))
            elif step == "delete":
                timers.table.delete(time)
                model.discard((time, key))
            elif step == "fire":
                first = min((timer[0] for timer in model if timer[0] <= time), default=None)
                assert timers.table.first(time) == first
                fired = [(at, found) for at, found, _ in timers.table.due(time)]
                assert [at for at, _ in fired] == sorted(at for at, _ in fired)
                due = {timer for timer in model if timer[0] <= time}
                assert len(fired) == len(due)
                assert set(fired) == due
                model -= due
            elif step == "snapshot":
                timers.snapshot()
            elif step == "spill":
                timers.spill()
            elif step == "forget":
                timers.table.forget()
            else:
                timers.snapshot()
                timers.open()
        timers.snapshot()
        assert len(list(timers.store.scan(b""))) == len(model)


def test_keys_come_back_as_what_they_were():
    timers = Timers()
    for key in (1.0, True, (1.0, "a"), "a"):
        timers.scope.key = key
        timers.table.register(5 if key is not True else 6)
    timers.snapshot()
    timers.open()
    assert [repr(key) for _, key, _ in timers.table.due(6)][-1] == "True"


def test_timers_may_be_set_while_others_fire():
    timers = Timers()
    timers.scope.key = "a"
    timers.table.register(1)
    seen = []
    for time, key, _ in timers.table.due(10):
        seen.append((time, key))
        timers.table.register(time + 3)
    assert seen == [(time, "a") for time in (1, 4, 7, 10)]


def test_memory_may_be_freed_while_timers_fire():
    timers = Timers()
    for time in range(10):
        timers.scope.key = "stored"
        timers.table.register(time)
    timers.snapshot()
    timers.scope.key = "new"
    timers.table.register(4)
    seen = []
    for time, key, _ in timers.table.due(9):
        seen.append((time, key))
        if time == 2:
            timers.table.forget()
        if time == 3:
            timers.spill()
    assert sorted(seen) == sorted([(time, "stored") for time in range(10)] + [(4, "new")])
    timers.snapshot()
    assert list(timers.store.scan(b"")) == []


@pytest.mark.parametrize("time", [-(1 << 63) - 1, 1 << 63])
def test_there_are_times_that_no_timer_can_have(time):
    timers = Timers()
    timers.scope.key = "a"
    with pytest.raises(InvalidArgumentError, match=r"time of a timer must be from -2\*\*63"):
        timers.table.register(time)


def test_firing_reads_little_more_than_what_is_due():
    timers = Timers()
    for number in range(20_000):
        timers.scope.key = number % 100
        timers.table.register(number)
    timers.snapshot()
    timers.open()
    assert len(list(timers.table.due(99))) == 100
    assert timers.table.held <= 5000


def test_deleted_timers_do_not_pile_up() -> None:
    """As of a time-out that every record puts off."""
    timers = Timers()
    timers.scope.key = "k"
    timers.table.first(MAX_TIME)  # all that is stored has been looked at
    for time in range(1, 50_000):
        timers.table.register(time + 1_000_000)
        timers.table.delete(time + 999_999)
    assert len(timers.table._heap) < 10_000
    assert [time for time, _, _ in timers.table.due(MAX_TIME)] == [1_049_999]
