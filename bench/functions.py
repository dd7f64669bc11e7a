"""The functions under test: every contender runs these classes, so only the engines differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream.functions import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    SinkFunction,
)
from penstock.datastream.state import ValueStateDescriptor

Reading = tuple[str, int, float]
"""Sensor, time in milliseconds, temperature."""

COUNTED = "outputs"


class ToFahrenheit(MapFunction):
    def map(self, value: Reading) -> Reading:
        return value[0], value[1], value[2] * 1.8 + 32


def sensor_of(value: Reading) -> str:
    return value[0]


class CountAndSum(KeyedProcessFunction):
    """Updates the key's state for every record, and emits the count so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count and sum", Types.PICKLED_BYTE_ARRAY())
        self._state = runtime_context.get_state(descriptor)

    def process_element(
        self, value: Reading, ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, int]]:
        count, total = self._state.value() or (0, 0.0)
        count += 1
        self._state.update((count, total + value[2]))
        yield value[0], count


class CountingSink(SinkFunction):
    """Counts what arrives; a gauge tells the number since it was last asked, which is per epoch."""

    def __init__(self) -> None:
        self._count = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_metrics_group().gauge(COUNTED, self.taken)

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self._count += 1

    def taken(self) -> int:
        count, self._count = self._count, 0
        return count


class Remember(KeyedProcessFunction):
    """Keeps the last payload of each key and how often the key was seen. Emits nothing."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY())
        self._state = runtime_context.get_state(descriptor)

    def process_element(self, value: tuple[int, bytes], ctx: KeyedProcessFunction.Context) -> None:
        seen = self._state.value()
        self._state.update((1 if seen is None else seen[0] + 1, value[1]))


def number_of(value: tuple[int, bytes]) -> int:
    return value[0]
