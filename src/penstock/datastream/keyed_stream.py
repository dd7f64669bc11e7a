"""KeyedStream: a stream on its way to the subtasks that own its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.common.types import Row
from penstock.datastream._data_stream import DataStream, Selector, TypeLike
from penstock.datastream._old_names import OldKeyedStreamMethods
from penstock.datastream._rolling_aggregates import RollingAggregates
from penstock.datastream._stateful_functions import (
    FilterWithState,
    FlatMapWithState,
    MapWithState,
)
from penstock.datastream._stream_arguments import (
    declared_type,
    function_or_callable,
    instance_of,
    plain_callable,
)
from penstock.datastream.functions import (
    KeyedProcessFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
)
from penstock.datastream.interval_join import IntervalJoin
from penstock.datastream.window import WindowAssigner
from penstock.datastream.windowed_stream import WindowedStream, count_windowed
from penstock.errors import InvalidArgumentError
from penstock.graph.partitioning import ByKey
from penstock.graph.stream_graph import Edge, Node
from penstock.refusals import refusing
from penstock.runtime.fields import Field, rolling_function
from penstock.runtime.operators.process import Process
from penstock.runtime.operators.reduce import Reduce
from penstock.runtime.operators.stateless import Map

__all__ = ["KeyedStream"]

_NO_OPERATOR = "key_by is no operator; call it before key_by or after the next operator"
_PARTITIONED = "a keyed stream is already partitioned, by its key; call it before key_by"


@refusing(
    {
        **dict.fromkeys(
            (
                "disable_chaining",
                "force_non_parallel",
                "get_name",
                "get_side_output",
                "name",
                "set_buffer_timeout",
                "set_description",
                "set_max_parallelism",
                "set_parallelism",
                "set_uid_hash",
                "slot_sharing_group",
                "start_new_chain",
                "uid",
                "with_side_inputs",
            ),
            _NO_OPERATOR,
        ),
        "aggregate": "call window(...) first, or reduce(...) for a result per record",
        **dict.fromkeys(
            ("broadcast", "forward", "global_", "rebalance", "rescale", "shuffle"), _PARTITIONED
        ),
    }
)
class KeyedStream(RollingAggregates, DataStream, OldKeyedStreamMethods):
    """A stream whose next operator has state for each key."""

    class AccumulateType(Enum):
        """PyFlink's names of the rolling aggregates."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def __init__(
        self,
        origin: DataStream,
        edges: tuple[Edge, ...],
        select: Callable[[Any], Any],
        ordered: bool = False,
    ) -> None:
        super().__init__(origin._env, edges, origin._type)
        self._origin = origin
        self._select = select
        self._ordered = ordered

    def in_event_time_order(self) -> KeyedStream:
        """The same stream, whose next operator gets the records by their timestamps.

        They wait until the watermark has passed them; timers fire in between. So the operator gives
        the same results in the same order, however the input is cut into epochs.
        """
        return KeyedStream(self._origin, self._edges, self._select, ordered=True)

    def _add(self, name: str, operator: Any, **settings: Any) -> Node:
        return super()._add(name, operator, event_time_order=self._ordered, **settings)

    @property
    def _key_type(self) -> TypeInformation | None:
        partitioning = self._edges[0].partitioning
        return partitioning.key_type if isinstance(partitioning, ByKey) else None

    def _check_key_type(self, method: str, other: KeyedStream) -> None:
        """Refuse keys that are declared to be of unlike types: they would never meet."""
        mine, others = self._key_type, other._key_type
        if mine is not None and others is not None and mine != others:
            raise InvalidArgumentError(
                f"{method} needs keys of one type, got {mine!r} and {others!r}; give both key_by "
                "calls the same key_type, and selectors that return such keys"
            )

    def process(
        self, func: KeyedProcessFunction | ProcessFunction, output_type: TypeLike = None
    ) -> DataStream:
        """Handle records one by one, with the state and timers of their key."""
        function = instance_of("process", (KeyedProcessFunction, ProcessFunction), func)
        return self._then("KEYED PROCESS", Process(function), output_type)

    def key_by(self, key_selector: Selector, key_type: TypeLike = None) -> KeyedStream:
        """The same records under another key."""
        return self._origin.key_by(key_selector, key_type)

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Selector
    ) -> DataStream:
        return self._origin.partition_custom(partitioner, key_selector)

    # Rolling aggregates: a result per record, or in batch mode one per key

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each record with the result so far of its key."""
        return self._reduced("Reduce", function_or_callable("reduce", ReduceFunction, func))

    def _rolling(self, name: str, kind: str, field: Field) -> DataStream:
        return self._reduced(name, rolling_function(kind, field))

    def _reduced(self, name: str, function: Any) -> DataStream:
        return self._then(name, Reduce(function, self._type), self._type)

    # Windows

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Cut the records of each key into windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of `size` records of a key, one after the other, or a new one every `slide`.

        By PyFlink's rule, or Java's if `penstock.count-window.semantics` says so.
        """
        return count_windowed(WindowedStream, self, size, slide)

    # Functions of a value and a state, as in Flink's Scala API

    def map_with_state(
        self,
        func: Callable[[Any, Any], tuple[Any, Any]],
        output_type: TypeLike = None,
        state_type: TypeLike = None,
    ) -> DataStream:
        """`func(value, state)` gives (result, new state); the state is None at first.

        A new state of None removes the key's state.
        """
        function = plain_callable("map_with_state", func)
        return self.map(MapWithState(function, declared_type(state_type)), output_type)

    def flat_map_with_state(
        self,
        func: Callable[[Any, Any], tuple[Iterable[Any] | None, Any]],
        output_type: TypeLike = None,
        state_type: TypeLike = None,
    ) -> DataStream:
        """Like `map_with_state`, with any number of results, in a list or other iterable."""
        function = plain_callable("flat_map_with_state", func)
        return self.flat_map(FlatMapWithState(function, declared_type(state_type)), output_type)

    def filter_with_state(
        self, func: Callable[[Any, Any], tuple[bool, Any]], state_type: TypeLike = None
    ) -> DataStream:
        """Like `map_with_state`; the value goes on if the result is true."""
        function = plain_callable("filter_with_state", func)
        return self.filter(FilterWithState(function, declared_type(state_type)))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with a stream of the same keys: `.between(lower, upper).process(function)`."""
        if not isinstance(other_stream, KeyedStream):
            raise InvalidArgumentError.of(
                "what interval_join takes", "a KeyedStream (call key_by on it)", other_stream
            )
        self._check_beside("interval_join", other_stream)
        self._check_key_type("interval_join", other_stream)
        return IntervalJoin(self, other_stream)

    # Where keys play no part any more

    def union(self, *streams: DataStream) -> DataStream:
        return self._unkeyed().union(*streams)

    def _unkeyed(self) -> DataStream:
        """The records after they have been brought together by key."""
        return self._then("Values", Map(_itself), self._type, helper=True)

    def _before_key_by(self) -> DataStream:
        return self._origin

    def _collectable(self) -> DataStream:
        """Rows of key and record: `Row(f0=key, f1=record)`."""
        return self._then("Key and Value", Map(_WithKey(self._select)), helper=True)


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class _WithKey:
    select: Callable[[Any], Any]

    def __call__(self, value: Any) -> Row:
        return Row(f0=self.select(value), f1=value)
