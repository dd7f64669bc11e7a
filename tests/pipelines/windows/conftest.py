"""`golden` compares a drawing with what a program makes of it, in several ways of running it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drawn_runs import (
    Build,
    clocked_epochs,
    drawn_stream,
    events_of,
    moves_clock,
    play_as_job,
    play_by_hand,
    scripted_time,
    sequences,
    set_clock,
)
from drawn_time import parse

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

# By hand on the harness, every output is seen right where it comes. "restored" goes on from a
# checkpoint after every single event. "asked" windows ask their trigger for each element, also
# where they have a shorter way. The jobs have all in one epoch, or each event in its own.
LOCAL = ["by_hand", "restored", "asked", "asked_restored", "one_epoch", "own_epochs"]
ON_SPARK = [pytest.param("spark", marks=pytest.mark.spark)]
BY_HAND, JOBS = LOCAL[:4], LOCAL[4:]

Golden = Callable[..., None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests marked by `also_on_spark` run there too."""
    spark = ON_SPARK if getattr(metafunc.function, "also_on_spark", False) else []
    for fixture, ways in (("golden", LOCAL), ("golden_job", JOBS), ("golden_by_hand", BY_HAND)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [*ways, *spark], indirect=True)


def _env(executor: str, directory: Path) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("penstock.executor", executor)
    configuration.set_string("parallelism.default", "1")
    configuration.set_string("state.backend.local-dir", str(directory / "stores"))
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """To be called with a drawing and a function that makes its program.

    `dropped` is how many late elements are to be dropped, and `leaves` whether state is to be left
    in the end, as windows without an end do.
    """
    return _golden(request, tmp_path)


@pytest.fixture
def golden_job(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """For programs of several operators, which cannot be played by hand."""
    return _golden(request, tmp_path)


@pytest.fixture
def golden_by_hand(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """For drawings that move both clocks, which a job cannot be made to do."""
    return _golden(request, tmp_path)


def _golden(request: pytest.FixtureRequest, directory: Path) -> Golden:
    way: str = request.param
    if way == "spark":
        request.getfixturevalue("spark")

    def check(text: str, build: Build, dropped: int = 0, leaves: bool = False) -> None:
        drawing = parse(text)
        env = _env("spark" if way == "spark" else "local", directory)
        if way in BY_HAND:
            stream = build(drawn_stream(env, []))
            found, left = play_by_hand(
                stream, drawing, restarts="restored" in way, asked="asked" in way
            )
            assert str(found) == str(drawing)
            assert left == leaves
            return
        events = events_of(drawing)
        epochs = [[event] for event in events] if way == "own_epochs" else [events]
        outputs, late_and_dropped = play_as_job(env, build, epochs)
        assert sequences(outputs) == sequences(drawing.outputs)
        assert late_and_dropped == dropped

    return check


@pytest.fixture(params=["by_hand", "restored", "job"])
def golden_by_clock(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Golden:
    """For drawings in processing time: elements come when the clock is at their column."""
    way: str = request.param

    def check(text: str, build: Build, leaves: bool = False) -> None:
        drawing = parse(text)
        env = _env("local", tmp_path)
        if way != "job":
            stream = build(drawn_stream(env, []))
            restarts = way == "restored"
            found, left = play_by_hand(stream, drawing, by_clock=True, restarts=restarts)
            assert str(found) == str(drawing)
            assert left == leaves
            return
        # A job takes the time once per epoch, and here it takes ours.
        monkeypatch.setattr("penstock.driver.epoch_loop.time", scripted_time())
        set_clock(0)
        outputs, _ = play_as_job(
            env,
            lambda stream: build(stream.filter(lambda event: not moves_clock(event))),
            clocked_epochs(drawing),
        )
        assert sequences(outputs) == sequences(drawing.outputs)

    return check
