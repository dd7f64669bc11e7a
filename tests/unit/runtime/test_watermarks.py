"""The valve: the slowest channel that is not idle decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.watermarks import ACTIVE, IDLE, MIN_TIMESTAMP, WATERMARK, Valve

A, B = (0, 0), (0, 1)


def test_the_slowest_channel_decides():
    valve = Valve([A, B])
    assert valve.receive(A, (WATERMARK, 10)) == []
    assert valve.receive(B, (WATERMARK, 5)) == [(WATERMARK, 5)]
    assert valve.receive(B, (WATERMARK, 20)) == [(WATERMARK, 10)]
    assert valve.watermark == 10


def test_a_watermark_that_goes_back_says_nothing():
    valve = Valve([A])
    assert valve.receive(A, (WATERMARK, 10)) == [(WATERMARK, 10)]
    assert valve.receive(A, (WATERMARK, 9)) == []
    assert valve.watermark == 10


def test_an_idle_channel_holds_nobody_back():
    valve = Valve([A, B])
    assert valve.receive(A, (WATERMARK, 10)) == []
    assert valve.receive(B, (IDLE, 0)) == [(WATERMARK, 10)]
    assert valve.receive(A, (WATERMARK, 30)) == [(WATERMARK, 30)]
    assert valve.receive(B, (WATERMARK, 20)) == []
    assert valve.receive(A, (WATERMARK, 40)) == []


def test_if_all_are_idle_so_is_the_task():
    valve = Valve([A, B])
    valve.receive(A, (WATERMARK, 10))
    assert valve.receive(A, (IDLE, 0)) == []
    assert valve.receive(B, (IDLE, 0)) == [(WATERMARK, 10), (IDLE, 0)]
    assert valve.receive(B, (ACTIVE, 0)) == [(ACTIVE, 0)]


def test_a_new_epoch_begins_where_the_task_is():
    valve = Valve([A, B], 7)
    valve.receive(A, (WATERMARK, 10))
    valve.begin_epoch()
    assert valve.receive(B, (WATERMARK, 12)) == []
    assert valve.receive(A, (WATERMARK, 11)) == [(WATERMARK, 11)]


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(-5, 50))))
def test_the_watermark_is_the_least_of_the_channels_best(told):
    valve, best = Valve([A, B]), {A: MIN_TIMESTAMP, B: MIN_TIMESTAMP}
    passed = []
    for channel, time in told:
        passed += valve.receive(channel, (WATERMARK, time))
        best[channel] = max(best[channel], time)
        assert valve.watermark == min(best.values())
    assert [time for _, time in passed] == sorted({time for _, time in passed})


def test_splits_that_are_all_idle_do_not_leap():
    valve = Valve([A, B], leap=False)
    valve.receive(A, (WATERMARK, 10))
    valve.receive(A, (IDLE, 0))
    assert valve.receive(B, (IDLE, 0)) == [(IDLE, 0)]
    assert valve.watermark == MIN_TIMESTAMP


def test_restored_channels_are_where_they_were():
    valve = Valve([], 3)
    valve.restore(A, 10, False)
    valve.restore(B, 5, True)
    assert valve.changes() == [(WATERMARK, 10)]
    assert valve.receive(B, (ACTIVE, 0)) == []
    assert valve.receive(A, (WATERMARK, 20)) == []
    assert valve.receive(B, (WATERMARK, 15)) == [(WATERMARK, 15)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B]),
            st.sampled_from([WATERMARK, WATERMARK, IDLE, ACTIVE]),
            st.integers(0, 20),
        )
    )
)
def test_a_valve_is_never_behind_its_slowest_active_channel(told):
    valve, best, idle = Valve([A, B]), {A: MIN_TIMESTAMP, B: MIN_TIMESTAMP}, set()
    for channel, kind, time in told:
        before = valve.watermark
        valve.receive(channel, (kind, time))
        if kind == WATERMARK:
            best[channel] = max(best[channel], time)
        (idle.add if kind == IDLE else idle.discard)(channel)
        active = [at for found, at in best.items() if found not in idle]
        assert valve.watermark >= before
        assert valve.watermark >= (min(active) if active else max(best.values()))
        assert valve.idle is (not active)
