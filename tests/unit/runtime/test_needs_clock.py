"""Which operators need epochs to follow one another while no records come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.window import (
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from penstock.runtime.operators.process import Process
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.operators.two_inputs import CoProcess
from penstock.runtime.operators.windows import Windowing
from penstock.runtime.physical import PhysicalPlan


class WithTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return None

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return None


class WithoutTimer(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return None


class OwnTrigger(EventTimeTrigger[Any]):
    pass


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def plan_of(*operators: Any) -> PhysicalPlan:
    """As much of a plan as is looked at."""
    chain = tuple(SimpleNamespace(operator=operator) for operator in (object(), *operators))
    vertex: Any = SimpleNamespace(operators=chain)
    settings: Any = None
    return PhysicalPlan(settings, (vertex,), ())


def windows(trigger: Any) -> Windowing:
    assigner = TumblingEventTimeWindows.of(1000)
    return Windowing(assigner, trigger, None, 0, None, None, None, None)


@pytest.mark.parametrize(
    "operator",
    [
        Process(WithTimer()),
        CoProcess(WithTimer()),
        AssignTime(MONOTONOUS.with_idleness(1000)),
        AssignTime(WatermarkStrategy.for_ingestion_time()),
        windows(ProcessingTimeTrigger()),
        windows(ContinuousProcessingTimeTrigger.of(100)),
        windows(PurgingTrigger.of(ProcessingTimeTrigger())),
        windows(ProcessingTimeoutTrigger.of(EventTimeTrigger(), 100)),
        windows(OwnTrigger()),
    ],
)
def test_these_do(operator: Any) -> None:
    assert plan_of(operator).needs_clock


@pytest.mark.parametrize(
    "operator",
    [
        Process(WithoutTimer()),
        AssignTime(MONOTONOUS),
        windows(EventTimeTrigger()),
        windows(CountTrigger.of(3)),
        windows(PurgingTrigger.of(CountTrigger.of(3))),
    ],
)
def test_these_do_not(operator: Any) -> None:
    assert not plan_of(operator).needs_clock
