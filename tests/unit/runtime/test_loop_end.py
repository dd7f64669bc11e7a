"""When the head of a loop is idle, and that it never tells of the end of time by itself."""

from __future__ import annotations

from penstock.runtime.input_time import LoopEnd
from penstock.runtime.watermarks import ACTIVE, IDLE, MAX_TIMESTAMP, WATERMARK, Control

END = (WATERMARK, MAX_TIMESTAMP)


def epochs(*, ends_in: int, everybody_from: int, count: int) -> list[list[Control]]:
    """What a head says in each epoch if its own input ends in one and all input before another."""
    loop = LoopEnd()
    said = []
    for epoch in range(count):
        loop.begin_epoch()
        controls = [(WATERMARK, epoch)] + ([END] if epoch == ends_in else [])
        said.append([*loop.held_back(controls), *loop.waiting(epoch >= everybody_from)])
    return said


def test_idle_while_others_have_input() -> None:
    said = epochs(ends_in=1, everybody_from=4, count=6)
    assert [controls[1:] for controls in said] == [[], [], [(IDLE, 0)], [], [(ACTIVE, 0)], []]


def test_the_last_whose_input_ends_is_never_idle() -> None:
    """Else nothing would hold back what follows in the epoch in which the last input ends."""
    assert [controls[1:] for controls in epochs(ends_in=3, everybody_from=4, count=6)] == [[]] * 6


def test_other_watermarks_pass_and_the_last_does_not() -> None:
    said = epochs(ends_in=2, everybody_from=3, count=4)
    assert [controls[0] for controls in said] == [(WATERMARK, epoch) for epoch in range(4)]
    assert END not in [control for controls in said for control in controls]
