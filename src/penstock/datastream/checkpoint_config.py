"""How often a job checkpoints and what it keeps: PyFlink's getters and setters over options.

Everything lives in a `Configuration`, so code and configuration files say the same thing.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, TypeVar

from penstock.common.config_options import ConfigOption, OptionType
from penstock.common.configuration import Configuration
from penstock.common.time import Duration, Time, to_millis
from penstock.datastream._old_names import OldCheckpointMethods
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.errors import InvalidArgumentError
from penstock.options import (
    CHECKPOINT_INTERVAL,
    CHECKPOINT_MIN_PAUSE,
    CHECKPOINT_MODE,
    CHECKPOINT_RETENTION,
    CHECKPOINT_TIMEOUT,
    TOLERABLE_FAILED_CHECKPOINTS,
)

__all__ = ["CheckpointConfig", "ExternalizedCheckpointCleanup"]

ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
"""Its name in Flink 1.x."""

TimeLike = Time | Duration | timedelta | int
_E = TypeVar("_E", bound=Enum)

_SHORTEST_MILLIS = 10

# Accepted from PyFlink programs and shown again, without effect: an epoch's end leaves no record
# in flight, and epochs follow one another. Hence they are not among penstock.options.
_MAX_CONCURRENT = ConfigOption(
    "execution.checkpointing.max-concurrent-checkpoints", OptionType.INT, 1
)
_UNALIGNED = ConfigOption("execution.checkpointing.unaligned.enabled", OptionType.BOOLEAN, False)
_FORCE_UNALIGNED = ConfigOption(
    "execution.checkpointing.unaligned.forced", OptionType.BOOLEAN, False
)
_ALIGNED_TIMEOUT = ConfigOption(
    "execution.checkpointing.aligned-checkpoint-timeout", OptionType.DURATION, 0
)


class CheckpointConfig(OldCheckpointMethods):
    """Checkpoint settings of an environment; changes show in its configuration at once."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._enum(CHECKPOINT_MODE, CheckpointingMode)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        return self._set_enum(CHECKPOINT_MODE, CheckpointingMode, checkpointing_mode)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds between checkpoints, -1 if there are none."""
        interval = self._configuration.get(CHECKPOINT_INTERVAL)
        return -1 if interval is None else interval

    def set_checkpoint_interval(self, checkpoint_interval: TimeLike) -> CheckpointConfig:
        return self._set_millis(CHECKPOINT_INTERVAL, checkpoint_interval, _SHORTEST_MILLIS)

    def get_checkpoint_timeout(self) -> int:
        """Milliseconds after which a checkpoint that is not complete counts as failed."""
        return self._configuration.get(CHECKPOINT_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: TimeLike) -> CheckpointConfig:
        return self._set_millis(CHECKPOINT_TIMEOUT, checkpoint_timeout, _SHORTEST_MILLIS)

    def get_min_pause_between_checkpoints(self) -> int:
        """Milliseconds from the end of a checkpoint to the start of the next, at least."""
        return self._configuration.get(CHECKPOINT_MIN_PAUSE)

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: TimeLike
    ) -> CheckpointConfig:
        return self._set_millis(CHECKPOINT_MIN_PAUSE, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        return self._configuration.get(_MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Kept for PyFlink programs: epochs follow one another, so there is never more than one."""
        return self._set_integer(_MAX_CONCURRENT, max_concurrent_checkpoints, at_least=1)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Deprecated in PyFlink; whether the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """Deprecated in PyFlink; use `set_tolerable_checkpoint_failure_number`."""
        return self.set_tolerable_checkpoint_failure_number(
            0 if fail_on_checkpointing_errors else (1 << 31) - 1
        )

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail before the job does."""
        return self._configuration.get(TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        return self._set_integer(TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        return self._set_enum(CHECKPOINT_RETENTION, ExternalizedCheckpointRetention, retention_mode)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may outlive the job."""
        none = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        return self.get_externalized_checkpoint_retention() is not none

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return self._enum(CHECKPOINT_RETENTION, ExternalizedCheckpointRetention)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._configuration.get(_UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Kept for PyFlink programs: at an epoch's end no record is left for a barrier to pass."""
        return self._set(_UNALIGNED, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: TimeLike) -> CheckpointConfig:
        return self._set_millis(_ALIGNED_TIMEOUT, alignment_timeout)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        return Duration.of_millis(self._configuration.get(_ALIGNED_TIMEOUT))

    def set_alignment_timeout(self, alignment_timeout: TimeLike) -> CheckpointConfig:
        """Deprecated in PyFlink; use `set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """Deprecated in PyFlink; use `get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        return self._set(_FORCE_UNALIGNED, force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._configuration.get(_FORCE_UNALIGNED)

    def _set(self, option: ConfigOption[Any], value: object) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self

    def _set_millis(
        self, option: ConfigOption[Any], value: TimeLike, at_least: int = 0
    ) -> CheckpointConfig:
        millis = to_millis(value, option.key)
        if millis < at_least:
            raise InvalidArgumentError.of(option.key, f"at least {at_least} ms", value)
        self._configuration.set_string(option.key, f"{millis} ms")
        return self

    def _set_integer(
        self, option: ConfigOption[int], value: int, at_least: int = 0
    ) -> CheckpointConfig:
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise InvalidArgumentError.of(option.key, f"a whole number, at least {at_least}", value)
        return self._set(option, value)

    def _enum(self, option: ConfigOption[str], kind: type[_E]) -> _E:
        text = self._configuration.get_string(option.key, option.default)
        try:
            return kind[text.strip().upper().replace("-", "_")]
        except KeyError:
            names = ", ".join(member.name for member in kind)
            raise InvalidArgumentError.of(option.key, f"one of {names}", text) from None

    def _set_enum(
        self, option: ConfigOption[str], kind: type[Enum], value: Enum
    ) -> CheckpointConfig:
        if not isinstance(value, kind):
            raise InvalidArgumentError.of(option.key, f"a {kind.__name__}", value)
        self._configuration.set_string(option.key, value.name)
        return self
