"""Waiting records compared with a sorted list, over random arrivals, times, snapshots, spills."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidKeyError
from penstock.state import waiting as module
from penstock.state.backend import KeyScope, StateBase
from penstock.state.keyed_state import KeyedState
from penstock.state.keys import encode_key
from penstock.storage.memory_store import MemoryStore

KEYS = st.sampled_from(["a", "b", 1, 2.5, (1, "x"), None])
TIMES = st.integers(-20, 60)
ARRIVE = st.tuples(st.just("arrive"), st.lists(st.tuples(TIMES, KEYS), max_size=8))
STEPS = st.lists(
    ARRIVE
    | ARRIVE
    | st.tuples(st.just("take"), TIMES)
    | st.tuples(st.sampled_from(["room", "snapshot", "new instance"]), st.none()),
    max_size=40,
)


class Waiting:
    """A table over a store in memory, driven as a task drives it."""

    def __init__(self, keep: int = 1 << 62, key_groups: tuple[int, int] = (0, 127)) -> None:
        self.store = MemoryStore()
        self.scope = KeyScope()
        self.epoch = 0
        self.late: list[Any] = []
        self.reached = -100
        self._keep = keep
        self._key_groups = key_groups
        self.open()

    def open(self) -> None:
        base = StateBase("op", 128, lambda: self.store, MemoryStore)
        self.segments: list[Any] = []
        self.state = KeyedState(
            self.scope,
            base,
            self._key_groups,
            now=lambda: 0,
            chunk_number=lambda: self.epoch << 16 | len(self.segments),
            keep=self._keep,
        )
        self.table = self.state.waiting("waiting")

    def add(self, *records: tuple[Any, Any, Any], channel: Any = (0, 0, 0)) -> None:
        def arriving() -> Any:
            for self.scope.timestamp, self.scope.key, value in records:
                yield value

        self.scope.channel = channel
        self.table.add(arriving(), self.reached, self.late.append)

    def take(self, until: int) -> list[Any]:
        self.reached = max(self.reached, until)
        found = []
        while due := self.table.take(until):
            found += [(time, key, value) for time, _, _, _, key, value in due]
            self.make_room()
        return found

    def make_room(self) -> None:
        if self.state.overflowing():
            self.segments.append([entry for part in self.state.spill() for entry in part])

    def snapshot(self) -> None:
        """In the order of the parts, as a store catches up with them."""
        self.segments.append(self.state.snapshot())
        for entries in self.segments:
            self.store.apply([(e.packed(), e.value) for e in entries], str(self.epoch))
        self.segments = []
        self.state.end_epoch()
        self.epoch += 1


@settings(deadline=None)
@given(STEPS, st.sampled_from([0, 1, 3, 1 << 62]), st.integers(1, 5), st.data())
def test_like_a_sorted_list(steps: Any, keep: int, at_once: int, data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", at_once)
        waiting, model, count = Waiting(keep), [], 0
        for step, what in steps:
            if step == "arrive":
                channel = (0, 0, data.draw(st.integers(0, 2)))
                records = []
                for time, key in what:
                    count += 1
                    records.append((time, key, count))
                    if time > waiting.reached:
                        model.append((time, encode_key(key), channel, count, key))
                waiting.add(*records, channel=channel)
            elif step == "take":
                due = sorted(record for record in model if record[0] <= what)
                expected = [(time, key, number) for time, _, _, number, key in due]
                assert waiting.take(what) == expected
                model = [record for record in model if record[0] > what]
            elif step == "room":
                waiting.make_room()
            else:
                waiting.snapshot()
                if step == "new instance":
                    waiting.open()
        waiting.snapshot()
        assert len(list(waiting.store.scan(b""))) == len(model)
        assert len(waiting.take(1000)) == len(model)
        waiting.snapshot()
        assert list(waiting.store.scan(b"")) == []


def test_a_record_is_written_once_and_not_at_all_if_it_does_not_wait() -> None:
    waiting = Waiting()
    waiting.add((5, "a", "x"), (9, "a", "y"))
    assert waiting.take(6) == [(5, "a", "x")]
    assert len(list(waiting.state.snapshot())) == 1
    waiting.add((7, "b", "z"))
    assert [entry.value is None for entry in waiting.state.snapshot()] == [False]
    assert waiting.take(10) == [(7, "b", "z"), (9, "a", "y")]
    assert [entry.value for entry in waiting.state.snapshot()] == [None, None]


def test_what_fits_in_memory_is_not_read_back() -> None:
    waiting = Waiting()
    waiting.take(0)
    waiting.add(*((time, "a", time) for time in range(1, 100)))
    waiting.snapshot()
    waiting.store.reset()  # so that whoever reads finds nothing
    assert len(waiting.take(200)) == 99


def test_reading_back_takes_little_more_than_what_is_due() -> None:
    waiting = Waiting()
    waiting.add(*((time, time % 100, time) for time in range(20_000)))
    waiting.snapshot()
    waiting.open()
    assert len(waiting.take(99)) == 100
    assert waiting.table.held <= 5000


def test_keys_come_back_as_what_they_were() -> None:
    waiting = Waiting()
    waiting.add((1, 1.0, "x"), (2, True, "y"), (3, (1.0, "a"), "z"))
    waiting.snapshot()
    waiting.open()
    assert [repr(key) for _, key, _ in waiting.take(9)] == ["1.0", "True", "(1.0, 'a')"]


@pytest.mark.parametrize("time", [None, -100, 1 << 63])
def test_what_cannot_wait_is_refused(time: int | None) -> None:
    waiting = Waiting()
    waiting.add((time, "a", "x"), (5, "a", "y"))
    assert waiting.late == ["x"]
    assert waiting.take(10) == [(5, "a", "y")]


def test_a_key_of_another_subtask() -> None:
    waiting = Waiting(key_groups=(0, 0))
    with pytest.raises(InvalidKeyError, match="key selector must be deterministic"):
        waiting.add(*((1, f"key {n}", n) for n in range(20)))


def test_many_records_and_frequent_watermarks() -> None:
    """What arrives between two watermarks is put among what waits, not sorted with all of it."""
    waiting = Waiting()
    waiting.add(*((time, "a", time) for time in range(1000, 3000)))
    for time in range(500):
        waiting.add((time + 1, "b", "soon"), (2500, "b", time))
        assert waiting.take(time + 1) == [(time + 1, "b", "soon")]
    last = [value for time, key, value in waiting.take(3000) if key == "b"]
    assert last == list(range(500))
