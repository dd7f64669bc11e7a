"""Which local store keeps a job's state. These are choices, not the stores themselves.

`HashMapStateBackend` is the store in memory-mapped files (LMDB), `EmbeddedRocksDBStateBackend` the
one for state beyond memory. Either is named in the configuration by `state.backend.type`.
"""

from __future__ import annotations

from enum import Enum

from penstock import options
from penstock.common.configuration import Configuration
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.refusals import refusing

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "RocksDBStateBackend",
    "StateBackend",
    "state_backend_from",
]


class StateBackend:
    """A choice of store; `config_name` is its value for `state.backend.type`."""

    config_name: str = ""

    def configure(self, configuration: Configuration) -> None:
        """Write the choice into a configuration."""
        configuration.set(options.STATE_BACKEND, self.config_name)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.config_name))


class HashMapStateBackend(StateBackend):
    """State that fits into memory."""

    config_name = "hashmap"


class PredefinedOptions(Enum):
    """Groups of RocksDB settings for kinds of machines."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


@refusing({"set_options": "an options factory is a Java class; use set_predefined_options"})
class EmbeddedRocksDBStateBackend(StateBackend):
    """State on disk, larger than memory."""

    config_name = "rocksdb"

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing is False:
            raise UnsupportedFeatureError.of(
                "EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=False)",
                "every epoch writes its changes only; leave the argument out",
            )
        self._paths: list[str] = []
        self._options = PredefinedOptions.DEFAULT
        self._transfer_threads = 4

    def configure(self, configuration: Configuration) -> None:
        super().configure(configuration)
        if len(self._paths) > 1:
            raise UnsupportedFeatureError.of(
                "more than one RocksDB storage path",
                "give one; Spark spreads tasks over hosts, and spark.local.dir over disks",
            )
        if self._paths:
            configuration.set(options.STATE_LOCAL_DIR, self._paths[0])

    def set_db_storage_paths(self, *paths: str) -> None:
        """Directories for the local files; none means the working directory of the job."""
        for path in paths:
            if not isinstance(path, str) or not path:
                raise InvalidArgumentError.of("a storage path", "a non-empty string", path)
        self._paths = list(paths)

    def get_db_storage_paths(self) -> list[str] | None:
        """The directories, None if none were set."""
        return list(self._paths) or None

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Always: a checkpoint writes what changed since the one before."""
        return True

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Choose a group of settings."""
        if not isinstance(options, PredefinedOptions):
            raise InvalidArgumentError.of("the options", "a PredefinedOptions", options)
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._options

    def get_options(self) -> str | None:
        return None

    def get_number_of_transfer_threads(self) -> int:
        return self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """How many files of a checkpoint are read or written at once."""
        if number_of_transfering_threads < 1:
            raise InvalidArgumentError.of(
                "the number of transfer threads", "at least 1", number_of_transfering_threads
            )
        self._transfer_threads = number_of_transfering_threads


@refusing(
    {
        "__init__": "it wraps a Java class; use HashMapStateBackend or EmbeddedRocksDBStateBackend",
    }
)
class CustomStateBackend(StateBackend):
    """In PyFlink a wrapped Java backend."""


# Flink 1.x's, which chose the place of checkpoints, too.


class MemoryStateBackend(HashMapStateBackend):
    """`HashMapStateBackend`; the sizes had a meaning in Flink only."""

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self._checkpoints, self._savepoints = checkpoint_path, savepoint_path

    def configure(self, configuration: Configuration) -> None:
        super().configure(configuration)
        _configure_directories(configuration, self._checkpoints, self._savepoints)


class FsStateBackend(MemoryStateBackend):
    """`HashMapStateBackend`, with checkpoints in a directory."""

    def __init__(
        self,
        checkpoint_directory_uri: str,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        super().__init__(_directory(checkpoint_directory_uri), default_savepoint_directory_uri)

    def get_checkpoint_path(self) -> str | None:
        return self._checkpoints


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """`EmbeddedRocksDBStateBackend`, with checkpoints in a directory."""

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if isinstance(checkpoint_stream_backend, FsStateBackend):
            checkpoint_data_uri = checkpoint_stream_backend.get_checkpoint_path()
        self._checkpoints = _directory(checkpoint_data_uri)

    def configure(self, configuration: Configuration) -> None:
        super().configure(configuration)
        _configure_directories(configuration, self._checkpoints, None)


def state_backend_from(configuration: Configuration) -> StateBackend:
    """The choice that a configuration holds."""
    rocksdb = configuration.get(options.STATE_BACKEND) == EmbeddedRocksDBStateBackend.config_name
    return EmbeddedRocksDBStateBackend() if rocksdb else HashMapStateBackend()


def _configure_directories(
    configuration: Configuration, checkpoints: str | None, savepoints: str | None
) -> None:
    if checkpoints is not None:
        configuration.set(options.CHECKPOINT_DIR, checkpoints)
    if savepoints is not None:
        configuration.set(options.SAVEPOINT_DIR, savepoints)


def _directory(uri: object) -> str:
    if not isinstance(uri, str) or not uri:
        raise InvalidArgumentError.of("the checkpoint directory", "a non-empty string", uri)
    return uri
