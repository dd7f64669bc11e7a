"""How a file sink names its files, when it begins another one, and what is still to come."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.refusals import later, refusing

LATER = later("G3")


class RollingPolicy:
    """When a part file ends. At the end of an epoch every one does: that is its checkpoint."""

    def __init__(self, j_rolling_policy: Any) -> None:
        raise UnsupportedFeatureError.no_java("RollingPolicy(j_rolling_policy)")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Also when it has so many bytes. The intervals, in milliseconds, are upper bounds in
        Flink; an epoch is shorter, or as long as the checkpoint interval says."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """With the epoch only."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Ends a part by its size."""

    part_size: int
    rollover_interval: int
    inactivity_interval: int

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval", "inactivity_interval"):
            positive(name, getattr(self, name))


class OnCheckpointRollingPolicy(RollingPolicy):
    """Ends a part with the epoch."""

    def __init__(self) -> None:
        pass


class OutputFileConfig:
    """What the names of part files begin and end with."""

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        self._prefix = _part_of_a_name("part_prefix", part_prefix)
        self._suffix = _part_of_a_name("part_suffix", part_suffix)
        if part_prefix.startswith((".", "_")):
            raise InvalidArgumentError.of(
                "part_prefix", "without '.' or '_' at its beginning, which hides files", part_prefix
            )

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        return self._prefix

    def get_part_suffix(self) -> str:
        return self._suffix

    class OutputFileConfigBuilder:
        """Names are ``part-…`` without a suffix, unless set otherwise."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self._prefix, self._suffix)


_NO_COMPACTION = f"{LATER}; longer epochs make larger files: env.enable_checkpointing(interval)"


@refusing(dict.fromkeys(("__init__", "builder"), _NO_COMPACTION))
class FileCompactStrategy:
    """When small part files are made one."""

    @refusing({"__init__": _NO_COMPACTION})
    class Builder:
        """What `builder` would give."""


@refusing(
    dict.fromkeys(("__init__", "concat_file_compactor", "identical_file_compactor"), _NO_COMPACTION)
)
class FileCompactor:
    """How small part files are made one."""


def positive(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError.of(what, "a positive int", value)
    return value


def _part_of_a_name(what: str, text: Any) -> str:
    if not isinstance(text, str) or os.sep in text or "\0" in text:
        raise InvalidArgumentError.of(what, f"a string without {os.sep!r}", text)
    return text
