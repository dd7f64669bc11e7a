"""Harnesses for functions of two streams: connected ones, or one beside a broadcast stream."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.datastream._stream_arguments import selector_of
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor
from penstock.graph.partitioning import Broadcast, ByKey, Forward, Partitioning
from penstock.runtime.operators.broadcast import BroadcastProcess
from penstock.runtime.operators.two_inputs import CoFlatMap, CoMap, CoProcess
from penstock.testing.clock import ManualClock
from penstock.testing.harness import Harness, KeyedHarness, Operators, Program, surrounded_by


class TwoInputHarness(Harness):
    """Drives a function of two connected streams: co-map, co-flat-map, co-process."""

    _operators: ClassVar[Operators] = {
        CoMapFunction: CoMap,
        CoFlatMapFunction: CoFlatMap,
        CoProcessFunction: CoProcess,
    }

    def __init__(
        self, function: Function, output_type: Any = None, clock: ManualClock | None = None
    ) -> None:
        inputs = (Forward(), Forward())
        self._start(Program(function, inputs, output_type), surrounded_by(clock))

    def process1(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand over a record of the first stream; what was emitted for it."""
        return self._process(0, value, timestamp)

    def process2(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand over a record of the second stream; what was emitted for it."""
        return self._process(1, value, timestamp)


class KeyedTwoInputHarness(KeyedHarness, TwoInputHarness):
    """Drives a function of two keyed streams, whose state it can look at."""

    _operators: ClassVar[Operators] = {
        **TwoInputHarness._operators,
        KeyedCoProcessFunction: CoProcess,
    }

    def __init__(
        self,
        function: Function,
        key_selector1: Any,
        key_selector2: Any,
        output_type: Any = None,
        clock: ManualClock | None = None,
    ) -> None:
        inputs = _by_key("key_selector1", key_selector1), _by_key("key_selector2", key_selector2)
        self._start(Program(function, inputs, output_type), surrounded_by(clock))


class BroadcastHarness(Harness):
    """Drives a function of a stream and a broadcast one.

    ::

        with BroadcastHarness(Judge(), [LIMITS]) as harness:
            harness.process_broadcast(("a", 10))
            assert harness.process(("a", 11)) == [("a", "too high")]
            assert harness.broadcast_state(LIMITS) == {"a": 10}
    """

    _operators: ClassVar[Operators] = {BroadcastProcessFunction: BroadcastProcess}

    def __init__(
        self,
        function: Function,
        descriptors: list[MapStateDescriptor],
        output_type: Any = None,
        clock: ManualClock | None = None,
    ) -> None:
        self._begin(function, Forward(), descriptors, output_type, clock)

    def _begin(
        self,
        function: Function,
        data: Partitioning,
        descriptors: list[MapStateDescriptor],
        output_type: Any,
        clock: ManualClock | None,
    ) -> None:
        program = Program(function, (data, Broadcast()), output_type, (tuple(descriptors),))
        self._start(program, surrounded_by(clock))

    def process(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand over a record of the stream; what was emitted for it."""
        return self._process(0, value, timestamp)

    def process_broadcast(self, value: Any, timestamp: int | None = None) -> list[Any]:
        """Hand over a broadcast record; what was emitted for it."""
        return self._process(1, value, timestamp)

    def broadcast_state(self, descriptor: MapStateDescriptor) -> dict[Any, Any]:
        """What a broadcast state holds."""
        found: dict[Any, Any] = self.operator_state(descriptor)
        return found


class KeyedBroadcastHarness(KeyedHarness, BroadcastHarness):
    """Drives a function of a keyed stream and a broadcast one."""

    _operators: ClassVar[Operators] = {KeyedBroadcastProcessFunction: BroadcastProcess}

    def __init__(
        self,
        function: Function,
        key_selector: Any,
        descriptors: list[MapStateDescriptor],
        output_type: Any = None,
        clock: ManualClock | None = None,
    ) -> None:
        by_key = _by_key("key_selector", key_selector)
        self._begin(function, by_key, descriptors, output_type, clock)


def _by_key(what: str, key_selector: Any) -> ByKey:
    return ByKey(selector_of(what, key_selector))
