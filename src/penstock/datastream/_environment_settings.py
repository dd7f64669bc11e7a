"""Settings of an environment that PyFlink programs make and that change little or nothing here.

They live in the environment's configuration, under Flink's keys. Not among `penstock.options`:
those act, or will.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from penstock.common.config_options import ConfigOption, OptionType
from penstock.common.configuration import Configuration
from penstock.datastream._dependency_settings import DependencySettings
from penstock.datastream._old_names import OldEnvironmentMethods
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.datastream.spark_interface import local_slots, set_local_slots
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.errors import InvalidArgumentError
from penstock.options import AUTO_WATERMARK_INTERVAL

if TYPE_CHECKING:
    from typing_extensions import Self

_BUFFER_TIMEOUT = ConfigOption("execution.buffer-timeout.interval", OptionType.DURATION, 100)
_BUFFER_TIMEOUT_ENABLED = ConfigOption("execution.buffer-timeout.enabled", OptionType.BOOLEAN, True)
_CHANGELOG: ConfigOption[bool | None] = ConfigOption(
    "state.changelog.enabled", OptionType.BOOLEAN, None
)

_WATERMARK_INTERVAL = 200

REFUSED = {
    "create_input": "an InputFormat is a Java object; read files with Spark and from_spark, "
    "or write a Source in Python (rows G3 and G7 of docs/features.md)",
}
"""By the method's name, what to do instead."""


class EnvironmentSettings(OldEnvironmentMethods, DependencySettings):
    """Base of `StreamExecutionEnvironment`."""

    _configuration: Configuration
    _time_characteristic = TimeCharacteristic.EventTime

    @abstractmethod
    def get_checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint settings."""

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accepted and without effect: buffers leave when full, and at the end of an epoch."""
        if not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise InvalidArgumentError.of(
                "a buffer timeout", "milliseconds from 0 on, or -1", timeout_millis
            )
        self._configuration.set(_BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(_BUFFER_TIMEOUT, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """Milliseconds, -1 if there is none."""
        enabled = self._configuration.get(_BUFFER_TIMEOUT_ENABLED)
        return self._configuration.get(_BUFFER_TIMEOUT) if enabled else -1

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> Self:
        """Flink 1.x's way: for sources made from now on, and for the interval of watermarks."""
        if not isinstance(characteristic, TimeCharacteristic):
            raise InvalidArgumentError.of("characteristic", "a TimeCharacteristic", characteristic)
        self._time_characteristic = characteristic
        none = characteristic is TimeCharacteristic.ProcessingTime
        self._configuration.set(AUTO_WATERMARK_INTERVAL, 0 if none else _WATERMARK_INTERVAL)
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        return self._time_characteristic

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Accepted and without effect: Spark places tasks, by whole stages."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise InvalidArgumentError.of(
                "a slot sharing group", "a SlotSharingGroup", slot_sharing_group
            )
        return self

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Never: a task has one set of key groups."""
        return False

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Accepted and without effect: an epoch always writes its changes, not its state."""
        self._configuration.set(_CHANGELOG, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What was set, None if nothing was."""
        return self._configuration.get(_CHANGELOG)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def get_default_local_parallelism(self) -> int:
        """The parallelism of jobs on this machine for which none is set."""
        return local_slots()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """The same for all environments of this process, as in Flink."""
        if not isinstance(parallelism, int) or isinstance(parallelism, bool) or parallelism < 1:
            raise InvalidArgumentError.of("parallelism", "a positive int", parallelism)
        set_local_slots(parallelism)
