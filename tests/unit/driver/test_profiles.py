"""Profiles on the driver: sums, table, folded stacks, flame graph and files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from penstock.common import Configuration
from penstock.driver.epoch_report import EpochReport
from penstock.driver.profiles import collected
from penstock.driver.profiles.collected import CollectedProfile
from penstock.driver.profiles.files import claim_directory, write_profile
from penstock.driver.profiles.flame_graph import flame_graph
from penstock.driver.profiles.summary import summary_of
from penstock.driver.profiles.text import profile_text
from penstock.driver.profiling import Profiling
from penstock.errors import FileAccessError
from penstock.graph.location import Location
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.stateless import Filter, Map
from penstock.runtime.physical import (
    JobSettings,
    Output,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.profiling.counting import told_by
from penstock.runtime.profiling.samples import (
    OPERATOR,
    ROUTING,
    STATE_READ,
    WAITING,
    Spot,
    TaskProfile,
)

SETTINGS = JobSettings("id", "demo", "run", "/root", "/local", "hashmap", 1000, 1000, 10.0, False)
SVG = "{http://www.w3.org/2000/svg}"


def operator(uid: str, name: str, description: Any, target: int | None = None) -> PhysicalOperator:
    outputs = () if target is None else (Output(operator=target),)
    return PhysicalOperator(uid, name, Location("job.py", 7), description, None, outputs, 0)


PLAN = PhysicalPlan(
    SETTINGS,
    (
        Vertex(
            *(0, "v0", "Map -> Map -> Filter; odd", 0, 2, 128),
            (
                operator("a", "Map", Map(len), 1),
                operator("b", "Map", Map(len), 2),
                operator("c", "Filter; odd", Filter(len), 3),
                operator("d", "Sink", Map(len)),
            ),
            (),
            (),
        ),
        Vertex(1, "v1", "Process", 1, 2, 128, (operator("e", "Process", Map(len)),), (0,), ()),
    ),
    (),
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def acknowledgement(
    vertex: int, subtask: int, seconds: float, records: int, micros: dict[Spot, int]
) -> Acknowledgement:
    told = Acknowledgement(vertex, subtask, "token", seconds=seconds)
    told.records_in = {f"v{vertex}": records}
    told.profile = TaskProfile(micros, samples=len(micros))
    if vertex == 0:
        told.profile.records = {"d": 10}
    return told


@pytest.fixture
def profile() -> CollectedProfile:
    """Two epochs of two subtasks each, 10 s from start to end."""
    clock = Clock()
    found = CollectedProfile(PLAN, False, 0.005, clock)
    clock.now = 103.0
    for _ in range(2):
        found.acknowledged(
            [
                acknowledgement(
                    *(0, subtask, 0.5 + subtask / 4, 30),
                    {
                        Spot(0, "a", OPERATOR, ("parse (job.py:1)", "loads (json.py:2)")): 600_000,
                        Spot(0, "b", OPERATOR): 100_000,
                        Spot(0, "c", ROUTING, (f"[{ROUTING}]",)): 100_000,
                        Spot(0, None, WAITING): 400_000,
                    },
                )
                for subtask in range(2)
            ]
            + [acknowledgement(1, 0, 0.2, 5, {Spot(1, "e", STATE_READ): 200_000})],
            1.0,
        )
        steps = {"order": 0.1, "run": 1.0, "commit": 0.2}
        found.committed(EpochReport(0, 1.3, {}, {}, 0, 0, False, None, {}, steps))
    clock.now = 110.0
    return found


def test_time_is_summed_by_operator(profile: CollectedProfile) -> None:
    summary = summary_of(profile)
    worked = 4 * 0.8 + 2 * 0.2
    assert summary.worked_seconds == pytest.approx(worked)
    first = summary.operators[0]
    assert (first.uid, first.label, first.subtasks) == ("a", "Map #1", 2)
    assert first.self_seconds == first.total_seconds == pytest.approx(2.4)
    assert first.self_percent == pytest.approx(100 * 2.4 / worked)
    by_uid = {found.uid: found for found in summary.operators}
    assert (by_uid["c"].self_seconds, by_uid["c"].total_seconds) == (0.0, pytest.approx(0.4))
    assert by_uid["e"].kinds == {STATE_READ: pytest.approx(0.4)}
    assert by_uid["e"].subtasks == 1
    totals = [found.total_seconds for found in summary.operators]
    assert totals == sorted(totals, reverse=True)


def test_records_behind_a_map_are_those_that_it_took(profile: CollectedProfile) -> None:
    records = {found.uid: found.records for found in summary_of(profile).operators}
    assert records == {"a": 120, "b": 120, "c": 120, "d": 40, "e": 10}
    (first, *_) = summary_of(profile).operators
    assert first.micros_per_record == pytest.approx(20_000)


def test_records_of_a_side_output_or_of_two_inputs_are_not_known_before() -> None:
    def chain(*heads: PhysicalOperator) -> Vertex:
        operators = (*heads, operator("last", "Map", Map(len)))
        return Vertex(0, "v0", "chain", 0, 1, 128, operators, (), ())

    assert told_by(chain(operator("a", "Map", Map(len), 1)), 1) == 0
    aside = replace(operator("a", "Map", Map(len)), outputs=(Output(operator=1, tag="late"),))
    assert told_by(chain(aside), 1) is None
    both = [operator(uid, "Map", Map(len), 2) for uid in "ab"]
    assert told_by(chain(*both), 2) is None


def test_wall_time_is_told_by_step(profile: CollectedProfile) -> None:
    steps = summary_of(profile).steps
    assert steps["starting"] == pytest.approx(2.0)  # the first epoch ran from 102 to 103
    assert (steps["order"], steps["commit"]) == (pytest.approx(0.2), pytest.approx(0.4))
    assert steps["in_tasks"] == pytest.approx(2 * (0.75 + 0.2))
    assert steps["engine"] == pytest.approx(2 * 0.05)
    assert sum(steps.values()) == pytest.approx(10.0)


def test_tasks_that_run_in_turn_take_as_long_as_all_of_them() -> None:
    profile = CollectedProfile(PLAN, True, 0.005, Clock())
    profile.acknowledged(
        [acknowledgement(0, subtask, 0.4, 1, {}) for subtask in range(2)], seconds=1.0
    )
    assert profile.steps.in_tasks == pytest.approx(0.8)


def test_tasks_that_overlap_take_no_longer_than_the_run() -> None:
    profile = CollectedProfile(PLAN, True, 0.005, Clock())
    profile.acknowledged([acknowledgement(0, subtask, 0.8, 1, {}) for subtask in range(2)], 1.0)
    assert (profile.steps.in_tasks, profile.steps.engine) == (1.0, 0.0)


def test_an_epoch_that_is_run_again_with_frozen_edges_has_failed() -> None:
    profile = CollectedProfile(PLAN, True, 0.005, Clock())
    profile.acknowledged([Acknowledgement(0, 0, "token", freeze_edges=[0])], 0.1)
    assert profile.failed_epochs == 1


def test_a_long_job_keeps_so_many_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "_MOST_STACKS", 4)
    profile = CollectedProfile(PLAN, True, 0.005, Clock())
    for number in range(10):
        seen = {Spot(0, "a", OPERATOR, (f"f{number}",)): 1}
        profile.acknowledged([acknowledgement(0, 0, 0.1, 1, seen)], 0.1)
    assert len(profile.tasks.micros) == 5
    assert sum(profile.tasks.micros.values()) == 10


def _profiling(tmp_path: Path, executor: str) -> tuple[Profiling, Any]:
    configuration = Configuration()
    configuration.set_string("penstock.profile.enabled", "true")
    configuration.set_string("penstock.profile.dir", str(tmp_path))
    configuration.set_string("penstock.executor", executor)
    profiling = Profiling(configuration, "demo")
    profiling.begin()
    loop: Any = SimpleNamespace(plan=PLAN, acknowledged=None)
    profiling.attach(loop)
    return profiling, loop


@pytest.mark.parametrize(("executor", "seconds"), [("local", 0.8), ("spark", 0.4)])
def test_tasks_run_side_by_side_on_spark(tmp_path: Path, executor: str, seconds: float) -> None:
    profiling, loop = _profiling(tmp_path, executor)
    loop.acknowledged([acknowledgement(0, subtask, 0.4, 1, {}) for subtask in range(2)], 1.0)
    profiling.end()
    found = json.loads((tmp_path / "demo" / "profile.json").read_text())
    assert found["steps"]["in_tasks"] == pytest.approx(seconds)


def test_an_epoch_does_not_suffer_by_its_profile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profiling, loop = _profiling(tmp_path, "local")
    loop.acknowledged([acknowledgement(99, 0, 0.4, 1, {})], 1.0)  # there is no such vertex
    assert "the profile of job demo misses an epoch" in caplog.text
    profiling.end()
    (tmp_path / "demo" / "profile.txt").unlink()
    profiling.end()
    assert not (tmp_path / "demo" / "profile.txt").exists()


def test_an_epoch_that_failed_took_its_time_as_well() -> None:
    profile = CollectedProfile(PLAN, True, 0.005, Clock())
    failed = Acknowledgement(0, 0, "token", error=b"pickled")
    failed.profile = TaskProfile({Spot(0, "a", OPERATOR): 50_000}, 1)
    profile.acknowledged([failed], 0.1)
    summary = summary_of(profile)
    assert (summary.failed_epochs, summary.operators[0].self_seconds) == (1, 0.05)


def test_the_table_names_the_slowest_first(profile: CollectedProfile) -> None:
    lines = profile_text(summary_of(profile)).splitlines()
    assert lines[0].startswith("Profile of job demo: 10.0 s, 2 epochs, 18 samples")
    assert lines[2].split() == ["operator", "line", "self", "%", "total", "%", "records",
                                "µs/record", "subtasks"]  # fmt: skip
    assert lines[3].split() == ["Map", "#1", "job.py:7", "66.7", "66.7", "120", "20000.00", "2"]
    assert any(re.match(r"  state read +0.40 s +11.1 %$", line) for line in lines)
    assert "Beside that they were waiting for input 1.60 s" in lines
    assert any(line.startswith("  running: in Python tasks") for line in lines)


def test_a_job_without_samples_says_so() -> None:
    text = profile_text(summary_of(CollectedProfile(PLAN, True, 0.005, Clock())))
    assert "No task was seen at work" in text
    assert ET.fromstring(flame_graph("nothing", {})).tag == f"{SVG}svg"


def test_folded_stacks_are_of_the_common_form(profile: CollectedProfile, tmp_path: Path) -> None:
    write_profile(str(tmp_path), summary_of(profile))
    found = {}
    for line in (tmp_path / "profile.folded").read_text().splitlines():
        stack, _, micros = line.rpartition(" ")
        found[tuple(stack.split(";"))] = int(micros)
    chain = "Map -> Map -> Filter, odd"
    assert found == {
        (chain, "Map #1", "parse (job.py:1)", "loads (json.py:2)"): 2_400_000,
        (chain, "Map #2"): 400_000,
        (chain, "Filter, odd", "[keys and routing]"): 400_000,
        (chain, "[waiting for input]"): 1_600_000,
        ("Process", "Process"): 400_000,
    }


def test_the_flame_graph_stands_by_itself() -> None:
    stacks = {("a <b>", "f"): 300, ("a <b>", "g", 'h"&'): 600, ("c",): 100}
    text = flame_graph('job "x" & y', stacks)
    assert re.findall(r"(?:href|src|url|import)\W", text) == []
    assert [url for url in re.findall(r"https?://[^\"]+", text) if "w3.org" not in url] == []
    root = ET.fromstring(text)
    frames = {}
    for group in root.iter(f"{SVG}g"):
        rect, title = group.find(f"{SVG}rect"), group.find(f"{SVG}title")
        assert rect is not None
        assert title is not None
        frames[group.attrib["data-label"]] = (
            round(float(rect.attrib["x"])),
            round(float(rect.attrib["width"])),
            int(group.attrib["data-d"]),
            (title.text or "").rpartition(", ")[2],
        )
    assert frames == {
        "all tasks": (10, 1180, 0, "100.00 %"),
        "a <b>": (10, 1062, 1, "90.00 %"),
        "g": (10, 708, 2, "60.00 %"),
        'h"&': (10, 708, 3, "60.00 %"),
        "f": (718, 354, 2, "30.00 %"),
        "c": (1072, 118, 1, "10.00 %"),
    }


def test_frames_that_nobody_could_see_are_not_drawn() -> None:
    stacks = {("large",): 1_000_000, ("tiny",): 1}
    labels = re.findall(r'data-label="([^"]*)"', flame_graph("x", stacks))
    assert labels == ["all tasks", "large"]


def test_json_has_all_that_the_table_has(profile: CollectedProfile, tmp_path: Path) -> None:
    write_profile(str(tmp_path), summary_of(profile))
    found = json.loads((tmp_path / "profile.json").read_text())
    assert (found["format"], found["job"], found["epochs"]) == (1, "demo", 2)
    assert found["operators"][0]["micros_per_record"] == pytest.approx(20_000)
    assert found["steps"]["commit"] == pytest.approx(0.4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("flame.svg", "profile.folded", "profile.json", "profile.txt"),
    ]


def test_each_job_has_a_directory(tmp_path: Path) -> None:
    first = claim_directory(str(tmp_path), "word count/1")
    second = claim_directory(str(tmp_path), "word count/1")
    assert (first, second) == (str(tmp_path / "word-count-1"), str(tmp_path / "word-count-1-2"))
    assert list(Path(first).iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileAccessError, match=r"cannot write to .*file/job"):
        claim_directory(str(tmp_path / "file"), "job")
