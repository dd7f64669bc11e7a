"""Rewritten files enter the manifest, and every store still finds its way along the chain."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.driver import housekeeping
from penstock.driver.housekeeping import GrowthWatch, Housekeeper, _Rewritten, _shortened
from penstock.storage.catch_up import CatchUp, catch_up
from penstock.storage.checkpoint_layout import CheckpointLayout
from penstock.storage.checkpoint_log import CheckpointLog
from penstock.storage.compaction import Compaction, CompactionPolicy
from penstock.storage.entries import Entry
from penstock.storage.file_info import FileInfo
from penstock.storage.filesystem import LocalFileSystem
from penstock.storage.images import run_compaction
from penstock.storage.manifest import ChainLink, Manifest, SubtaskState, VertexState
from penstock.storage.memory_store import MemoryStore
from penstock.storage.table_file import write_table_file

GROUPS = (0, 127)
fs = LocalFileSystem()


class History:
    """The state of one subtask, epoch by epoch, with its files."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.subtask = SubtaskState("")
        self.states: list[dict[bytes, bytes]] = [{}]
        self.versions: list[str | None] = [None]

    def epoch(self, **changes: str | None) -> None:
        epoch = len(self.states)
        entries = [
            Entry(0, "count", "s", key.encode(), b"", b"", value.encode() if value else None)
            for key, value in changes.items()
        ]
        path = f"state/{epoch:010d}_count_00000_t{epoch}.segment.parquet"
        info = write_table_file(fs, self.root, path, entries)
        self.subtask = self.subtask.with_segment(f"t{epoch}", epoch, (info,))
        merged = {**self.states[-1], **{e.key: e.value for e in entries}}
        self.states.append({k: v for k, v in merged.items() if v is not None})
        self.versions.append(self.subtask.version)

    def rewrite(self, result: str, upto: int | None = None) -> _Rewritten:
        """What the background gives for the chain as it is, or as it was some links ago."""
        chain = self.subtask.chain[:upto]
        files = [f for link in chain for f in link.files]
        inputs = tuple(f for f in files if result == "image" or f.kind == "segment")
        name = f"{len(self.states):010d}_count_00000_r{time.monotonic_ns()}.{result}"
        compaction = Compaction(result, inputs, GROUPS)  # type: ignore[arg-type]
        made = run_compaction(fs, self.root, compaction, "state", name)
        paths = frozenset(f.path for f in inputs)
        return _Rewritten("count", 0, paths, tuple(made), result)

    def take_in(self, rewritten: _Rewritten) -> None:
        self.subtask = _shortened(self.subtask, rewritten)

    def store_at(self, index: int) -> MemoryStore:
        """A store that was brought to an epoch when it was the newest."""
        store = MemoryStore()
        if (version := self.versions[index]) is not None:
            changes = [(_packed(key), value) for key, value in self.states[index].items()]
            store.apply(changes, version)
        return store

    def catch_up(self, store: MemoryStore) -> CatchUp:
        assert self.subtask.version is not None
        chain = self.subtask.chain
        return catch_up(
            store,
            fs,
            self.root,
            [(link.version, link.files) for link in chain],
            self.subtask.version,
            {"count"},
            GROUPS,
            covers={link.version: link.covers for link in chain if link.covers},
        )

    def assert_reachable(self) -> None:
        """From nothing and from every former version the newest state is reached."""
        expected = {_packed(k): v for k, v in self.states[-1].items()}
        for index in range(len(self.states)):
            store = self.store_at(index)
            self.catch_up(store)
            assert dict(store.scan(b"")) == expected
            assert store.version() == self.versions[-1]


def _packed(key: bytes) -> bytes:
    return Entry(0, "count", "s", key, b"", b"", None).packed()


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path)
    history.epoch(a="1", b="1")
    history.epoch(a="2", c="2")
    history.epoch(b=None, c="3")
    return history


# The chain


def test_an_image_replaces_what_it_was_made_of(history):
    rewritten = history.rewrite("image")
    history.epoch(a="4")
    history.take_in(rewritten)
    first, second = history.subtask.chain
    assert (first.version, first.files, first.covers) == ("3-t3", rewritten.files, ())
    assert second.version == "4-t4"
    history.assert_reachable()


def test_a_merged_segment_serves_stores_at_the_versions_in_it(history):
    rewritten = history.rewrite("segment")
    history.epoch(d="4")
    history.take_in(rewritten)
    first = history.subtask.chain[0]
    assert (first.version, first.covers) == ("3-t3", ("1-t1", "2-t2", "3-t3"))
    history.assert_reachable()
    assert not history.catch_up(history.store_at(1)).rebuilt
    assert history.catch_up(history.store_at(0)).rebuilt


def test_segments_after_an_image_are_merged_behind_it(history):
    history.take_in(history.rewrite("image"))
    history.epoch(a=None)
    history.epoch(b="5")
    history.take_in(history.rewrite("segment"))
    image, merged = history.subtask.chain
    assert (image.version, merged.version) == ("3-t3", "5-t5")
    assert merged.covers == ("3-t3", "4-t4", "5-t5")
    history.assert_reachable()
    for index in (3, 4):
        assert not history.catch_up(history.store_at(index)).rebuilt


def test_merged_segments_are_merged_again(history):
    history.take_in(history.rewrite("segment"))
    history.epoch(a=None)
    history.take_in(history.rewrite("segment"))
    (link,) = history.subtask.chain
    assert link.covers == ("1-t1", "2-t2", "3-t3", "4-t4")
    history.assert_reachable()


def test_an_image_of_nothing(history):
    history.epoch(a=None, c=None)
    history.take_in(history.rewrite("image"))
    assert history.subtask.chain == (ChainLink("4-t4", ()),)
    history.assert_reachable()
    history.epoch(z="5")
    history.assert_reachable()


def test_what_is_in_the_chain_no_more_changes_nothing(history):
    rewritten = history.rewrite("image")
    history.take_in(rewritten)
    before = history.subtask
    history.take_in(rewritten)
    assert history.subtask == before


def test_an_image_is_not_put_on_top_of_another(history):
    """Two images of one beginning: the second would bring back what was removed between them."""
    first = history.rewrite("image")
    history.epoch(a=None)
    second = history.rewrite("image")
    history.take_in(first)
    history.take_in(second)
    history.assert_reachable()


steps = st.one_of(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["x", "y", None]), min_size=1),
    st.sampled_from(["image", "segment", "late image", "late segment"]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=10))
def test_every_store_catches_up_whatever_was_rewritten(tmp_path_factory, done):
    history = History(tmp_path_factory.mktemp("history"))
    history.epoch(a="0")
    late: list[_Rewritten] = []
    for step in done:
        if isinstance(step, dict):
            history.epoch(**step)
            while late:
                history.take_in(late.pop(0))
        elif any(f.kind == "segment" for link in history.subtask.chain for f in link.files):
            rewritten = history.rewrite(step.split()[-1])
            if step.startswith("late"):
                late.append(rewritten)
            else:
                history.take_in(rewritten)
    history.assert_reachable()


# The housekeeper


class Job:
    """Commits epochs as the epoch loop would."""

    def __init__(self, root: Path, plan: Any, retained: int = 1, max_segments: int = 2) -> None:
        self.history = History(root)
        self.log = CheckpointLog(fs, CheckpointLayout(str(root)))
        self.keeper = Housekeeper(self.log, plan, retained, CompactionPolicy(max_segments))
        self._plan = plan

    def commit(self, **changes: str | None) -> Manifest:
        self.history.epoch(**changes)
        vertices = {
            v.uid: VertexState(tuple(o.uid for o in v.operators), 1, 128, (SubtaskState("x"),))
            for v in self._plan.vertices
        }
        vertices["count"] = replace(vertices["count"], subtasks=(self.history.subtask,))
        epoch = len(self.history.states) - 1
        manifest = Manifest("job", "Job", epoch, epoch - 1, None, None, 0, vertices)
        manifest = self.keeper.transform(manifest)
        self.log.commit(manifest)
        self.history.subtask = manifest.vertices["count"].subtasks[0]
        self.keeper.after_commit(manifest)
        return manifest

    def wait(self) -> None:
        thread = self.keeper._thread
        if thread is not None:
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture
def job(tmp_path: Path, plan_of):
    job = Job(tmp_path, plan_of(parallelism=1, root=str(tmp_path)))
    yield job
    job.keeper.close()


def kinds(manifest: Manifest) -> list[str]:
    return [file.kind for file in manifest.files()]


def test_an_image_enters_the_next_manifest(job):
    for number in range(3):
        manifest = job.commit(a=str(number), b=None)
    assert kinds(manifest) == ["segment"] * 3
    job.wait()
    assert kinds(job.commit(c="c")) == ["image", "segment"]
    job.history.assert_reachable()
    assert job.log.newest("job").files() == job.log.read(4).files()


def test_what_is_finished_but_not_taken_in_is_not_begun_again(job):
    for number in range(3):
        manifest = job.commit(a=str(number))
    job.wait()
    before = job.keeper._thread
    job.keeper.after_commit(manifest)
    assert job.keeper._thread is before


def test_old_files_go_when_no_retained_epoch_names_them(job):
    for number in range(12):
        manifest = job.commit(a=str(number), **{f"k{number}": "v"})
        job.wait()
    job.keeper._retire()
    left = {f"state/{name}" for name in fs.list(job.log.layout.state)}
    named = {file.path for file in manifest.files()}
    assert named <= left
    newest = f"state/{manifest.epoch:010d}"
    # Files of the newest epoch may belong to what is under way.
    assert {path for path in left - named if not path.startswith(newest)} <= {
        file.path for rewritten in job.keeper._done for file in rewritten.files
    }
    assert job.log.epochs() == [12]
    job.history.assert_reachable()


def test_files_that_are_held_stay_as_long_as_somebody_holds_them(job):
    held = [file.path for file in job.commit(a="1").files()]

    def there() -> bool:
        job.keeper._retire()
        return all(fs.exists(job.log.layout.full(path)) for path in held)

    with job.keeper.holding(held):
        with job.keeper.holding(held):
            for number in range(12):
                newest = job.commit(a=str(number))
                job.wait()
            assert not set(held) & {file.path for file in newest.files()}
            assert there()
        assert there()
    assert not there()
    assert not job.keeper._held


def test_retiring_waits_for_the_image_but_not_for_eight_more_epochs(job, monkeypatch):
    retired = []
    monkeypatch.setattr(job.keeper, "_retire", lambda: retired.append(job.keeper._commits))

    class Busy:
        def __init__(self, alive: bool) -> None:
            self._alive = alive

        def is_alive(self) -> bool:
            return self._alive

        def join(self) -> None:
            pass

    job.keeper._thread = Busy(True)
    for number in range(9):
        job.commit(a=str(number))
    assert retired == []
    job.keeper._thread = Busy(False)
    job.keeper._start = lambda manifest: None
    job.commit(a="z")
    assert len(retired) == 1


def test_a_dead_image_process_is_a_warning_and_another_try(job, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(housekeeping, "_REST_SECONDS", 0)
    monkeypatch.setenv("PENSTOCK_CRASH_AT", "image.middle")
    monkeypatch.setenv("PENSTOCK_CRASH_ONCE", str(tmp_path / "crashed"))
    for number in range(3):
        job.commit(a=str(number))
    job.wait()
    assert "no image was made" in caplog.text
    assert kinds(job.commit(a="3")) == ["segment"] * 4
    job.wait()
    assert kinds(job.commit(a="4")) == ["image", "segment"]
    job.history.assert_reachable()


@pytest.mark.parametrize("grows", [True, False])
def test_state_that_only_grows_is_told(job, caplog, grows):
    """Row E8: an image after each few epochs, each with more entries than the last, or not."""
    job.keeper._growth = GrowthWatch(images=3, entries=5)
    for number in range(12):
        name = f"k{number}" if grows else f"k{number % 6}"
        job.commit(**{name: "v"})
        job.wait()
    warnings = [r.getMessage() for r in caplog.records if "only grows" in r.getMessage()]
    assert len(warnings) == (1 if grows else 0)
    if grows:
        assert warnings[0].startswith("state s of count only grows: subtask 0 went from ")


def test_closing_ends_the_process_without_a_complaint(job, caplog):
    for number in range(3):
        job.commit(a=str(number))
    job.keeper.close()
    assert not job.keeper._thread.is_alive()
    assert caplog.text == ""


def test_closing_while_the_process_is_started_does_not_wait_for_its_end(job, monkeypatch):
    popen = subprocess.Popen
    started = []

    def slow(command: list[str], **options: Any) -> Any:
        job.keeper._closed.wait()
        started.append(popen(["sleep", "60"], **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", slow)
    for number in range(3):
        job.commit(a=str(number))
    begun = time.monotonic()
    job.keeper.close()
    assert time.monotonic() - begun < 30
    assert started[0].returncode == -signal.SIGKILL


def test_nothing_is_started_once_it_is_closed(job, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    job.keeper.close()
    assert job.keeper._in_process({}) is None


def test_file_infos_survive_the_way_through_the_process(job):
    for number in range(3):
        job.commit(a=str(number))
    job.wait()
    (rewritten,) = job.keeper._done
    (made,) = rewritten.files
    assert isinstance(made, FileInfo)
    assert made.states == (("count", "s"),)
    assert os.path.getsize(job.log.layout.full(made.path)) == made.bytes


def test_one_process_makes_many_images(job, monkeypatch):
    """Its start costs more than the rewriting of a small state."""
    popen, started = subprocess.Popen, []

    def noted(command: list[str], **options: Any) -> Any:
        started.append(popen(command, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    made = 0
    for number in range(9):
        job.commit(a=str(number))
        job.wait()
        made += len(job.keeper._done)
    assert made >= 3
    (process,) = started
    assert process.poll() is None
    job.keeper.close()
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_ended_for_want_of_work_is_started_again(job):
    for number in range(3):
        job.commit(a=str(number))
    job.wait()
    first = job.keeper._process._process
    first.stdin.close()  # it ends, as after its time without work
    assert first.wait(30) == 0
    first.stdin = open(os.devnull, "wb")  # noqa: SIM115 - closed by the next start
    for number in range(3, 6):
        job.commit(a=str(number))
        job.wait()
    assert job.keeper._process._process is not first
    job.history.assert_reachable()
