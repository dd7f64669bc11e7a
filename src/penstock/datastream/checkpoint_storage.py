"""Where checkpoints go. These are choices; the checkpoint protocol lives in `penstock.storage`."""

from __future__ import annotations

from penstock.errors import InvalidArgumentError
from penstock.refusals import refusing

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage:
    """A choice of place for checkpoints."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *sorted((k, repr(v)) for k, v in self.__dict__.items())))


class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints that end with the driver, in a directory removed with it."""

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(
        self, checkpoint_path: str | None = None, max_state_size: int | None = None
    ) -> None:
        self._checkpoint_path = checkpoint_path
        self._max_state_size = (
            self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        )

    def get_checkpoint_path(self) -> str | None:
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        return None

    def __str__(self) -> str:
        return f"JobManagerCheckpointStorage(checkpoints to {self._checkpoint_path!r})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory that every executor reaches."""

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not isinstance(checkpoint_path, str) or not checkpoint_path:
            raise InvalidArgumentError.of(
                "the checkpoint path", "a non-empty string", checkpoint_path
            )
        threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        if not 0 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise InvalidArgumentError.of(
                "file_state_size_threshold",
                f"between 0 and {self.MAX_FILE_STATE_THRESHOLD}",
                threshold,
            )
        self._checkpoint_path = checkpoint_path
        self._threshold = threshold
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        return None

    def get_min_file_size_threshold(self) -> int:
        return self._threshold

    def get_write_buffer_size(self) -> int:
        return self._write_buffer_size if self._write_buffer_size >= 0 else 4096

    def __str__(self) -> str:
        return f"FileSystemCheckpointStorage({self._checkpoint_path!r})"


@refusing({"__init__": "it wraps a Java class; use FileSystemCheckpointStorage"})
class CustomCheckpointStorage(CheckpointStorage):
    """In PyFlink a wrapped Java storage."""
