"""State as user functions see it, and the descriptors that name it.

The `state` package implements the abstract classes; a descriptor is plain data that travels
inside functions. Must not know how or where state is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from penstock.common.typeinfo import TypeInformation, Types, type_info_of
from penstock.datastream._state_ttl import StateTtlConfig
from penstock.datastream.functions import (
    AggregateFunction,
    ReduceFunction,
    ReduceFunctionWrapper,
)
from penstock.errors import InvalidArgumentError

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")

TypeLike = TypeInformation | type | None


class State(ABC):
    """Any state; always that of the current key, or of the subtask for operator state."""

    @abstractmethod
    def clear(self) -> None:
        """Remove it."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, None if there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replace the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What the added values amount to, None if there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can be merged into one, as session windows need."""


class ReducingState(MergingState[T, T]):
    """Added values are combined at once by a reduce function."""


class AggregatingState(MergingState[IN, OUT]):
    """Added values are folded at once by an aggregate function."""


class ListState(MergingState[T, Iterable[T]]):
    """A list."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append several values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get() or ())


class _ReadableMap(State, Generic[K, V]):
    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of `key`, None if absent."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether `key` has a value."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set several values."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove `key`; nothing happens if it is absent."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map whose entries are read and written one by one."""


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state as the data side sees it."""


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map that is the same on every subtask, if every subtask changes it alike."""


class OperatorStateStore(ABC):
    """Hands out state of a subtask rather than of a key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state of that name."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list that is dealt out anew to the subtasks when parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list that every subtask gets whole when the job is restored."""


class StateDescriptor:
    """Names a state of an operator and says what is in it.

    Two descriptors are equal if kind, name, types and time to live are; functions are left out,
    since a lambda differs from itself after pickling.
    """

    def __init__(self, name: str, type_info: TypeLike = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError.of("the name of a state", "a non-empty string", name)
        self.name = name
        self.type_info: TypeInformation = type_info_of(type_info)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The state's name, unique within its operator."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let entries expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise InvalidArgumentError.of(
                f"the time to live of state {self.name!r}",
                "a StateTtlConfig (see StateTtlConfig.new_builder)",
                ttl_config,
            )
        self._ttl_config = ttl_config

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """The time to live if there is one and it is not switched off."""
        return self._ttl_config if self._ttl_config and self._ttl_config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateDescriptor)
            and type(self) is type(other)
            and self.name == other.name
            and self.type_info == other.type_info
            and self.ttl_config == other.ttl_config
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info!r})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a `ValueState`."""

    def __init__(self, name: str, value_type_info: TypeLike = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a `ListState`; `type_info` is that of the list, `elem_type_info` of an element."""

    def __init__(self, name: str, elem_type_info: TypeLike = None) -> None:
        self.elem_type_info: TypeInformation = type_info_of(elem_type_info)
        super().__init__(name, Types.LIST(self.elem_type_info))


class MapStateDescriptor(StateDescriptor):
    """Describes a `MapState`, or a broadcast state."""

    def __init__(
        self, name: str, key_type_info: TypeLike = None, value_type_info: TypeLike = None
    ) -> None:
        self.key_type_info: TypeInformation = type_info_of(key_type_info)
        self.value_type_info: TypeInformation = type_info_of(value_type_info)
        super().__init__(name, Types.MAP(self.key_type_info, self.value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    """Describes a `ReducingState`; the function may be any callable of two arguments."""

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeLike = None,
    ) -> None:
        super().__init__(name, type_info)
        if isinstance(reduce_function, ReduceFunction):
            self._reduce_function = reduce_function
        elif callable(reduce_function):
            self._reduce_function = ReduceFunctionWrapper(reduce_function)
        else:
            raise InvalidArgumentError.of(
                f"the function of reducing state {name!r}",
                "a ReduceFunction or a callable of two arguments",
                reduce_function,
            )

    def get_reduce_function(self) -> ReduceFunction:
        """The function that combines values."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an `AggregatingState`; the type is that of the accumulator."""

    def __init__(
        self, name: str, agg_function: AggregateFunction, state_type_info: TypeLike = None
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise InvalidArgumentError.of(
                f"the function of aggregating state {name!r}",
                "an AggregateFunction instance",
                agg_function,
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """The function that folds values."""
        return self._agg_function
