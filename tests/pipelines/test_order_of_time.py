"""Records of several producers come to a receiver in the order of event time, as far as their
payloads are in it: so within an epoch time goes on, and windows and joins hold little of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.connectors.datagen import DataGeneratorSource

COUNT = 100_000
"""Enough for many payloads."""


@pytest.fixture
def env(make_env: Any) -> Any:
    """Sources tell the time as often as they can."""
    return make_env({"pipeline.auto-watermark-interval": "1 ms"})


class Told(KeyedProcessFunction):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


def stream(env: Any, name: str, step: int = 1) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    source = DataGeneratorSource(lambda i: i * step, COUNT // step)
    return env.from_source(source, strategy, name)


def furthest_ahead(told: list[tuple[int, int]]) -> int:
    """How far records were ahead of the time that had come, but for the first fifth."""
    return max(value - watermark for value, watermark in told if value > COUNT // 5)


def test_of_the_subtasks_of_a_source(env: Any) -> None:
    told = stream(env, "numbers").key_by(lambda value: value % 7, Types.INT()).process(Told())
    found = list(told.execute_and_collect())
    assert sorted(value for value, _ in found) == list(range(COUNT))
    assert furthest_ahead(found) < COUNT // 5


def test_of_streams_that_meet(env: Any) -> None:
    """One has ten records where the other has one, which tells its time but once: it does so first,
    so that the other one's time is what counts."""
    both = stream(env, "dense").union(stream(env, "sparse", 10))
    told = both.key_by(lambda value: value % 7, Types.INT()).process(Told())
    found = list(told.execute_and_collect())
    assert len(found) == COUNT + COUNT // 10
    assert furthest_ahead([each for each in found if each[0] % 10]) < COUNT // 5
