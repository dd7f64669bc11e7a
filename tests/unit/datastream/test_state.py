from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from penstock.common.time import Duration, Time
from penstock.common.typeinfo import Types
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import InvalidArgumentError


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


DESCRIPTORS = [
    ValueStateDescriptor("s", Types.LONG()),
    ListStateDescriptor("s", Types.STRING()),
    MapStateDescriptor("s", Types.STRING(), Types.LONG()),
    ReducingStateDescriptor("s", max, Types.LONG()),
    AggregatingStateDescriptor("s", Count(), Types.LONG()),
]


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_a_descriptor_equals_itself_after_pickling(descriptor: StateDescriptor) -> None:
    copy = pickle.loads(pickle.dumps(descriptor))
    assert copy == descriptor
    assert hash(copy) == hash(descriptor)
    assert copy.get_name() == "s"


def test_descriptors_differ_by_kind_name_type_and_time_to_live() -> None:
    expiring = ValueStateDescriptor("s", Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    others = [ValueStateDescriptor("t", Types.LONG()), ValueStateDescriptor("s"), expiring]
    assert all(DESCRIPTORS[0] != other for other in [*DESCRIPTORS[1:], *others])


def test_types_may_be_left_out_or_be_python_types() -> None:
    assert ValueStateDescriptor("s").type_info == Types.PICKLED_BYTE_ARRAY()
    assert ValueStateDescriptor("s", int).type_info == Types.LONG()
    of_map = MapStateDescriptor("s", str)
    assert of_map.key_type_info == Types.STRING()
    assert of_map.value_type_info == Types.PICKLED_BYTE_ARRAY()
    assert ListStateDescriptor("s", str).elem_type_info == Types.STRING()


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_state_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="name of a state must be a non-empty string"):
        ValueStateDescriptor(name)


def test_functions_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="'r' must be a ReduceFunction"):
        ReducingStateDescriptor("r", 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="'a' must be an AggregateFunction"):
        AggregatingStateDescriptor("a", max)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a type"):
        ValueStateDescriptor("v", "LONG")  # type: ignore[arg-type]


def test_a_plain_callable_becomes_a_reduce_function() -> None:
    descriptor = ReducingStateDescriptor("r", lambda a, b: a + b)
    assert descriptor.get_reduce_function().reduce(2, 3) == 5


@pytest.mark.parametrize(
    "ttl", [Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2), 2000]
)
def test_time_to_live_takes_every_kind_of_span(ttl: Any) -> None:
    config = StateTtlConfig.new_builder(ttl).build()
    assert config.ttl_millis == 2000
    assert config.get_ttl() == Time.seconds(2)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_cleanup_strategies().is_cleanup_in_background()
    assert pickle.loads(pickle.dumps(config)) == config


def test_time_to_live_settings() -> None:
    config = (
        StateTtlConfig.new_builder(Time.days(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(500, timedelta(hours=1))
        .disable_cleanup_in_background()
        .build()
    )
    cleanup = config.get_cleanup_strategies()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert cleanup.in_full_snapshot()
    assert not cleanup.is_cleanup_in_background()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert incremental.get_cleanup_size() == 10
    compaction = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert compaction is not None
    assert compaction.get_query_time_after_num_entries() == 500
    assert compaction.get_periodic_compaction_time() == Duration.of_hours(1)


def test_a_disabled_time_to_live_is_none() -> None:
    descriptor = ValueStateDescriptor("s")
    disabled = StateTtlConfig.UpdateType.Disabled
    descriptor.enable_time_to_live(
        StateTtlConfig.new_builder(1000).set_update_type(disabled).build()
    )
    assert descriptor.ttl_config is None


def test_a_time_to_live_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="greater than 0"):
        StateTtlConfig.new_builder(0).build()
    with pytest.raises(InvalidArgumentError, match="StateTtlConfig"):
        ValueStateDescriptor("s").enable_time_to_live(1000)  # type: ignore[arg-type]
