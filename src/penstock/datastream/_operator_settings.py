"""Settings of the operator behind a stream or sink: name, uid, parallelism, chaining."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from penstock.datastream._stream_arguments import non_empty
from penstock.datastream.side_input import SideInput
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.errors import InvalidArgumentError
from penstock.graph.stream_graph import Chaining, Node

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class OperatorSettings:
    """Shared by `DataStream` and `DataStreamSink`."""

    _env: StreamExecutionEnvironment

    @abstractmethod
    def _operator(self, method: str) -> Node:
        """The node that settings belong to; `method` is what the user called."""

    def _set(self, method: str, **settings: Any) -> Self:
        self._env._graph.change(self._operator(method).id, **settings)
        return self

    def name(self, name: str) -> Self:
        """The name in plans, logs, metrics and errors."""
        return self._set("name", name=non_empty("an operator's name", name))

    def uid(self, uid: str) -> Self:
        """The name under which checkpoints keep the operator's state; unique in the job."""
        return self._set("uid", uid=non_empty("a uid", uid))

    def set_uid_hash(self, uid_hash: str) -> Self:
        """The same as `uid`: here uids are not hashed."""
        return self._set("set_uid_hash", uid=non_empty("a uid hash", uid_hash))

    def set_description(self, description: str) -> Self:
        """A longer text than the name, shown by explain."""
        if not isinstance(description, str):
            raise InvalidArgumentError.of("a description", "a string", description)
        return self._set("set_description", description=description)

    def set_parallelism(self, parallelism: int) -> Self:
        """The number of subtasks."""
        return self._set("set_parallelism", parallelism=parallelism)

    def disable_chaining(self) -> Self:
        """Never run in one task with another operator."""
        return self._set("disable_chaining", chaining=Chaining.NEVER)

    def with_side_inputs(self, *side_inputs: SideInput) -> Self:
        """Tables that the function gets by `runtime_context.get_side_input`."""
        for side_input in side_inputs:
            self._env._check_side_input("with_side_inputs", side_input)
        node = self._operator("with_side_inputs")
        both = {side.name: side for side in (*node.side_inputs, *side_inputs)}
        return self._set("with_side_inputs", side_inputs=tuple(both.values()))

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Accepted and without effect: Spark places tasks, by whole stages."""
        if not isinstance(slot_sharing_group, str | SlotSharingGroup):
            raise InvalidArgumentError.of(
                "a slot sharing group", "a name or a SlotSharingGroup", slot_sharing_group
            )
        return self._set("slot_sharing_group")
