"""A task's time over edges of Spark sources: what is known before their records are through."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.graph.location import Location
from penstock.graph.partitioning import ByKey
from penstock.runtime.epoch import EpochOrder
from penstock.runtime.input_time import InputTime
from penstock.runtime.operators.sources import SparkSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import (
    Output,
    PhysicalEdge,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.watermarks import AHEAD, IDLE, MAX_TIMESTAMP, MIN_TIMESTAMP, WATERMARK

_HERE = Location("f.py", 1)
_TIME = AssignTime(
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, _: v)
)


def _source(index: int, operator: Any) -> Vertex:
    output = Output(tag=None, operator=None, edge=index)
    head = PhysicalOperator(f"u{index}", f"s{index}", _HERE, operator, None, (output,), index)
    return Vertex(index, f"v{index}", f"v{index}", 0, 1, 128, (head,), (), (index,))


def _spark() -> SparkSource:
    return SparkSource("frame", None, True, time=_TIME, parts_end=True)


def _input(*operators: Any) -> InputTime:
    """Of a task that reads these sources, one by each edge."""
    sources = [_source(index, operator) for index, operator in enumerate(operators)]
    edges = [
        PhysicalEdge(s.index, s.index, len(sources), ByKey(lambda v: v), 0, _HERE, "e", True)
        for s in sources
    ]
    inputs = tuple(edge.index for edge in edges)
    target = Vertex(len(sources), "t", "t", 1, 1, 128, (), inputs, ())
    settings: Any = None  # of which nothing is asked
    return InputTime(PhysicalPlan(settings, (*sources, target), tuple(edges)), target, 0, None)


def _order(ended: tuple[int, ...] = (), **times: tuple[int, bool]) -> EpochOrder:
    return EpochOrder(1, None, 0, ended=ended, times=times)


def _tell(time: InputTime, edge: int, watermark: int, ahead: tuple[int, ...] = ()) -> None:
    """What a source's task knows at its end, which is read before all records."""
    time.receive(edge, 0, (WATERMARK, watermark))
    if not ahead:
        time.receive(edge, 0, (IDLE, 0))
    for least in ahead:
        time.receive(edge, 0, (AHEAD, least))


def _steps(time: InputTime, edge: int, payloads: int) -> list[Any]:
    """What follows before the records, and from each payload."""
    return [time.before_records(), *(time.passed(edge, 0) for _ in range(payloads))]


@pytest.mark.parametrize(
    ("ended", "times"), [((0,), {"u0": (500, False)}), ((), {"u0": (2000, False)})]
)
def test_a_source_without_records_holds_nobody_back(ended: Any, times: Any) -> None:
    """Whether it has ended in an earlier epoch, or is ahead."""
    time = _input(_spark(), _spark())
    for base in (1000, 1300):
        time.begin_epoch(_order(ended, **times))
        _tell(time, 0, MIN_TIMESTAMP)
        _tell(time, 1, base + 300, ahead=(base + 100, base + 200, base + 299))
        assert _steps(time, 1, 3) == [
            [],
            *([(WATERMARK, base + step)] for step in (199, 298, 300)),
        ]
        assert time.end_epoch(_order(ended, **times)) == []


def test_one_that_is_behind_does() -> None:
    time = _input(_spark(), _spark())
    time.begin_epoch(_order(u0=(500, False)))
    _tell(time, 0, MIN_TIMESTAMP)
    _tell(time, 1, 1300, ahead=(1100, 1200))
    assert _steps(time, 1, 2) == [[], [(WATERMARK, 500)], []]


def test_beside_a_python_source() -> None:
    """Its records come while the Spark source, which stands where it was, has none."""
    time = _input(_spark(), _Python())
    time.begin_epoch(_order(u0=(5000, False)))
    _tell(time, 0, MIN_TIMESTAMP)
    assert time.before_records() == []
    for at in (100, 200):
        assert time.receive(1, 0, (WATERMARK, at)) == [(WATERMARK, at)]
        assert time.passed(1, 0) == []
        assert time.before_records() == []


def test_when_all_have_ended() -> None:
    time = _input(_spark(), _spark())
    time.begin_epoch(_order((0, 1)))
    for edge in (0, 1):
        _tell(time, edge, MIN_TIMESTAMP)
    assert time.before_records() == [(WATERMARK, MAX_TIMESTAMP)]
    assert time.end_epoch(_order((0, 1))) == []


class _Python:
    """A source that is none of Spark's."""
