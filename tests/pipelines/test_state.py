"""Keyed state of every kind, over several epochs, also from the store instead of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Types
from penstock.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import StateError


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class EveryKind(KeyedProcessFunction):
    """Each key gets 0, 1, 2, …; at every fifth number all its state is cleared."""

    def open(self, runtime_context: RuntimeContext) -> None:
        context = runtime_context
        self._value = context.get_state(ValueStateDescriptor("value", Types.INT()))
        self._list = context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self._map = context.get_map_state(
            MapStateDescriptor("map", Types.STRING(), Types.PICKLED_BYTE_ARRAY())
        )
        self._sum = context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        )
        self._mean = context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )
        self._all = [self._value, self._list, self._map, self._sum, self._mean]

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterator[Any]:
        _, number = value
        self._value.update((self._value.value() or 0) + 1)
        self._list.add(number)
        self._map.put(str(number), {"n": number})
        if number % 2:
            self._map.remove(str(number - 1))
        self._sum.add(number)
        self._mean.add(number)
        yield value, self._view()
        if number % 5 == 4:
            for state in self._all:
                state.clear()

    def _view(self) -> tuple[Any, ...]:
        entries = sorted((key, entry["n"]) for key, entry in self._map.items())
        sum_and_mean = self._sum.get(), self._mean.get()
        return self._value.value(), list(self._list.get()), entries, *sum_and_mean


def _expected(number: int) -> tuple[Any, ...]:
    since_clear = list(range(number - number % 5, number + 1))
    kept = [n for n in since_clear if n % 2 or n + 1 not in since_clear]
    entries = sorted((str(n), n) for n in kept)
    total = sum(since_clear)
    return len(since_clear), since_clear, entries, total, total / len(since_clear)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_every_kind_of_state(restartable_env: Any, backend: str) -> None:
    env = restartable_env(
        {
            "state.backend.type": backend,
            "penstock.state.cache-entries": "1",
            "penstock.source.max-records-per-epoch": "21",
            "parallelism.default": "4",
        }
    )
    records = [(f"k{i % 7}", i // 7) for i in range(84)]
    stream = env.from_collection(records).key_by(0).process(EveryKind())

    found = dict(stream.execute_and_collect())

    assert len(found) == 84
    assert found == {record: _expected(record[1]) for record in records}


class Asks(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("s"))

    def map(self, value: Any) -> Any:
        return value


def test_no_state_without_a_key(env: Any) -> None:
    stream = env.from_elements(1).map(Asks()).name("asks")

    with pytest.raises(StateError, match="'asks' has no keyed state") as caught:
        list(stream.execute_and_collect())
    assert "test_state.py:" in str(caught.value)


def test_state_of_a_map_after_key_by(env: Any) -> None:
    """Any function of a keyed stream has state, not only a process function."""

    class Previous(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self._last = runtime_context.get_state(ValueStateDescriptor("last"))

        def map(self, value: int) -> Any:
            before = self._last.value()
            self._last.update(value)
            return before, value

    stream = env.from_elements(1, 2, 3).key_by(lambda n: "k").map(Previous())

    assert list(stream.execute_and_collect()) == [(None, 1), (1, 2), (2, 3)]
