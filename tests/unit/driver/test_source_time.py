"""What the driver knows of its sources' time: Spark's as a whole, aligned ones as a group."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.driver.source_time import SourceTime
from penstock.graph.location import user_location
from penstock.runtime.epoch import Acknowledgement, EpochOrder
from penstock.runtime.operators.sources import PythonSource, SparkSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import JobSettings, PhysicalOperator, PhysicalPlan, Vertex
from penstock.runtime.watermarks import MIN_TIMESTAMP
from penstock.testing import ScriptedSource

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def plan_of(**sources: Any) -> PhysicalPlan:
    """A plan of sources only, by uid."""
    settings = JobSettings("job", "job", "run", "", "", "hashmap", 1, 1, 1.0, False)
    vertices = []
    for index, (uid, operator) in enumerate(sources.items()):
        head = PhysicalOperator(uid, uid, user_location(), operator, None, (), index)
        vertices.append(Vertex(index, uid, uid, 0, 2, 128, (head,), (), ()))
    return PhysicalPlan(settings, tuple(vertices), ())


def spark(strategy: WatermarkStrategy) -> SparkSource:
    return SparkSource("frame", None, False, time=AssignTime(strategy))


def python(strategy: WatermarkStrategy) -> PythonSource:
    return PythonSource(ScriptedSource([]), AssignTime(strategy))


def told(vertex: int, subtask: int, uid: str, **reached: int) -> Acknowledgement:
    return Acknowledgement(vertex, subtask, "token", reached={uid: reached})


def test_a_spark_source_is_where_the_slowest_task_with_records_was() -> None:
    time = SourceTime(plan_of(s=spark(MONOTONOUS)))
    assert time.times(0) == {"s": (MIN_TIMESTAMP, False)}
    time.learn(0, [told(0, 0, "s", part=10), told(0, 1, "s", part=7), Acknowledgement(0, 2, "t")])
    assert time.times(0) == {"s": (7, False)}
    time.learn(0, [told(0, 0, "s", part=5)])
    assert time.times(0) == {"s": (7, False)}


def test_of_files_the_newest_decides() -> None:
    files = SparkSource("frame", None, False, parts_end=True, time=AssignTime(MONOTONOUS))
    time = SourceTime(plan_of(s=files))
    time.learn(0, [told(0, 0, "s", part=10), told(0, 1, "s", part=7), Acknowledgement(0, 2, "t")])
    assert time.times(0) == {"s": (10, False)}
    time.learn(0, [told(0, 0, "s", part=5)])
    assert time.times(0) == {"s": (10, False)}


def test_a_spark_source_is_idle_after_so_much_silence() -> None:
    time = SourceTime(plan_of(s=spark(MONOTONOUS.with_idleness(100)), t=spark(MONOTONOUS)))
    assert time.times(1000)["s"] == (MIN_TIMESTAMP, False)
    time.learn(1000, [])
    assert not time.times(1099)["s"][1]
    assert time.times(1100)["s"][1]
    assert not time.times(10**9)["t"][1]
    time.learn(1100, [told(0, 0, "s", part=3)])
    assert time.times(1199)["s"] == (3, False)
    assert time.times(1200)["s"] == (3, True)


def test_the_ingestion_time_of_a_spark_source_is_the_clock() -> None:
    time = SourceTime(plan_of(s=spark(WatermarkStrategy.for_ingestion_time())))
    assert time.times(1000) == {"s": (999, False)}


def test_the_slowest_of_a_group() -> None:
    a, b = MONOTONOUS.with_watermark_alignment("a", 1), MONOTONOUS.with_watermark_alignment("b", 1)
    time = SourceTime(plan_of(x=python(a), y=python(a), z=python(b), free=python(MONOTONOUS)))
    assert time.slowest() == {}
    time.learn(
        0,
        [
            told(0, 0, "x", one=50, unread=MIN_TIMESTAMP),
            told(0, 1, "x", two=40),
            told(1, 0, "y", one=60),
            told(2, 0, "z", one=5),
            told(3, 0, "free", one=1),
        ],
    )
    assert time.slowest() == {"a": 40, "b": 5}
    time.learn(0, [told(1, 0, "y", one=70)])  # the splits of x are finished or idle
    assert time.slowest() == {"a": 70}


def test_an_order_travels_as_text() -> None:
    order = EpochOrder(3, 2, 1000, ended=(0, 4), times={"s": (7, True)}, slowest={"g": 5})
    read = EpochOrder.from_text(order.to_text())
    assert (read.ended, read.slowest) == ((0, 4), {"g": 5})
    watermark, idle = read.times["s"]
    assert (watermark, idle) == (7, True)
