"""Exchanges: how many records each subtask gets by each strategy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import (
    DataStream,
    MapFunction,
    Partitioner,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import InvalidArgumentError, InvalidProgramError

# Of what differs by numbers alone, Spark runs one case.
locally = pytest.mark.parametrize("executor", ["local"], indirect=True)
Travel = Callable[[Any], DataStream]

RECORDS = 120
SENDERS, RECEIVERS = 2, 4


class From(MapFunction):
    """Gives (own subtask, value)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return self._subtask, value


class ByRest(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % (num_partitions - 1)


STRATEGIES = {
    "rebalance": DataStream.rebalance,
    "shuffle": DataStream.shuffle,
    "rescale": DataStream.rescale,
    "broadcast": DataStream.broadcast,
    "global": DataStream.global_,
    "custom": lambda stream: stream.partition_custom(ByRest(), lambda record: record[1]),
    "lambda": lambda stream: stream.partition_custom(lambda key, n: n - 1, 0),
    "key": lambda stream: stream.key_by(lambda record: record[1]),
}


@pytest.fixture
def arrivals(env: StreamExecutionEnvironment) -> dict[str, Counter[tuple[int, int]]]:
    """By strategy, how many records went from which subtask to which."""
    sent = env.from_sequence(1, RECORDS).map(From()).set_parallelism(SENDERS)
    received = [
        travel(sent)
        .map(From())
        .set_parallelism(RECEIVERS)
        .map(lambda record, name=name: (name, record[1][0], record[0]))
        for name, travel in STRATEGIES.items()
    ]
    found: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in STRATEGIES}
    for name, sender, receiver in received[0].union(*received[1:]).execute_and_collect():
        found[name][sender, receiver] += 1
    return found


def test_subtask_counts(arrivals: dict[str, Counter[tuple[int, int]]]) -> None:
    each = RECORDS // SENDERS
    pairs = [(s, r) for s in range(SENDERS) for r in range(RECEIVERS)]

    assert arrivals["rebalance"] == dict.fromkeys(pairs, each // RECEIVERS)
    assert arrivals["broadcast"] == dict.fromkeys(pairs, each)
    assert arrivals["global"] == {(0, 0): each, (1, 0): each}
    # Each sender has its own two receivers.
    near = {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert arrivals["rescale"] == dict.fromkeys(near, each // 2)
    assert arrivals["custom"] == {pair: 20 for pair in pairs if pair[1] < RECEIVERS - 1}
    assert arrivals["lambda"] == {(0, 3): each, (1, 3): each}
    for random in ("shuffle", "key"):
        assert arrivals[random].total() == RECORDS
        assert set(arrivals[random]) == set(pairs)
        assert all(3 <= count <= 35 for count in arrivals[random].values())
        assert len(set(arrivals[random].values())) > 1, "random, not in turns"


def test_strategies_shown(env: StreamExecutionEnvironment) -> None:
    sent = env.from_sequence(1, RECORDS).set_parallelism(SENDERS)
    for name, travel in STRATEGIES.items():
        travel(sent.map(From()).set_parallelism(SENDERS)).map(From()).name(name).print()

    nodes = json.loads(env.get_execution_plan())["nodes"]

    shown = {
        node["type"]: node["predecessors"][0]["ship_strategy"]
        for node in nodes
        if node["type"] in STRATEGIES
    }
    labels = {name: name.upper() for name in STRATEGIES}
    assert shown == {**labels, "lambda": "CUSTOM", "key": "HASH"}


def test_rescale_to_fewer(env: StreamExecutionEnvironment) -> None:
    """Three senders, two receivers: each sender keeps to one receiver."""
    sent = env.from_sequence(1, 90).set_parallelism(3).map(From()).set_parallelism(3)
    pairs = Counter(
        (record[0], receiver)
        for receiver, record in sent.rescale().map(From()).execute_and_collect()
    )

    assert pairs.total() == 90
    assert sorted(sender for sender, _ in pairs) == [0, 1, 2]
    assert set(pairs.values()) == {30}
    assert {receiver for _, receiver in pairs} == {0, 1}


def exchanged(
    env: StreamExecutionEnvironment, senders: int, receivers: int, travel: Travel
) -> Counter[tuple[int, int]]:
    """How many of 120 records went from which subtask to which."""
    sent = env.from_sequence(1, RECORDS).set_parallelism(senders)
    arrived = travel(sent.map(From()).set_parallelism(senders)).map(From())
    arrived.set_parallelism(receivers)
    return Counter((sender, receiver) for receiver, (sender, _) in arrived.execute_and_collect())


@locally
@pytest.mark.parametrize(
    ("senders", "receivers", "channels"),
    [
        # A subtask has channels to a contiguous part of the other side, and no others.
        (1, 4, {0: [0, 1, 2, 3]}),
        (2, 6, {0: [0, 1, 2], 1: [3, 4, 5]}),
        (2, 3, {0: [0], 1: [1, 2]}),
        (3, 3, {0: [0], 1: [1], 2: [2]}),
        (4, 2, {0: [0], 1: [0], 2: [1], 3: [1]}),
        (5, 2, {0: [0], 1: [0], 2: [0], 3: [1], 4: [1]}),
        (6, 1, {sender: [0] for sender in range(6)}),
    ],
)
def test_rescale_has_a_subset_of_the_channels(
    env: StreamExecutionEnvironment,
    senders: int,
    receivers: int,
    channels: dict[int, list[int]],
) -> None:
    counts = exchanged(env, senders, receivers, DataStream.rescale)

    each = RECORDS // senders
    assert counts == {
        (sender, receiver): each // len(mine)
        for sender, mine in channels.items()
        for receiver in mine
    }


def test_rescale_spares_channels(env: StreamExecutionEnvironment) -> None:
    """What rebalance spreads over all six channels, rescale keeps within three of them."""
    spread = exchanged(env, 2, 3, DataStream.rebalance)
    near = exchanged(env, 2, 3, DataStream.rescale)

    assert spread == {(s, r): 20 for s in range(2) for r in range(3)}
    assert near == {(0, 0): 60, (1, 1): 30, (1, 2): 30}


class Few(Partitioner):
    """Odd keys to the first of the last two subtasks, even keys to the other."""

    def partition(self, key: int, num_partitions: int) -> int:
        return num_partitions - 1 - key % 2


@locally
@pytest.mark.parametrize("receivers", [2, 5])
def test_partition_custom_uses_the_subtasks_it_chooses(
    env: StreamExecutionEnvironment, receivers: int
) -> None:
    counts = exchanged(env, 3, receivers, lambda s: s.partition_custom(Few(), lambda r: r[1]))

    last = receivers - 1
    assert counts == {(s, r): 20 for s in range(3) for r in (last - 1, last)}


@locally
def test_the_subtasks_that_a_partitioner_leaves_out_hold_nothing_up(
    env: StreamExecutionEnvironment,
) -> None:
    """Watermarks come from all subtasks: an empty one must not stop event time."""
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, timestamp: value
    )
    stream = (
        env.from_sequence(1, 100)
        .assign_timestamps_and_watermarks(timed)
        .partition_custom(lambda key, n: 0, lambda n: n)
        .map(lambda n: n)
        .set_parallelism(4)
        .window_all(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .reduce(lambda a, b: a + b)
    )

    assert sorted(stream.execute_and_collect()) == [100, sum(range(1, 50)), sum(range(50, 100))]


def test_forward(env: StreamExecutionEnvironment) -> None:
    sent = env.from_sequence(1, 20).map(From()).start_new_chain()
    arrived = sent.forward().map(From()).start_new_chain()

    found = list(arrived.execute_and_collect())
    assert sorted(number for _, (_, number) in found) == list(range(1, 21))
    assert {(sender, receiver) for receiver, (sender, _) in found} == {(0, 0), (1, 1)}

    sent.forward().map(From()).set_parallelism(3).print()
    with pytest.raises(InvalidProgramError, match="needs equal parallelism on both sides, got 2"):
        env.execute()


@pytest.mark.parametrize(
    ("answer", "got"), [(-1, "int -1"), (0.5, "float 0.5"), ("0", "str '0'"), (2, "int 2")]
)
def test_partitioner_out_of_range(env: StreamExecutionEnvironment, answer: Any, got: str) -> None:
    stream = env.from_elements(1).partition_custom(lambda key, n: answer, lambda n: n).map(str)

    with pytest.raises(InvalidArgumentError, match=f"from 0 to 1, got {got}") as caught:
        list(stream.execute_and_collect())
    assert "test_partitioning.py:" in str(caught.value)
