"""key_by: by position, name or selector; records of one key meet in one subtask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pipeline_records import Point, Reading, Sensor

from penstock.common import Row, Types
from penstock.datastream import (
    KeyedProcessFunction,
    KeySelector,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.state.key_groups import key_group_of, subtask_of
from penstock.state.keys import encode_key


class WithSubtask(KeyedProcessFunction):
    """Gives (key, subtask)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self._subtask


class Parity(KeySelector):
    def get_key(self, value: tuple[str, int]) -> int:
        return value[1] % 2


def test_same_key_same_subtask(env: StreamExecutionEnvironment) -> None:
    keys = [f"key {i % 20}" for i in range(200)]
    stream = env.from_collection(keys).rebalance().map(str).key_by(lambda key: key)

    subtasks = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for key, subtask in stream.process(WithSubtask()).execute_and_collect():
        subtasks[key].add(subtask)
        counts[key] += 1

    assert counts == {f"key {i}": 10 for i in range(20)}
    expected = {key: subtask_of(key_group_of(encode_key(key), 128), 128, 2) for key in subtasks}
    assert subtasks == {key: {subtask} for key, subtask in expected.items()}
    assert set(expected.values()) == {0, 1}


@pytest.mark.parametrize(
    ("selector", "records", "keys"),
    [
        (0, [("a", 1), ("b", 2), ("a", 3)], ["a", "a", "b"]),
        ("f1", [("a", 1), ("b", 2), ("a", 3)], [1, 2, 3]),
        ([1, 0], [("a", 1), ("b", 2)], [(1, "a"), (2, "b")]),
        (Parity(), [("a", 1), ("b", 2), ("a", 3)], [0, 1, 1]),
        ("sensor", [Reading("s1", 0.5), Reading("s2", 1.5)], ["s1", "s2"]),
        ("id", [{"id": 7}, {"id": 8}], [7, 8]),
        ("x", [Point(1, 2), Point(3, 4)], [1, 3]),
        ("name", [Row(name="Ann", age=7)], ["Ann"]),
        (lambda number: number // 2, [1, 2, 3], [0, 1, 1]),
    ],
    ids=["position", "f1", "several", "selector", "dataclass", "dict", "NamedTuple", "Row", "λ"],
)
def test_selectors(
    env: StreamExecutionEnvironment,
    selector: int | str | Callable[[Any], Any],
    records: list[Any],
    keys: list[Any],
) -> None:
    stream = env.from_collection(records).key_by(selector).process(WithSubtask())

    assert sorted(key for key, _ in stream.execute_and_collect()) == keys


def test_odd_keys_find_their_state(env: StreamExecutionEnvironment) -> None:
    """Keys of many kinds; 1, True and 1.0 are one key, as in a dict."""
    keys: list[Any] = [
        "a", b"a", 1, True, 1.0, 1.5, (None,), (1, "a"), Sensor("b1", 7), Sensor("b1", 7),
        Point(1, 2), frozenset({1, 2}), "", -1, 1 << 80,
    ]  # fmt: skip
    stream = env.from_collection(keys * 3).key_by(lambda key: key)

    counted = stream.map_with_state(lambda key, n: ((key, (n or 0) + 1), (n or 0) + 1))

    last: dict[Any, int] = {}
    for key, n in counted.execute_and_collect():
        last[key] = max(n, last.get(key, 0))
    assert last == {key: 3 * keys.count(key) for key in keys}
    assert last[1] == 9


def test_declared_key_type(env: StreamExecutionEnvironment) -> None:
    """A key is what its declared type makes of it: here 300 wraps to the byte 44."""
    stream = env.from_collection([300, 44]).key_by(lambda n: n, key_type=Types.BYTE())

    keys = {key for key, _ in stream.process(WithSubtask()).execute_and_collect()}
    assert keys == {44}


def test_key_by_again_and_collect_with_keys(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([("a", 1), ("b", 2)]).key_by(0).key_by(1)

    rows = sorted(stream.execute_and_collect(), key=lambda row: row[0])
    assert rows == [Row(f0=1, f1=("a", 1)), Row(f0=2, f1=("b", 2))]
