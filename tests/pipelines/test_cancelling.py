"""A job that is given up forgets its checkpoint; one that is interrupted goes on from it."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock.common.time import Time
from penstock.datastream import AsyncDataStream, AsyncFunction
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.driver.epoch_report import EpochReport
from penstock.errors import UserFunctionError

RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
RETAIN = {RETENTION: "RETAIN_ON_CANCELLATION"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / "job"


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Who starts the tests in the background may have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def numbers(env: Any, count: int = 100_000) -> Any:
    return env.set_parallelism(1).from_source(DataGeneratorSource(lambda i: i, count))


def await_end(checkpoint: Path) -> list[str]:
    """What is left of a job that ends in the background, in a thread of its own."""
    deadline = time.monotonic() + 60
    while any(thread.name == "penstock numbers" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [path.name for path in checkpoint.glob("epochs/*.json")]


def test_a_limit_gives_the_same_records_each_time(restartable_env: Any, checkpoint: Path) -> None:
    for _ in range(3):
        assert numbers(restartable_env()).execute_and_collect("numbers", limit=15) == list(
            range(15)
        )
        assert await_end(checkpoint) == []
        assert not checkpoint.exists()


def test_a_collector_closed_early(restartable_env: Any, checkpoint: Path) -> None:
    with numbers(restartable_env()).execute_and_collect("numbers") as results:
        assert list(islice(results, 5)) == list(range(5))
    assert await_end(checkpoint) == []


def test_within_the_handling_of_another_error(restartable_env: Any, checkpoint: Path) -> None:
    try:
        raise RuntimeError("of the program's own")
    except RuntimeError:
        assert numbers(restartable_env()).execute_and_collect("numbers", limit=5) == list(range(5))
    assert await_end(checkpoint) == []


def test_retained_if_asked_for(restartable_env: Any, checkpoint: Path) -> None:
    assert numbers(restartable_env(RETAIN)).execute_and_collect("numbers", limit=15) == list(
        range(15)
    )
    assert await_end(checkpoint) != []


def test_an_error_in_the_program_is_no_cancel(restartable_env: Any, checkpoint: Path) -> None:
    """As without a collector: what dies is the program, and it may be started again."""
    with (
        pytest.raises(RuntimeError, match="own"),
        numbers(restartable_env()).execute_and_collect("numbers") as results,
    ):
        next(results)
        raise RuntimeError("of the program's own")
    assert await_end(checkpoint) != []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_no_cancel(
    restartable_env: Any, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever runs the program again gets the rest, each record once."""

    def program(interrupted: bool) -> list[int]:
        env = restartable_env({"penstock.epoch.interval": "20 ms"})
        epochs: list[int] = []

        def watch(report: EpochReport) -> None:
            epochs.append(report.epoch)
            if interrupted and len(epochs) == 3:
                _thread.interrupt_main()

        env.add_epoch_listener(watch)
        numbers(env, 200).print()
        if interrupted:
            with pytest.raises(KeyboardInterrupt):
                env.execute("numbers")
        else:
            env.execute("numbers")
        return [int(line) for line in capsys.readouterr().out.split()]

    first = program(interrupted=True)
    assert await_end(checkpoint) != []
    second = program(interrupted=False)
    assert 30 <= len(first) < 200
    assert first + second == list(range(200))
    assert not checkpoint.exists()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_results_are_read(restartable_env: Any, checkpoint: Path) -> None:
    def interrupt(report: EpochReport) -> None:
        if report.epoch == 0:
            _thread.interrupt_main()

    env = restartable_env()
    env.add_epoch_listener(interrupt)
    with pytest.raises(KeyboardInterrupt), numbers(env).execute_and_collect("numbers") as results:
        for _ in results:
            time.sleep(0.01)
    assert await_end(checkpoint) != []


class Holds(AsyncFunction):
    """Has a thread as long as it is open; says when it is closed."""

    def __init__(self, diary: Path) -> None:
        self._diary = diary

    async def async_invoke(self, value: int) -> list[int]:
        return [value]

    def close(self) -> None:
        self._diary.write_text("closed")


@pytest.mark.parametrize("executor", ["local"], indirect=True)
@pytest.mark.parametrize("fails", [False, True])
def test_functions_are_closed_however_a_job_ends(
    restartable_env: Any, checkpoint: Path, tmp_path: Path, fails: bool
) -> None:
    """Also those of tasks that have nothing to do with the failure."""
    diary = tmp_path / "diary"
    stream = numbers(restartable_env())
    stream = AsyncDataStream.ordered_wait(stream, Holds(diary), Time.seconds(9), 10)
    stream = stream.rebalance().map(lambda n: 1 // (25 - n) if fails else n)
    with contextlib.suppress(UserFunctionError):
        stream.execute_and_collect("numbers", limit=100)
    await_end(checkpoint)
    assert diary.read_text() == "closed"
    assert not [t for t in threading.enumerate() if t.name.startswith("penstock async")]
