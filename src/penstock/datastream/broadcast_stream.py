"""BroadcastStream: what every subtask of the next operator gets whole, to keep as state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.datastream import keyed_stream
from penstock.datastream._stream_arguments import instance_of
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.operators.broadcast import BroadcastProcess

if TYPE_CHECKING:
    from penstock.datastream._data_stream import DataStream, TypeLike

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream:
    """Made by `broadcast(descriptor, ...)`; to be given to `connect`."""

    def __init__(
        self, input_stream: DataStream, broadcast_state_descriptors: list[MapStateDescriptor]
    ) -> None:
        names = set()
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise InvalidArgumentError.of(
                    "a broadcast state's descriptor", "a MapStateDescriptor", descriptor
                )
            if descriptor.ttl_config is not None:
                raise UnsupportedFeatureError.of(
                    f"a time to live of broadcast state {descriptor.get_name()!r}",
                    "remove its entries when a broadcast record says so",
                )
            if descriptor.get_name() in names:
                raise InvalidArgumentError(
                    f"broadcast was given two states of the name {descriptor.get_name()!r}; give "
                    "each its own"
                )
            names.add(descriptor.get_name())
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream:
    """A stream, keyed or not, beside a broadcast one."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        non_broadcast_stream._check_beside("connect", broadcast_stream.input_stream)
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any]
        | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeLike = None,
    ) -> DataStream:
        """Handle the records of both: the broadcast ones may change the broadcast state, the
        others may read it."""
        data = self.non_broadcast_stream
        kind: tuple[type, ...]
        if isinstance(data, keyed_stream.KeyedStream):
            name, kind = "Keyed Broadcast Process", (KeyedBroadcastProcessFunction,)
            method = "process of a keyed and a broadcast stream"
        else:
            name, kind = "Broadcast Process", (BroadcastProcessFunction,)
            method = "process of an unkeyed and a broadcast stream"
        function = instance_of(method, kind, func)
        operator = BroadcastProcess(function, tuple(self.broadcast_state_descriptors))
        return data._with(self.broadcast_stream.input_stream, name, operator, output_type)
