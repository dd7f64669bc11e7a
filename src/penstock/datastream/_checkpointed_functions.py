"""What a function mixes in to have state of its subtask, and to hear of checkpoints.

An epoch is a checkpoint, and its number is the checkpoint's id. An epoch that is repeated after a
failure has the number it had before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.datastream._basic_functions import KeyedStateStore
    from penstock.datastream.state import OperatorStateStore


class FunctionSnapshotContext(ABC):
    """The checkpoint that is being made."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """The number of the epoch that ends here."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the epoch began, in milliseconds."""


class FunctionInitializationContext(ABC):
    """What a new instance of a function goes on from."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether there is a checkpoint to go on from, be its state empty."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint's id, None if there is none."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Where state of the subtask is declared, and found again."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Where state of keys is declared. It has no current key here."""


class CheckpointedFunction(ABC):
    """Mixed into a function that keeps operator state: state of a subtask rather than of a key.

    ::

        class Buffer(SinkFunction, CheckpointedFunction):
            def initialize_state(self, context):
                store = context.get_operator_state_store()
                self._kept = store.get_list_state(ListStateDescriptor("buffered"))
                self._buffered = list(self._kept.get())

            def snapshot_state(self, context):
                self._kept.update(self._buffered)
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """The epoch's records are through: put into state what is to be kept."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Declare state and take what was kept. Called once for each instance, before `open`."""


class ListCheckpointed(ABC):
    """Mixed into a function that gives its state away as a list, and gets a list back.

    When the parallelism changes the elements of all subtasks are dealt out anew.
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """The elements to keep; called at the end of every epoch."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Take elements that were kept, perhaps none. Called before `open`, and only if there is
        a checkpoint to go on from."""


class CheckpointListener(ABC):
    """Mixed into a function that wants to know what became of a checkpoint."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """This checkpoint, and every earlier one, will not be undone.

        Told at the beginning of the next epoch and after the last one, perhaps more than once,
        and perhaps to another instance than made its state: a new one, which restored it.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027 - a hook
        """What this instance did since its last checkpoint is void, and it will be closed; the
        epoch is repeated under the same number. Told if the instance can still be reached."""
