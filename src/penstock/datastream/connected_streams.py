"""ConnectedStreams: two streams, perhaps of unlike records, that one function handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.datastream import keyed_stream
from penstock.datastream._stream_arguments import instance_of
from penstock.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.errors import InvalidArgumentError
from penstock.runtime.operators.two_inputs import CoFlatMap, CoMap, CoProcess

if TYPE_CHECKING:
    from penstock.datastream._data_stream import DataStream, Selector, TypeLike
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["ConnectedStreams"]


class ConnectedStreams:
    """Two streams whose next operator sees both. If both are keyed, they share state by key."""

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        stream1._check_beside("connect", stream2, "a DataStream or a BroadcastStream")
        self.stream1 = stream1
        self.stream2 = stream2
        keyed = keyed_stream.KeyedStream
        self._keyed = isinstance(stream1, keyed) and isinstance(stream2, keyed)
        if isinstance(stream1, keyed) and isinstance(stream2, keyed):
            stream1._check_key_type("connect", stream2)

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self.stream1.get_execution_environment()

    def key_by(
        self, key_selector1: Selector, key_selector2: Selector, key_type: TypeLike = None
    ) -> ConnectedStreams:
        """Records of equal keys to one subtask, whichever of the streams they are in."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(self, func: CoMapFunction, output_type: TypeLike = None) -> DataStream:
        """One record out for each one in, or none where the function gives None."""
        function = instance_of("connect(...).map", (CoMapFunction,), func)
        return self._then("Co-Map", CoMap(function), output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeLike = None) -> DataStream:
        """Any number of records out for each one in."""
        function = instance_of("connect(...).flat_map", (CoFlatMapFunction,), func)
        return self._then("Co-Flat Map", CoFlatMap(function), output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeLike = None
    ) -> DataStream:
        """Handle the records of both, with a context; with state and timers if both are keyed."""
        kinds = (CoProcessFunction, KeyedCoProcessFunction)
        function = instance_of("connect(...).process", kinds, func)
        if isinstance(function, KeyedCoProcessFunction) and not self._keyed:
            raise InvalidArgumentError(
                f"{type(function).__name__} is a KeyedCoProcessFunction and needs two keyed "
                "streams; call key_by on both, or connect(...).key_by(selector1, selector2)"
            )
        name = "Keyed Co-Process" if self._keyed else "Co-Process"
        return self._then(name, CoProcess(function), output_type)

    def _then(self, name: str, operator: Any, output_type: TypeLike) -> DataStream:
        first, second = self.stream1, self.stream2
        if not self._keyed:
            # One keyed stream beside another that is not: it stays where its keys brought it,
            # and there is no keyed state.
            first, second = first._unkeyed(), second._unkeyed()
        return first._with(second, name, operator, output_type)
