"""A small plan: a Python source, an exchange by key, a stateful operator with a sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.datastream.connectors.base import Committer, Sink, SinkWriter, Split
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.data_stream import DataStream
from penstock.graph.location import user_location
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.physical import JobSettings, PhysicalPlan


class _Writer(SinkWriter):
    def write(self, value: Any, context: Any) -> None:
        pass


class _Sink(Sink):
    def create_writer(self, context: Any) -> SinkWriter:
        return _Writer()

    def create_committer(self) -> Committer | None:
        return None


def make_plan(
    parallelism: int = 2,
    max_parallelism: int | None = None,
    source: Any = None,
    uid: str = "count",
    extra_uid: str | None = None,
    root: str = "/root",
) -> PhysicalPlan:
    graph = StreamGraph()
    program: Any = type("Program", (), {"_graph": graph})()
    operator = source or PythonSource(CollectionSource([1]))
    node = graph.add("Source", operator, (), location=user_location())
    stream = DataStream(program, (Edge(node.id),)).uid("source")
    counted = stream.key_by(lambda v: v).map(lambda v: v).uid(uid)
    if extra_uid is not None:
        counted = counted.map(lambda v: v).uid(extra_uid)
    counted.sink_to(_Sink()).uid("sink")
    nodes = graph.upstream_of([sink.id for sink in graph.sinks])
    settings = JobSettings(
        job_id="job",
        job_name="Job",
        run_id="run",
        root=root,
        local_dir="/local",
        state_backend="hashmap",
        cache_entries=10,
        max_records_per_epoch=10,
        **_further_settings(),
    )
    plan = translate(nodes, PlanDefaults(parallelism, max_parallelism), settings)
    return replace(plan, splits={"source": (Split("0"), Split("1"))})


def _further_settings() -> dict[str, Any]:
    optional = {"epoch_seconds": 60.0, "batch": False}
    return {name: optional[name] for name in optional if name in JobSettings.__dataclass_fields__}


@pytest.fixture
def plan_of() -> Callable[..., PhysicalPlan]:
    """Makes plans: `source` at level 0, `count` with `sink` behind a key exchange."""
    return make_plan


@pytest.fixture
def spark_source() -> SparkSource:
    return SparkSource("frame", None, True)
