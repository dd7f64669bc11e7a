"""A program measured for real, on the contender that needs nothing."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from bench.peers.contenders import BARE, CONTENDERS, PENSTOCK, PYFLINK_PROCESS
from bench.peers.expected import Expected
from bench.peers.inputs import FULL
from bench.peers.program import Program
from bench.peers.rounds import Found, measure, size_of
from bench.peers.sensor_programs import PROGRAMS

_PROGRAMS = {program.name: program for program in PROGRAMS}


@pytest.fixture(autouse=True)
def _own_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _measured(program: Program) -> Found:
    return measure([program], [BARE], 1, True, lambda text: None, lambda found: None)


def test_right_answers_have_a_rate() -> None:
    measured = _measured(_PROGRAMS["keyed_count"])["keyed_count"][BARE]
    assert measured.problem is None
    assert measured.rows == 4 * 5_000
    assert len(measured.rates) == 1


def test_wrong_answers_have_none() -> None:
    program = replace(
        _PROGRAMS["map_filter"], name="wrong", expected=lambda directories, files: Expected(1, 1)
    )
    measured = _measured(program)["wrong"][BARE]
    assert measured.rates == []
    assert measured.problem is not None
    assert measured.problem.startswith("WrongAnswers")


def test_slow_ones_get_less_input_and_micro_batches_whole_ones() -> None:
    program = _PROGRAMS["keyed_count"]
    quick = size_of(program, CONTENDERS[PENSTOCK], False, FULL)
    slow = size_of(program, CONTENDERS[PYFLINK_PROCESS], False, FULL)
    assert slow.files < quick.files / 10
    assert quick.cold % CONTENDERS[PENSTOCK].files_per_epoch == 0
    assert quick.measured % CONTENDERS[PENSTOCK].files_per_epoch == 0


def test_rows_behind_the_mark_begin_where_the_input_was_when_its_answer_came_out() -> None:
    tumbling = _PROGRAMS["tumbling"]
    # Five seconds of a window, and one of waiting: a fifth of a file has been read beyond.
    assert tumbling.rows_before_mark(1000, 2, in_batches=False) == 1100
    assert tumbling.rows_before_mark(1000, 2, in_batches=True) == 1000


def test_every_program_is_sized_for_every_contender_it_runs_on() -> None:
    for program in PROGRAMS:
        assert set(program.calls) <= set(program.rates)
        assert set(program.calls) <= set(CONTENDERS)
