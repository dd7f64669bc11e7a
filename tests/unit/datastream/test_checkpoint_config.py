from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.common.configuration import Configuration
from penstock.common.time import Duration
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.errors import InvalidArgumentError


def test_defaults_are_those_of_flink() -> None:
    config = CheckpointConfig()
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == -1
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.get_tolerable_checkpoint_failure_number() == 0
    assert config.is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_millis(0)


@pytest.mark.parametrize("interval", [2000, timedelta(seconds=2), Duration.of_seconds(2)])
def test_an_interval_enables_checkpoints(interval: Any) -> None:
    config = CheckpointConfig().set_checkpoint_interval(interval)
    assert config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == 2000


def test_setters_and_getters_agree() -> None:
    retain = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    config = (
        CheckpointConfig()
        .set_checkpointing_mode(CheckpointingMode.AT_MOST_ONCE)
        .set_checkpoint_timeout(30_000)
        .set_min_pause_between_checkpoints(timedelta(milliseconds=500))
        .set_max_concurrent_checkpoints(2)
        .set_tolerable_checkpoint_failure_number(3)
        .set_externalized_checkpoint_retention(retain)
        .enable_unaligned_checkpoints()
        .set_force_unaligned_checkpoints()
        .set_aligned_checkpoint_timeout(Duration.of_seconds(1))
    )
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_MOST_ONCE
    assert config.get_checkpoint_timeout() == 30_000
    assert config.get_min_pause_between_checkpoints() == 500
    assert config.get_max_concurrent_checkpoints() == 2
    assert config.get_tolerable_checkpoint_failure_number() == 3
    assert config.get_externalized_checkpoint_retention() is retain
    assert config.is_externalized_checkpoints_enabled()
    assert config.is_unaligned_checkpoints_enabled()
    assert config.is_force_unaligned_checkpoints()
    assert config.get_alignment_timeout() == Duration.of_seconds(1)
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()


def test_it_reads_what_the_configuration_says() -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "10 s")
    configuration.set_string("execution.checkpointing.mode", "at-least-once")
    config = CheckpointConfig(configuration)
    assert config.get_checkpoint_interval() == 10_000
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    configuration.set_string("execution.checkpointing.interval", "1 min")
    assert config.get_checkpoint_interval() == 60_000


def test_it_writes_to_the_configuration() -> None:
    configuration = Configuration()
    CheckpointConfig(configuration).set_checkpoint_interval(250)
    assert configuration.get_string("execution.checkpointing.interval", "") == "250 ms"


@pytest.mark.parametrize(
    "misuse",
    [
        lambda c: c.set_checkpoint_interval(5),
        lambda c: c.set_checkpoint_interval("1 s"),
        lambda c: c.set_checkpoint_timeout(-1),
        lambda c: c.set_max_concurrent_checkpoints(0),
        lambda c: c.set_tolerable_checkpoint_failure_number(-1),
        lambda c: c.set_checkpointing_mode("EXACTLY_ONCE"),
    ],
)
def test_bad_values_are_refused(misuse: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"execution\.checkpointing\."):
        misuse(CheckpointConfig())


def test_an_unknown_mode_names_the_known_ones() -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.mode", "twice")
    with pytest.raises(InvalidArgumentError, match="EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE"):
        CheckpointConfig(configuration).get_checkpointing_mode()
