"""Time to live: state that was not touched for long enough is gone.

::

    time        0          1.2 s
    records   a  a           a
    forgets   1  2           1      lives 300 ms
    remembers 1  2           3
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.datagen import DataGeneratorSource
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Counts(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        live = StateTtlConfig.new_builder(timedelta(milliseconds=300)).build()
        forgets = ValueStateDescriptor("forgets", Types.INT())
        forgets.enable_time_to_live(live)
        entries = MapStateDescriptor("entries", Types.INT(), Types.INT())
        entries.enable_time_to_live(live)
        items = ListStateDescriptor("items", Types.INT())
        items.enable_time_to_live(live)
        self._forgets = runtime_context.get_state(forgets)
        self._entries = runtime_context.get_map_state(entries)
        self._items = runtime_context.get_list_state(items)
        self._remembers = runtime_context.get_state(ValueStateDescriptor("remembers", Types.INT()))

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        for state in (self._forgets, self._remembers):
            state.update((state.value() or 0) + 1)
        self._entries.put(value, value)
        self._items.add(value)
        alive = sorted(self._entries.keys()), list(self._items.get())
        yield self._remembers.value(), self._forgets.value(), *alive


def test_state_expires(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    source = DataGeneratorSource(lambda i: i, count=2, rate=1 / 1.2)
    twice_then_once = env.from_source(source).flat_map(lambda i: [0, 1] if i == 0 else [2])

    stream = twice_then_once.key_by(lambda n: "a").process(Counts())

    assert list(stream.execute_and_collect()) == [
        (1, 1, [0], [0]),
        (2, 2, [0, 1], [0, 1]),
        (3, 1, [2], [2]),
    ]
