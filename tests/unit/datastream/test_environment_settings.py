"""The environment's smaller methods: what PyFlink programs may set, ask and not call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import SlotSharingGroup, StreamExecutionEnvironment
from penstock.datastream.spark_interface import set_local_slots
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

# The public methods of PyFlink 2.3's environment.
PYFLINK = """
add_classpaths add_jars add_python_archive add_python_file add_source close configure create_input
disable_operator_chaining enable_changelog_state_backend enable_checkpointing execute execute_async
from_collection from_source get_buffer_timeout get_checkpoint_config get_checkpoint_interval
get_checkpointing_consistency_mode get_checkpointing_mode get_config get_default_local_parallelism
get_default_savepoint_directory get_execution_environment get_execution_plan get_max_parallelism
get_parallelism is_chaining_enabled is_chaining_of_operators_with_different_max_parallelism_enabled
is_changelog_state_backend_enabled is_force_unaligned_checkpoints is_unaligned_checkpoints_enabled
register_cached_file register_slot_sharing_group set_buffer_timeout set_default_local_parallelism
set_default_savepoint_directory set_max_parallelism set_parallelism set_python_executable
set_python_requirements set_runtime_mode
"""


def make_env(**settings: str) -> StreamExecutionEnvironment:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    configuration = Configuration.from_dict({"penstock.executor": "local", **keys})
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamExecutionEnvironment]:
    monkeypatch.delenv("PENSTOCK_EXECUTOR", raising=False)
    yield make_env()
    set_local_slots(None)


def test_every_method_of_pyflink_is_there() -> None:
    missing = [name for name in PYFLINK.split() if not hasattr(StreamExecutionEnvironment, name)]
    assert missing == []


def test_buffer_timeout(env: StreamExecutionEnvironment) -> None:
    assert env.get_buffer_timeout() == 100
    assert env.set_buffer_timeout(0).get_buffer_timeout() == 0
    assert env.set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert env.set_buffer_timeout(30).get_buffer_timeout() == 30
    assert make_env(execution__buffer_timeout__interval="2 s").get_buffer_timeout() == 2000
    with pytest.raises(InvalidArgumentError, match="from 0 on, or -1, got int -2"):
        env.set_buffer_timeout(-2)


def test_max_parallelism_is_derived_unless_set(env: StreamExecutionEnvironment) -> None:
    assert env.get_max_parallelism() == env.get_config().get_max_parallelism() == -1
    env.set_max_parallelism(64)
    assert env.get_max_parallelism() == env.get_config().get_max_parallelism() == 64


def test_default_local_parallelism(env: StreamExecutionEnvironment) -> None:
    assert env.get_default_local_parallelism() == env.get_parallelism() == os.cpu_count()
    env.set_default_local_parallelism(7)
    assert env.get_default_local_parallelism() == make_env().get_parallelism() == 7
    assert make_env(parallelism__default="3").get_parallelism() == 3
    with pytest.raises(InvalidArgumentError, match="a positive int, got int 0"):
        env.set_default_local_parallelism(0)


def test_checkpoint_settings(env: StreamExecutionEnvironment) -> None:
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False
    assert not env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    env.get_checkpoint_config().enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    assert env.is_unaligned_checkpoints_enabled()
    assert env.is_force_unaligned_checkpoints()


def test_chains_and_groups(env: StreamExecutionEnvironment) -> None:
    assert not env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    group = SlotSharingGroup.builder("g").build()
    assert env.register_slot_sharing_group(group) is env
    with pytest.raises(InvalidArgumentError, match="a SlotSharingGroup, got str 'g'"):
        env.register_slot_sharing_group("g")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda e: e.add_source(None), r"add_source with anything .*; .* pass it to from_source"),
        (lambda e: e.create_input(None), r"create_input is not supported; .* G3 and G7"),
        (
            lambda e: e.register_cached_file("f", "name"),
            "register_cached_file .* add_python_archive",
        ),
    ],
)
def test_refusals(
    env: StreamExecutionEnvironment, call: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"StreamExecutionEnvironment.*{sentence}"):
        call(env)
