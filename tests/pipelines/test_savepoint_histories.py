"""Random histories of a job: it runs, dies, is stopped, saved, restored, rescaled, changed, in any
order, and after every step its state and its output are those of a model.

`PENSTOCK_HISTORIES=500` runs as many, and longer ones.
"""

from __future__ import annotations

import base64
import os
import pickle
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import versioned_count
from counting_jobs import CountingJobs
from dying import Died, dying
from gated import await_true, written
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from versioned_count import Past, Version, VersionedCount, line_of, state_of

from penstock.common import JobStatus, Types
from penstock.errors import SnapshotNotFoundError
from penstock.state.keys import decode_key
from penstock.storage.snapshot import open_snapshot

HISTORIES = int(os.environ.get("PENSTOCK_HISTORIES", "0"))
SETTINGS = {
    "execution.checkpointing.num-retained": "4",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    # State is read from the store in every epoch, not from memory.
    "penstock.state.cache-entries": "1",
    # To make images takes a process each time.
    "penstock.state.max-segments": "3" if HISTORIES else "1000",
}
ANEW = {"penstock.state-recovery.anew": "true"}
LONGEST_EPOCH = 10

few = st.integers(1, LONGEST_EPOCH)


@dataclass(frozen=True)
class Known:
    """A savepoint, and what its job had worked on."""

    path: str
    past: Past


class History(RuleBasedStateMachine):
    # What a job has done, and how it is to be started

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.jobs = CountingJobs("local", self.root)
        self.past: Past = ()
        self.output: list[str] = []
        self.uncommitted: list[str] = []
        """Of an epoch that has happened: visible if the job goes on from there."""
        self.known: list[Known] = []
        self.epochs: dict[int, Past] = {}
        """What each manifest in the job's directory stands for, unless it has been retired."""
        self.parallelism, self.store = 2, "hashmap"
        self.version: Version | None = None
        self.versions = 0
        self.origin: str | None = None
        self.job: Any = None

    def start(self, origin: str | None = None, **further: str) -> None:
        self.origin = origin or self.origin
        self.jobs.open_gate(len(self.past))
        self.job = self.jobs.start(
            function=VersionedCount(self.version),
            start=self.origin,
            settings={
                **SETTINGS,
                **further,
                "parallelism.default": str(self.parallelism),
                "state.backend.type": self.store,
            },
        )

    def ensure_running(self) -> None:
        if self.job is None:
            self.start()
            self.output += self.uncommitted
            self.uncommitted = []

    def read(self, numbers: int) -> list[str]:
        """Let the job read; what it will write."""
        first = len(self.past)
        self.past += (self.version,) * numbers
        self.jobs.open_gate(len(self.past))
        return [line_of(self.past, n) for n in range(first, len(self.past))]

    def settle(self) -> None:
        """Until the job has written what it is to write."""
        if self.job is not None:
            await_true(lambda: self.job.get_job_status().result() is not JobStatus.CREATED)
            self.jobs.await_output("out", sorted(self.output))
        self.learn_epochs()

    def learn_epochs(self) -> None:
        """All that are new belong to the present past."""
        before, self.epochs = self.epochs, {}
        for path in (self.root / "checkpoints" / "job" / "epochs").glob("*.json"):
            epoch = int(path.stem)
            with suppress(SnapshotNotFoundError):  # retired since it was listed
                self.epochs[epoch] = before.get(epoch, self.past[: position(path)])

    def ended(self) -> None:
        self.jobs.forget(self.job)
        self.job = None

    # Rules

    @rule(numbers=st.integers(0, 3 * LONGEST_EPOCH))
    def run(self, numbers: int) -> None:
        self.ensure_running()
        self.output += self.read(numbers)
        self.settle()

    @rule(numbers=few, place=st.sampled_from(["before_manifest", "after_manifest", "after_sinks"]))
    def crash(self, numbers: int, place: str) -> None:
        self.ensure_running()
        self.settle()
        last = len(self.past) + numbers - 1
        versioned_count.newest_number = -1
        with dying(f"driver.{place}", lambda: versioned_count.newest_number == last):
            before = self.past
            lines = self.read(numbers)
            assert isinstance(self.job.get_job_execution_result().exception(60), Died)
        self.ended()
        if place == "before_manifest":
            self.past = before
        elif place == "after_manifest":
            self.uncommitted = lines
        else:
            self.output += lines
        self.learn_epochs()

    @rule()
    def interrupt(self) -> None:
        """Stop it, with its checkpoint kept."""
        self.ensure_running()
        self.settle()
        self.job.cancel().result(60)
        self.ended()

    @rule(numbers=st.integers(0, 2 * LONGEST_EPOCH))
    def savepoint(self, numbers: int) -> None:
        """While it reads: what is in it shows when it is there."""
        self.ensure_running()
        self.output += self.read(numbers)
        path = self.job.trigger_savepoint().result(60)
        self.settle()
        self.known.append(Known(path, self.past[: position(path)]))
        assert stored_counts(path) == state_of(self.known[-1].past)

    @rule(numbers=few, drain=st.booleans())
    def stop(self, numbers: int, drain: bool) -> None:
        self.ensure_running()
        self.settle()
        before = len(self.past)
        lines = self.read(numbers)
        path = self.job.stop_with_savepoint(drain).result(60)
        self.ended()
        reached = position(path)
        self.output += lines[: reached - before]
        self.past = self.past[:reached]
        self.known.append(Known(path, self.past))
        assert stored_counts(path) == state_of(self.past)
        # Who starts it again has to say from where.
        self.origin = path
        self.epochs = {}

    @rule()
    def savepoint_that_fails(self) -> None:
        self.ensure_running()
        self.settle()
        before = sorted(os.listdir(self.root / "savepoints")) if self.known else []
        with dying("savepoint.before_manifest"):
            assert isinstance(self.job.trigger_savepoint().exception(60), Died)
        found = self.root / "savepoints"
        assert (sorted(os.listdir(found)) if found.exists() else []) == before

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, 9), dies=st.booleans())
    def restore(self, which: int, dies: bool) -> None:
        """From any savepoint, of whatever past."""
        known = self.known[which % len(self.known)]
        self.go_back(known.path, known.past, dies)

    @rule(back=st.integers(0, 5), dies=st.booleans())
    def travel(self, back: int, dies: bool) -> None:
        """To any checkpoint that was retained; how many there are is a matter of time."""
        if self.job is not None:
            self.interrupt()
            self.learn_epochs()
        if not self.epochs:
            return
        epoch = sorted(self.epochs)[-1 - back % len(self.epochs)]
        path = self.root / "checkpoints" / "job" / "epochs" / f"{epoch}.json"
        if epoch == max(self.epochs):
            self.output += self.uncommitted
            self.uncommitted = []
        self.go_back(str(path), self.epochs[epoch], dies)

    def go_back(self, path: str, past: Past, dies: bool) -> None:
        if self.job is not None:
            self.interrupt()
        self.past = past
        self.uncommitted = []
        if dies:
            with dying("driver.before_seed"):
                self.start(path, **ANEW)
                assert isinstance(self.job.get_job_execution_result().exception(60), Died)
            self.ended()
        self.start(path, **ANEW)
        self.settle()

    @rule(parallelism=st.sampled_from([1, 2, 3, 5]), store=st.sampled_from(["hashmap", "rocksdb"]))
    def rescale(self, parallelism: int, store: str) -> None:
        """And keep state in another store, perhaps."""
        if self.job is not None:
            self.interrupt()
        self.parallelism, self.store = parallelism, store

    @rule(change=st.sampled_from(["none", "new", "widen"]))
    def evolve(self, change: str) -> None:
        """Give up the state beside the count, or have a new one, or widen it."""
        if self.job is not None:
            self.interrupt()
        self.versions += 1
        if change == "widen" and self.version is not None:
            self.version = Version(self.version.state, wide=True)
        else:
            self.version = Version(f"before-{self.versions}") if change == "new" else None

    @precondition(lambda self: len(self.known) > 1)
    @rule(which=st.integers(0, 9))
    def dispose(self, which: int) -> None:
        """Also of one that the running job began from."""
        self.ensure_running()
        self.settle()
        shutil.rmtree(self.known.pop(which % len(self.known)).path)

    # What holds

    @invariant()
    def output_is_right(self) -> None:
        if hasattr(self, "job"):
            self.settle()
            assert written(self.root / "out") == sorted(self.output)

    def teardown(self) -> None:
        if hasattr(self, "job"):
            self.jobs.end()
            shutil.rmtree(self.root)


def position(path: str | Path) -> int:
    """How many numbers an epoch has read."""
    manifest = open_snapshot(str(path)).manifest
    if "numbers" not in manifest.sources:
        return 0
    positions = manifest.sources["numbers"].positions.values()
    return sum(pickle.loads(base64.b64decode(text)) for text, _ in positions)


def stored_counts(path: str) -> dict[int, int]:
    """What a savepoint holds, read as anybody may read it."""
    directory = Path(path) / "state"
    if not directory.exists():
        return {}
    rows = pq.read_table(directory).to_pylist()
    _, load = Types.LONG().serializer()
    found = [row for row in rows if row["state"] == "count"]
    keys = [decode_key(row["key"]) for row in found]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, (load(row["value"]) for row in found), strict=True))


def test_random_histories() -> None:
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=HISTORIES or 8,
            stateful_step_count=30 if HISTORIES else 14,
            deadline=None,
            # Each step takes its time, and what fails may depend on that.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
