"""What savepoints are for: one test for each use.

A job has counted the numbers below 20 when its savepoint is made; most uses begin there.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from counting_jobs import CountingJobs, digests
from gated import KEYS, Count, GatedSource, expected, since, written

import penstock
from penstock.cli.main import main
from penstock.common import Types
from penstock.common.job_status import JobStatus
from penstock.common.serialization import Encoder
from penstock.datastream import CheckpointedFunction, OutputTag, ProcessFunction
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from penstock.storage.snapshot import open_snapshot

SAVED = 20
local = pytest.mark.parametrize("executor", ["local"], indirect=True)


@pytest.fixture
def jobs(executor: str, tmp_path: Path) -> Iterator[CountingJobs]:
    made = CountingJobs(executor, tmp_path)
    made.open_gate(SAVED)
    yield made
    made.end()


class Saved:
    """A job that was stopped at 20, and the savepoint it left. Nobody may change that."""

    def __init__(self, executor: str, root: Path) -> None:
        jobs = CountingJobs(executor, root)
        jobs.open_gate(SAVED)
        handle = jobs.start()
        jobs.await_output("out", expected(range(SAVED)))
        self.path = Path(handle.stop_with_savepoint(False).result(60))
        self.gate = jobs.gate
        self.digests = digests(self.path)


@pytest.fixture(scope="module")
def all_saved(executor: str, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return Saved(executor, tmp_path_factory.mktemp("saved"))


@pytest.fixture
def saved(all_saved: Saved, jobs: CountingJobs) -> Iterator[Path]:
    jobs.gate = all_saved.gate  # where the source of every job that goes on reads
    jobs.open_gate(SAVED)
    yield all_saved.path
    assert digests(all_saved.path) == all_saved.digests


class TwiceFromTwenty(Count):
    """Counts each of the later numbers twice."""

    def process_element(self, value: Any, context: Any) -> Any:
        lines = list(super().process_element(value, context))
        return lines if value < SAVED else super().process_element(value, context)


def twice_since_twenty(now: int) -> list[str]:
    """What that writes from 20 on."""
    seen = dict.fromkeys(range(KEYS), SAVED // KEYS)
    lines = []
    for n in range(SAVED, now):
        seen[n % KEYS] += 2
        lines.append(f"{n % KEYS} {seen[n % KEYS]}")
    return sorted(lines)


@local
def test_bug_fix_and_reprocessing(jobs: CountingJobs) -> None:
    """The savepoint is from before the damage; the fixed function reads the same input again."""
    wrong = jobs.start("wrong", TwiceFromTwenty())
    jobs.await_output("wrong", expected(range(SAVED)))
    before = wrong.trigger_savepoint().result(60)
    jobs.open_gate(40)
    jobs.await_output("wrong", sorted(expected(range(SAVED)) + twice_since_twenty(40)))
    jobs.cancelled(wrong)

    jobs.start("right", Count(), start=before)
    jobs.await_output("right", since(SAVED, 40))


PRICING = """
class Basket:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        return len(self.items)
"""

BETTER_PRICING = """
class Basket:
    largest = 0  # what was stored before does not have it

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        self.largest = max(self.largest, *self.items)
        return f"{len(self.items)} of at most {self.largest}"
"""


class Baskets(KeyedProcessFunction):
    """Keeps objects of a library's class."""

    def open(self, context: Any) -> None:
        self._basket = context.get_state(ValueStateDescriptor("basket", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, context: Any) -> Any:
        import pricing  # type: ignore[import-not-found]

        basket = self._basket.value() or pricing.Basket()
        yield f"{context.get_current_key()} {basket.add(value)}"
        self._basket.update(basket)


def install(code: str, directory: Path) -> None:
    """Let the library be this, from now on."""
    directory.mkdir(exist_ok=True)
    (directory / "pricing.py").write_text(code)
    shutil.rmtree(directory / "__pycache__", ignore_errors=True)
    importlib.invalidate_caches()
    sys.modules.pop("pricing", None)


@local
def test_library_upgrade(
    jobs: CountingJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    install(PRICING, tmp_path / "lib")
    before = jobs.start("before", Baskets())
    jobs.await_output("before", expected(range(SAVED)))
    path = before.stop_with_savepoint(False).result(60)

    install(BETTER_PRICING, tmp_path / "lib")
    jobs.open_gate(SAVED + KEYS)
    jobs.start("after", Baskets(), start=path)
    jobs.await_output("after", [f"{k} 5 of at most {SAVED + k}" for k in range(KEYS)])
    sys.modules.pop("pricing", None)


@local
def test_a_savepoint_says_what_wrote_it(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = ".".join(map(str, sys.version_info[:3]))
    versions = {
        "penstock": penstock.__version__,
        "python": python,
        "pyspark": metadata.version("pyspark"),
    }
    assert open_snapshot(str(saved)).manifest.written_by == versions
    assert main(["savepoint", "show", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written_by"] == versions
    assert main(["savepoint", "show", str(saved)]) == 0
    assert f"python {python}" in capsys.readouterr().out


GIVEN = OutputTag("given", Types.STRING())
NUMBERS = ListStateDescriptor("numbers", Types.LONG())
ALL_NUMBERS = ListStateDescriptor("all numbers", Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Keep(ProcessFunction, CheckpointedFunction):
    """Keeps the numbers it has had in every kind of operator state; with the first number that it
    gets it tells what it was given back. On Spark another instance may take over at any epoch."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._list = store.get_list_state(NUMBERS)
        self._union = store.get_union_list_state(ALL_NUMBERS)
        self._rules = store.get_broadcast_state(RULES)
        self._mine = list(self._list.get())
        self._given = [f"list {n}" for n in self._mine]
        self._given.append(f"union {sorted(self._union.get())}")
        self._given.append(f"rules {dict(self._rules.items())}")

    def process_element(self, value: Any, context: Any) -> Any:
        for line in self._given:
            yield GIVEN, f"{value}: {line}"
        self._given = []
        self._mine.append(value)
        self._rules.put("limit", 7)
        yield value

    def snapshot_state(self, context: Any) -> None:
        self._list.update(self._mine)
        self._union.update(self._mine)


def kept_and_counted(env: Any, gate: Path, out: Path) -> None:
    """Numbers dealt out to all subtasks, which keep them; then counted by key."""

    def files(stream: Any, name: str) -> None:
        encoder = Encoder.simple_string_encoder()
        stream.sink_to(FileSink.for_row_format(str(out / name), encoder).build()).uid(name)

    numbers = env.from_source(GatedSource(gate)).uid("numbers").set_parallelism(1)
    kept = numbers.rebalance().process(Keep()).uid("keep")
    files(kept.get_side_output(GIVEN), "given")
    files(kept.key_by(lambda n: n % KEYS).process(Count()).uid("counts"), "counted")


def test_rescaling_from_2_to_5_to_1(jobs: CountingJobs) -> None:
    path = None
    begin = 0
    for parallelism, end in ((2, 20), (5, 40), (1, 60)):
        out = f"with-{parallelism}"
        jobs.open_gate(end)
        settings = {"parallelism.default": str(parallelism)}
        handle = jobs.start(out, start=path, build=kept_and_counted, settings=settings)
        jobs.await_output(f"{out}/counted", since(begin, end))
        path = handle.stop_with_savepoint(False).result(60)
        told = [line.split(": ", 1) for line in written(jobs.root / out / "given")]
        given = sorted(line for number, line in told if int(number) < begin + 10)
        before = list(range(begin))
        # Each entry of the list is dealt to one, the rest is given to all.
        assert [line for line in given if "list" in line] == sorted(f"list {n}" for n in before)
        assert [line for line in given if "union" in line] == [f"union {before}"] * parallelism
        rules = {"limit": 7} if begin else {}
        assert [line for line in given if "rules" in line] == [f"rules {rules}"] * parallelism
        begin = end


@local
@pytest.mark.parametrize("place", ["below the same directory", "on another file system"])
def test_moving_it_to_another_directory(
    jobs: CountingJobs,
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    jobs.open_gate(30)
    moved = tmp_path / "archive" / "2026" / "of the job"
    original = tmp_path / "original"
    shutil.copytree(saved, original)
    moved.parent.mkdir(parents=True)
    shutil.move(original, moved)
    if place == "on another file system":
        link = os.link

        def link_within(path: str, new_path: str) -> None:
            if Path(path).is_relative_to(moved):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            link(path, new_path)

        monkeypatch.setattr(os, "link", link_within)
    jobs.start("moved", start=moved)
    jobs.await_output("moved", since(SAVED, 30))
    assert digests(moved) == digests(saved)


def test_pause_and_resume(jobs: CountingJobs) -> None:
    """Nothing is lost of what comes meanwhile, and nothing is written twice."""
    path = None
    for end in (15, 25, 25, 45):  # once it is resumed to find nothing new
        jobs.open_gate(end)
        handle = jobs.start(start=path)
        jobs.await_output("out", expected(range(end)))
        path = handle.stop_with_savepoint(False).result(60)
        assert handle.get_job_status().result() is JobStatus.FINISHED
        assert written(jobs.root / "out") == expected(range(end))
        assert not (jobs.root / "checkpoints" / "job").exists()


@local
def test_archive(jobs: CountingJobs, tmp_path: Path) -> None:
    """All that is left of the job is one file."""
    handle = jobs.start()
    jobs.await_output("out", expected(range(SAVED)))
    path = Path(handle.stop_with_savepoint(False).result(60))
    with tarfile.open(tmp_path / "job.tar.gz", "w:gz") as archive:
        archive.add(path, "savepoint")
    shutil.rmtree(path.parent)
    shutil.rmtree(tmp_path / "checkpoints")
    shutil.rmtree(tmp_path / "stores")

    with tarfile.open(tmp_path / "job.tar.gz") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    jobs.open_gate(30)
    jobs.start(start=tmp_path / "unpacked" / "savepoint")
    jobs.await_output("out", expected(range(30)))


@local
def test_what_if(jobs: CountingJobs) -> None:
    """A copy with another function tries it out, while the original runs on undisturbed."""
    original = jobs.start()
    jobs.await_output("out", expected(range(SAVED)))
    path = original.trigger_savepoint().result(60)
    jobs.start("tried", TwiceFromTwenty(), start=path, job_id="what-if")
    jobs.open_gate(30)
    jobs.await_output("out", expected(range(30)))
    jobs.await_output("tried", twice_since_twenty(30))
    assert original.get_job_status().result() is JobStatus.RUNNING


def test_a_and_b_side_by_side(jobs: CountingJobs, saved: Path) -> None:
    """Two versions at once from one savepoint; that it stays as it is, the fixture sees to."""
    jobs.open_gate(25)
    a = jobs.start("a", Count(), start=saved, job_id="a")
    b = jobs.start("b", TwiceFromTwenty(), start=saved, job_id="b")
    jobs.await_output("a", since(SAVED, 25))
    jobs.await_output("b", twice_since_twenty(25))
    jobs.open_gate(30)
    jobs.await_output("b", twice_since_twenty(30))
    jobs.cancelled(b)
    jobs.await_output("a", since(SAVED, 30))
    assert a.get_job_status().result() is JobStatus.RUNNING
