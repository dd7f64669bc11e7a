"""From which epoch a job begins, what of it is refused, and how jobs end with a savepoint."""

from __future__ import annotations

import base64
import os
import pickle
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counting_jobs import SAVEPOINTS, CountingJobs
from dying import Died, dying
from gated import KEYS, Count, GatedSource, counts, expected, since, written

from penstock.common import Types
from penstock.common.job_status import JobStatus
from penstock.common.serialization import Encoder
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import CheckpointedFunction, FlatMapFunction
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.driver.local_executor import LocalExecutor
from penstock.errors import (
    CheckpointMismatchError,
    JobCancelledError,
    SavepointError,
    UserFunctionError,
)
from penstock.storage.snapshot import open_snapshot

local = pytest.mark.parametrize("executor", ["local"], indirect=True)
ANEW = {"penstock.state-recovery.anew": "true"}
DROPPING = {"execution.state-recovery.ignore-unclaimed-state": "true"}
RETAINED = {
    "execution.checkpointing.num-retained": "100",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


@pytest.fixture
def jobs(executor: str, tmp_path: Path) -> Iterator[CountingJobs]:
    made = CountingJobs(executor, tmp_path)
    made.open_gate(20)
    yield made
    made.end()


def stopped(jobs: CountingJobs, out: str = "out", **settings: Any) -> str:
    """The savepoint of a job that was stopped at 20."""
    handle = jobs.start(out, **settings)
    jobs.await_output(out, expected(range(20)))
    return str(handle.stop_with_savepoint(False).result(60))


class FailsOnDemand(Count):
    """Fails as long as a file is there."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)

    def process_element(self, value: Any, context: Any) -> Any:
        if os.path.exists(self._file):
            raise RuntimeError("on demand")
        return super().process_element(value, context)


def failed(jobs: CountingJobs, handle: Any, flag: Path) -> None:
    """Let a job fail at the next number, so that it leaves its checkpoint."""
    flag.touch()
    jobs.open_gate(int(jobs.gate.read_text()) + 1)
    with pytest.raises(UserFunctionError, match="on demand"):
        handle.get_job_execution_result().result(60)
    jobs.forget(handle)
    flag.unlink()


# State that nobody takes


class Tally(FlatMapFunction, CheckpointedFunction):
    """Keeps a list beside the stream."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._list = store.get_list_state(ListStateDescriptor("tally", Types.LONG()))
        self._seen = list(self._list.get())

    def flat_map(self, value: Any) -> Any:
        self._seen.append(value)
        yield value

    def snapshot_state(self, context: Any) -> None:
        self._list.update(self._seen)


class CountAndLast(Count):
    def open(self, context: Any) -> None:
        super().open(context)
        self._last = context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, context: Any) -> Any:
        self._last.update(value)
        return super().process_element(value, context)


def with_more(env: Any, gate: Path, out: Path) -> None:
    """The counting job with more operators beside it that have something to lose."""
    counts(env, gate, out)
    more = env.from_source(GatedSource(gate)).uid("more").set_parallelism(1)
    tallied = more.rebalance().flat_map(Tally()).uid("tally")
    last = tallied.key_by(lambda n: n % KEYS).process(CountAndLast()).uid("last")
    last.filter(lambda _: False).print().uid("nothing")


@local
def test_state_that_no_operator_takes_is_listed_or_dropped(jobs: CountingJobs) -> None:
    path = stopped(jobs, build=with_more)
    jobs.open_gate(30)
    refused = jobs.start(start=path).get_job_execution_result().exception(60)
    assert isinstance(refused, CheckpointMismatchError)
    assert "- last: state count, last\n" in str(refused)
    assert "- more: positions\n" in str(refused)
    assert "- tally: operator state\n" in str(refused)
    assert "- counts" not in str(refused)
    assert path in str(refused)
    assert not (jobs.root / "checkpoints" / "job" / "epochs").exists()

    jobs.forget_all()
    flag = jobs.root / "fail"
    second = jobs.start(function=FailsOnDemand(flag), start=path, settings=DROPPING)
    jobs.await_output("out", expected(range(30)))
    failed(jobs, second, flag)
    # What was dropped is gone: to go on needs no permission.
    jobs.start()
    jobs.await_output("out", expected(range(31)))


# How jobs end with a savepoint


class NumberAsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def windowed(env: Any, gate: Path, out: Path) -> None:
    """How many numbers there are in each window of eight."""
    numbers = env.from_source(GatedSource(gate)).uid("numbers").set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = numbers.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(NumberAsTime())
    ).uid("time")
    windows = timed.key_by(lambda n: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(8)))
    sizes = windows.aggregate(Sizes()).uid("sizes")
    sink = FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()
    sizes.map(str).sink_to(sink).uid("files")


class Sizes(AggregateFunction):
    """(first, how many)."""

    def create_accumulator(self) -> Any:
        return (10**9, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return min(value, accumulator[0]), accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, one: Any, other: Any) -> Any:
        return min(one[0], other[0]), one[1] + other[1]


def test_draining_fires_windows_and_the_job_goes_on_with_new_ones(jobs: CountingJobs) -> None:
    first = jobs.start("first", build=windowed)
    jobs.await_output("first", ["(0, 8)", "(8, 8)"])
    path = first.stop_with_savepoint(True).result(60)
    assert written(jobs.root / "first") == ["(0, 8)", "(16, 4)", "(8, 8)"]

    jobs.open_gate(33)
    jobs.start("second", build=windowed, start=path)
    # What was fired is gone, so the rest of that window comes by itself.
    jobs.await_output("second", ["(20, 4)", "(24, 8)"])


@local
def test_stopping_without_draining_keeps_windows_open(jobs: CountingJobs) -> None:
    first = jobs.start(build=windowed)
    jobs.await_output("out", ["(0, 8)", "(8, 8)"])
    path = first.stop_with_savepoint(False).result(60)
    jobs.open_gate(33)
    jobs.start(build=windowed, start=path)
    jobs.await_output("out", ["(0, 8)", "(16, 8)", "(24, 8)", "(8, 8)"])


@local
def test_cancelling_with_a_savepoint(jobs: CountingJobs) -> None:
    first = jobs.start()
    jobs.await_output("out", expected(range(20)))
    path = first.cancel_with_savepoint().result(60)
    jobs.forget(first)
    assert first.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        first.get_job_execution_result().result(60)
    assert not (jobs.root / "checkpoints" / "job").exists()
    jobs.open_gate(30)
    jobs.start(start=path)
    jobs.await_output("out", expected(range(30)))


@local
@pytest.mark.parametrize("drain", [False, True])
def test_a_job_that_has_had_no_epoch(
    jobs: CountingJobs, drain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing in its savepoint, and who begins from it begins at the beginning."""
    asked, run = threading.Event(), LocalExecutor.run

    def run_once_asked(*arguments: Any) -> None:
        assert asked.wait(60)
        run(*arguments)

    monkeypatch.setattr(LocalExecutor, "run", run_once_asked)
    answer = jobs.start().stop_with_savepoint(drain)
    asked.set()
    path = answer.result(60)
    assert not open_snapshot(path).manifest.sources
    assert written(jobs.root / "out") == []
    jobs.start(start=path)
    jobs.await_output("out", expected(range(20)))


@local
def test_without_a_directory_for_savepoints(jobs: CountingJobs, tmp_path: Path) -> None:
    handle = jobs.start(settings={SAVEPOINTS: ""})
    jobs.await_output("out", expected(range(20)))
    for answer in (
        handle.trigger_savepoint(),
        handle.stop_with_savepoint(False),
        handle.cancel_with_savepoint(),
    ):
        with pytest.raises(SavepointError, match=re.escape(SAVEPOINTS)):
            answer.result(60)
    jobs.open_gate(30)
    jobs.await_output("out", expected(range(30)))  # it runs on
    path = handle.stop_with_savepoint(False, str(tmp_path / "given")).result(60)
    assert Path(path).parent == tmp_path / "given"


# From which epoch


def test_a_job_that_is_started_again_goes_on_from_its_own_checkpoint(jobs: CountingJobs) -> None:
    """Whoever starts it again does so with the same settings, the savepoint's path included."""
    path = stopped(jobs, "first")
    flag = jobs.root / "fail"
    jobs.open_gate(30)
    second = jobs.start(function=FailsOnDemand(flag), start=path)
    jobs.await_output("out", since(20, 30))
    failed(jobs, second, flag)

    third = jobs.start(function=FailsOnDemand(flag), start=path)
    jobs.await_output("out", since(20, 31))
    failed(jobs, third, flag)

    jobs.start("anew", start=path, settings=ANEW)
    jobs.await_output("anew", since(20, 32))


@local
def test_a_savepoint_that_is_gone_is_not_missed_by_who_has_begun_from_it(
    jobs: CountingJobs,
) -> None:
    path = stopped(jobs, "first")
    flag = jobs.root / "fail"
    jobs.open_gate(30)
    second = jobs.start(function=FailsOnDemand(flag), start=path)
    jobs.await_output("out", since(20, 30))
    failed(jobs, second, flag)
    os.rename(path, f"{path}-gone")
    jobs.start(start=path)
    jobs.await_output("out", since(20, 31))


def retained(jobs: CountingJobs) -> dict[int, Path]:
    """How many numbers an epoch knows → its manifest."""
    found = {}
    for path in (jobs.root / "checkpoints" / "job" / "epochs").glob("*.json"):
        manifest = open_snapshot(str(path)).manifest
        found.setdefault(position_of(manifest), path)
    return found


def position_of(manifest: Any) -> int:
    positions = manifest.sources["numbers"].positions.values()
    return sum(pickle.loads(base64.b64decode(text)) for text, _ in positions)


def cancelled_at_40(jobs: CountingJobs) -> dict[int, Path]:
    jobs.open_gate(40)
    first = jobs.start(settings=RETAINED)
    jobs.await_output("out", expected(range(40)))
    jobs.cancelled(first)
    found = retained(jobs)
    assert set(found) == {10, 20, 30, 40}
    return found


def test_time_travel_to_a_retained_checkpoint(jobs: CountingJobs) -> None:
    """The same job, and another one, go back to different epochs of it."""
    found = cancelled_at_40(jobs)
    other = jobs.start("other", start=found[30], job_id="other", settings=RETAINED)
    jobs.await_output("other", since(30, 40))
    same = jobs.start("again", start=found[10], settings=RETAINED)
    jobs.await_output("again", since(10, 40))
    jobs.cancelled(same, other)
    # The past is still there, also what was given up.
    jobs.start("once more", start=found[20], settings=RETAINED)
    jobs.await_output("once more", since(20, 40))


@local
@pytest.mark.parametrize("spelling", ["link", "relative"])
def test_a_path_to_the_own_directory_by_another_name(
    jobs: CountingJobs, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    found = cancelled_at_40(jobs)[20]
    if spelling == "link":
        (jobs.root / "link").symlink_to(jobs.root / "checkpoints")
        path = jobs.root / "link" / found.relative_to(jobs.root / "checkpoints")
    else:
        monkeypatch.chdir(jobs.root)
        path = found.relative_to(jobs.root)
    for out in ("once", "twice"):
        handle = jobs.start(out, start=path, settings={**RETAINED, **ANEW})
        jobs.await_output(out, since(20, 40))
        jobs.cancelled(handle)


@local
def test_a_retained_checkpoint_that_is_gone_is_not_missed_either(jobs: CountingJobs) -> None:
    path = cancelled_at_40(jobs)[20]
    flag = jobs.root / "fail"
    function = FailsOnDemand(flag)
    second = jobs.start("again", function, start=path, settings=RETAINED)
    jobs.await_output("again", since(20, 40))
    failed(jobs, second, flag)
    path.unlink()  # as retention does after some epochs
    jobs.start("again", start=path)
    jobs.await_output("again", since(20, 41))


@local
def test_the_own_newest_checkpoint_keeps_what_is_left_to_commit(jobs: CountingJobs) -> None:
    """The driver died after the manifest, before the sinks' commits."""
    with dying("driver.after_manifest"):
        handle = jobs.start(settings=RETAINED)
        assert isinstance(handle.get_job_execution_result().exception(60), Died)
    jobs.forget(handle)
    assert written(jobs.root / "out") == []
    jobs.start(start=jobs.root / "checkpoints" / "job", settings=RETAINED)
    jobs.await_output("out", expected(range(20)))


@local
def test_a_chain_of_forks(jobs: CountingJobs) -> None:
    """Each begins from the savepoint of the one before, and may be gone back to."""
    paths = {0: stopped(jobs, "out-0")}
    for fork in (1, 2, 3):
        jobs.open_gate(20 + 10 * fork)
        handle = jobs.start(f"out-{fork}", start=paths[fork - 1])
        jobs.await_output(f"out-{fork}", since(10 + 10 * fork, 20 + 10 * fork))
        paths[fork] = handle.stop_with_savepoint(False).result(60)
    for fork, path in paths.items():
        handle = jobs.start(f"back-{fork}", start=path, job_id=f"back-{fork}")
        jobs.await_output(f"back-{fork}", since(20 + 10 * fork, 50))


@local
def test_the_newest_checkpoint_by_its_name_is_begun_from_once(jobs: CountingJobs) -> None:
    cancelled_at_40(jobs)
    epochs = (jobs.root / "checkpoints" / "job" / "epochs").glob("*.json")
    newest = max(epochs, key=lambda path: int(path.stem))
    flag = jobs.root / "fail"
    jobs.open_gate(50)
    second = jobs.start(function=FailsOnDemand(flag), start=newest, settings=RETAINED)
    jobs.await_output("out", expected(range(50)))
    failed(jobs, second, flag)
    jobs.start(start=newest, settings=RETAINED)
    jobs.await_output("out", expected(range(51)))


@local
def test_the_driver_dies_when_it_has_drained_and_not_saved(
    jobs: CountingJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Event time was ended for the savepoint alone: without it the job goes on."""

    def die(*_: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("penstock.driver.savepoints.write_savepoint", die)
        handle = jobs.start(build=windowed)
        jobs.await_output("out", ["(0, 8)", "(8, 8)"])
        assert isinstance(handle.stop_with_savepoint(True).exception(60), SavepointError)
    jobs.forget(handle)
    assert open_snapshot(str(jobs.root / "checkpoints" / "job")).manifest.final
    jobs.open_gate(33)
    jobs.start(build=windowed)
    jobs.await_output("out", ["(0, 8)", "(16, 4)", "(20, 4)", "(24, 8)", "(8, 8)"])


@local
def test_sources_begin_anew_from_the_own_newest_checkpoint(
    jobs: CountingJobs, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    first = jobs.start(function=FailsOnDemand(flag), settings=RETAINED)
    jobs.await_output("out", expected(range(20)))
    failed(jobs, first, flag)
    own = jobs.root / "checkpoints" / "job"
    reset = {**RETAINED, "penstock.state-recovery.reset-sources": "numbers"}
    refused = jobs.start("again", start=own, settings=reset)
    newest = open_snapshot(str(own)).path
    with pytest.raises(CheckpointMismatchError, match=re.escape(newest)):
        refused.get_job_execution_result().result(60)
    jobs.forget(refused)
    second = jobs.start("again", FailsOnDemand(flag), start=newest, settings=reset)
    jobs.await_output(
        "again", sorted(set(expected(range(20), range(21))) - set(expected(range(20))))
    )
    failed(jobs, second, flag)
    jobs.start("more", start=newest, settings=reset)  # which has begun already, and goes on
    jobs.await_output(
        "more", sorted(set(expected(range(20), range(22))) - set(expected(range(20), range(21))))
    )
