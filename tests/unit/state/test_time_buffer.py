"""Buffers in order of time compared with plain lists, over random steps."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(deadline=None)
@given(STEPS, st.integers(0, 4))
def test_like_a_list(steps, keep):
    buffers, model = Buffers(keep), {}
    for number, (step, key, first, last) in enumerate(steps):
        buffers.scope.key = key
        mine = model.setdefault(key, [])
        if step == "add":
            assert buffers.buffer.add(first, number) == (not mine)
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
    for key, mine in model.items():
        if key is not None:
            buffers.scope.key = key
            assert list(buffers.buffer.between(-20, 20)) == sorted(mine)
            assert buffers.buffer.drop(20) is None
    buffers.end_epoch()
    assert list(buffers.store.scan(b"")) == []
