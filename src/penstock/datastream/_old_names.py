"""What programs for Flink 1.x call on environments, checkpoint settings and streams.

Each method does what its successor does; `penstock.pyflink_names` says which one that is. Must not
know streams: those inherit from here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from penstock import options
from penstock.common.configuration import Configuration
from penstock.common.restart_strategy import (
    RestartStrategyConfiguration,
    restart_strategy_from,
    set_restart_strategy,
)
from penstock.common.time import Span
from penstock.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.connectors.base import Source
from penstock.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from penstock.datastream.state_backend import StateBackend, state_backend_from
from penstock.datastream.time_characteristic import TimeCharacteristic
from penstock.datastream.window import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from penstock.deprecation import old
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream._data_stream import DataStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_stream import AllWindowedStream, WindowedStream

_of_environment = old("StreamExecutionEnvironment")
_of_checkpoints = old("CheckpointConfig")


class OldEnvironmentMethods:
    """Base of `StreamExecutionEnvironment`."""

    _configuration: Configuration

    @abstractmethod
    def from_source(
        self,
        source: Source,
        watermark_strategy: Any = None,
        source_name: str = "Source",
        type_info: Any = None,
    ) -> DataStream: ...

    def add_source(
        self, source_func: Any, source_name: str = "Custom Source", type_info: Any = None
    ) -> DataStream:
        """`from_source` without watermarks; a SourceFunction, which wraps Java, is refused."""
        if not isinstance(source_func, Source):
            raise UnsupportedFeatureError.of(
                "StreamExecutionEnvironment.add_source with anything but a Source",
                "a SourceFunction wraps a Java class; write a Source in Python and pass it to "
                "from_source",
            )
        return self.from_source(source_func, None, source_name, type_info)

    @_of_environment
    def set_state_backend(self, state_backend: StateBackend) -> Self:
        if not isinstance(state_backend, StateBackend):
            raise InvalidArgumentError.of("state_backend", "a StateBackend", state_backend)
        state_backend.configure(self._configuration)
        return self

    @_of_environment
    def get_state_backend(self) -> StateBackend:
        return state_backend_from(self._configuration)

    @_of_environment
    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> Self:
        set_restart_strategy(self._configuration, restart_strategy_configuration)
        return self

    @_of_environment
    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        return restart_strategy_from(self._configuration)

    @_of_environment
    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Accepted and without effect: Kryo is a serializer of Java's."""

    @_of_environment
    def register_type_with_kryo_serializer(
        self, type_class_name: str, serializer_class_name: str
    ) -> None:
        """Accepted and without effect: Kryo is a serializer of Java's."""

    @_of_environment
    def register_type(self, type_class_name: str) -> None:
        """Accepted and without effect: there are no Java classes among the records."""


class OldCheckpointMethods:
    """Base of `CheckpointConfig`."""

    _configuration: Configuration

    ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention

    @abstractmethod
    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> Self: ...

    @abstractmethod
    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention: ...

    @_of_checkpoints
    def enable_externalized_checkpoints(
        self, cleanup_mode: ExternalizedCheckpointRetention
    ) -> Self:
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    @_of_checkpoints
    def set_externalized_checkpoint_cleanup(
        self, cleanup_mode: ExternalizedCheckpointRetention
    ) -> Self:
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    @_of_checkpoints
    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        return self.get_externalized_checkpoint_retention()

    @_of_checkpoints
    def set_checkpoint_storage(self, storage: CheckpointStorage) -> Self:
        if not isinstance(storage, FileSystemCheckpointStorage | JobManagerCheckpointStorage):
            raise InvalidArgumentError.of(
                "storage", "a FileSystemCheckpointStorage or JobManagerCheckpointStorage", storage
            )
        self._configuration.set(options.CHECKPOINT_DIR, storage.get_checkpoint_path())
        return self

    @_of_checkpoints
    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> Self:
        storage = FileSystemCheckpointStorage(checkpoint_path)
        self._configuration.set(options.CHECKPOINT_DIR, storage.get_checkpoint_path())
        return self

    @_of_checkpoints
    def get_checkpoint_storage(self) -> CheckpointStorage:
        directory = self._configuration.get(options.CHECKPOINT_DIR)
        if directory is None:
            return JobManagerCheckpointStorage()
        return FileSystemCheckpointStorage(directory)

    @_of_checkpoints
    def set_prefer_checkpoint_for_recovery(self, prefer_checkpoint_for_recovery: bool) -> Self:
        """Accepted and without effect: a job always goes on from its newest checkpoint."""
        return self

    @_of_checkpoints
    def is_prefer_checkpoint_for_recovery(self) -> bool:
        return True


class OldStreamMethods:
    """Base of `DataStream`."""

    @abstractmethod
    def get_execution_environment(self) -> StreamExecutionEnvironment: ...

    @abstractmethod
    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream: ...

    @old("DataStream")
    def time_window_all(self, size: Span, slide: Span | None = None) -> AllWindowedStream:
        """Tumbling windows, or sliding ones, of the environment's time characteristic."""
        return self.window_all(_time_windows(self.get_execution_environment(), size, slide))


class OldKeyedStreamMethods:
    """Base of `KeyedStream`."""

    @abstractmethod
    def get_execution_environment(self) -> StreamExecutionEnvironment: ...

    @abstractmethod
    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream: ...

    @old("KeyedStream")
    def time_window(self, size: Span, slide: Span | None = None) -> WindowedStream:
        """Tumbling windows, or sliding ones, of the environment's time characteristic."""
        return self.window(_time_windows(self.get_execution_environment(), size, slide))


def _time_windows(
    env: StreamExecutionEnvironment, size: Span, slide: Span | None
) -> WindowAssigner[Any, Any]:
    by_clock = env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
    if slide is None:
        tumbling = TumblingProcessingTimeWindows if by_clock else TumblingEventTimeWindows
        return tumbling.of(size)
    sliding = SlidingProcessingTimeWindows if by_clock else SlidingEventTimeWindows
    return sliding.of(size, slide)
