"""What the driver knows about loops: their ends, their waits, their turns."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.data_stream import DataStream
from penstock.driver.iterations import Iterations, LoopReport
from penstock.graph.location import user_location
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import JobSettings, PhysicalPlan
from penstock.storage.file_info import FileInfo
from penstock.storage.manifest import LoopState, Manifest

SETTINGS = JobSettings("id", "demo", "run", "/root", "/local", "hashmap", 1000, 1000, 10.0, False)


def _file(path: str) -> FileInfo:
    return FileInfo(path, 1, 10, "", "loop", (("loop", "records"),), (0, 1))


def _manifest(**loops: int) -> Manifest:
    stored = {uid: LoopState(records, (_file(uid),)) for uid, records in loops.items()}
    return Manifest("job", "Job", 3, 2, None, None, 0, {}, loops=stored)


@pytest.fixture
def plan() -> PhysicalPlan:
    """Source ── loop "first" ── loop "second" ── Sink"""
    graph = StreamGraph()
    program: Any = type("Program", (), {"_graph": graph})()
    source = PythonSource(CollectionSource([1]))
    node = graph.add("Source", source, (), location=user_location(), uid="source")
    stream = DataStream(program, (Edge(node.id),))
    for uid, wait in (("first", 0), ("second", 2000)):
        loop = stream.iterate(wait).uid(uid)
        stream = loop.map(lambda n: n)
        loop.close_with(stream)
    stream.print()
    return translate(graph.nodes, PlanDefaults(1), SETTINGS)


def test_the_plan(plan: PhysicalPlan) -> None:
    assert [(v.uid, v.level, bool(v.feedback)) for v in plan.vertices] == [
        ("source", 0, False),
        ("first", 1, True),
        ("second", 2, True),
    ]
    # What comes back is no input: nothing waits for it, and levels do not count it.
    assert [len(vertex.inputs) for vertex in plan.vertices] == [0, 1, 1]


def test_ends_from_the_source_on(plan: PhysicalPlan) -> None:
    """A head has ended when what it gets records from had, by the base, and its loop is empty."""
    loops = Iterations(plan)
    assert loops.ended(_manifest()) == []
    loops.learn((0,), _manifest(first=1), {})
    assert loops.ended(_manifest(first=1)) == []
    loops.learn((0,), _manifest(), {})
    assert loops.ended(_manifest()) == [1]
    loops.learn((0, 1), _manifest(), {})
    assert loops.ended(_manifest()) == [1, 2]
    assert loops.ended(_manifest(second=1)) == [1]


def test_waits_for_the_longest_time_while_empty(plan: PhysicalPlan) -> None:
    time = 100.0
    loops = Iterations(plan, now=lambda: time)
    assert not loops.over(_manifest())
    time += 1.9
    assert not loops.over(_manifest())
    assert not loops.over(_manifest(first=1))  # not empty: the wait begins anew
    time += 5
    assert not loops.over(_manifest())
    time += 2
    assert loops.over(_manifest())


def test_counts_turns_without_input_and_warns_once(
    plan: PhysicalPlan, caplog: pytest.LogCaptureFixture
) -> None:
    loops = Iterations(plan, warn_after_turns=2)
    nothing = LoopReport(0, 0)
    with caplog.at_level(logging.WARNING):
        read = {"source": 3, "first": 3}
        assert loops.learn((), _manifest(first=3), read) == {
            "first": LoopReport(3, 0),
            "second": nothing,
        }
        reports = [loops.learn((), _manifest(first=3), {"first": 3}) for _ in range(4)]
    assert [r["first"].turns_without_input for r in reports] == [1, 2, 3, 4]
    (warning,) = caplog.messages
    assert "Iteration" in warning
    assert "test_iterations.py" in warning
    assert "2 times" in warning


def test_stored_in_the_order_of_subtasks(plan: PhysicalPlan) -> None:
    def acknowledgement(subtask: int, records: int) -> Acknowledgement:
        files = [_file(f"{subtask}").to_json()] if records else []
        loops = {"first": {"records": records, "files": files}}
        return Acknowledgement(1, subtask, "token", loops=loops)

    stored = Iterations(plan).stored([acknowledgement(i, i) for i in (2, 0, 1)])
    assert stored == {"first": LoopState(3, (_file("1"), _file("2")))}
    assert Iterations(plan).stored([acknowledgement(0, 0)]) == {}


def test_a_manifest_names_the_files_of_its_loops() -> None:
    manifest = _manifest(first=3)
    assert [file.path for file in manifest.files()] == ["first"]
    assert Manifest.from_bytes("x", manifest.to_bytes()) == manifest
