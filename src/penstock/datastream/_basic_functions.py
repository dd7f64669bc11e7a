"""Plain functions, their life cycle and what they may ask of the task they run in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeatureError
from penstock.refusals import NO_JAVA, refusing

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream.side_input import SideInput, SideInputTable
    from penstock.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.metrics import MetricGroup


class KeyedStateStore(ABC):
    """Hands out state that belongs to the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map per key, each of its entries stored on its own."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """One value per key, combined with each added one by a reduce function."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        """One accumulator per key, fed by an aggregate function."""


class RuntimeContext(KeyedStateStore):
    """The task a function instance runs in, as given to `open`."""

    @abstractmethod
    def get_job_id(self) -> str:
        """The job's id, the same in every attempt and after every restart."""

    @abstractmethod
    def get_task_name(self) -> str:
        """The operator's name."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """The operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """The operator's maximum parallelism, that is its number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """From 0 to parallelism - 1."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often this subtask has been restarted."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Such as `Map (2/4)`; subtasks are counted from 1 here, as in Flink."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A global job parameter, or `default_value`."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its own metrics."""

    @abstractmethod
    def get_side_input(self, side_input: SideInput | str) -> SideInputTable:
        """A side input that the operator was given, by itself or its name. Always up to date."""


class Function(ABC):  # noqa: B024 - each kind of function has its own duties
    """Base of all functions. An instance is opened once, before its first record."""

    # Hooks, not duties: most functions need neither.
    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Make connections, register state and metrics."""

    def close(self) -> None:  # noqa: B027
        """Release what `open` took."""


class WrappingFunction(Function):
    """Stands around a user's function, which takes part in checkpoints as if it stood alone."""

    @property
    @abstractmethod
    def user_function(self) -> Any:
        """A function, or any callable."""


class MapFunction(Function):
    """One value in, one value out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The value to emit for `value`."""


class CoMapFunction(Function):
    """A map over two connected streams; None is not emitted."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """The value to emit for a value of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """The value to emit for a value of the second stream."""


class FlatMapFunction(Function):
    """One value in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """The values to emit for `value`."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """The values to emit for a value of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """The values to emit for a value of the second stream."""


class ReduceFunction(Function):
    """Combines two values of a type into one; must be associative."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """`value1` is what was combined so far, `value2` the newer value."""


class ReduceFunctionWrapper(ReduceFunction):
    """Lets a plain callable of two arguments stand for a `ReduceFunction`."""

    def __init__(self, func: Callable[[Any, Any], Any]) -> None:
        self._func = func

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._func(value1, value2)


class AggregateFunction(Function):
    """Folds values into an accumulator from which a result can be read at any time."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator before the first value."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with `value` in it; may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result that the accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator for both; only merging windows need it."""


class KeySelector(Function):
    """Takes a value's key. Must give the same key for the same value everywhere."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of `value`."""


class FilterFunction(Function):
    """Decides which values go on."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True to keep `value`."""


class OutputSelector(Function):
    """Names the outputs of a split stream that a record goes to, as in Flink 1.x."""

    @abstractmethod
    def select(self, value: Any) -> Iterable[str]:
        """The names: none, one or several."""


class Partitioner(Function):
    """Chooses the subtask that a key's records go to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """An index in `range(num_partitions)`."""


@refusing({"get_java_function": NO_JAVA})
class SourceFunction(Function):
    """Flink's older source interface, where PyFlink wraps a Java class by name.

    There is no JVM class to wrap here: sources are written in Python against
    `penstock.datastream.connectors.base.Source`, or come from Spark.
    """

    def __init__(self, source_func: object = None) -> None:
        if source_func is not None:
            raise _no_java_class("SourceFunction", source_func, "connectors.base.Source")


@refusing({"get_java_function": NO_JAVA})
class SinkFunction(Function):
    """A sink written as a function: called with each record as it arrives.

    What `invoke` does to the outside world is not undone when an epoch is repeated. For
    exactly-once output implement `penstock.datastream.connectors.base.Sink`.
    """

    class Context(ABC):
        """What is known about the record being written."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds, None if it has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Milliseconds since the epoch on the task's clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark in milliseconds."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Here and not in __init__: Python refuses abstract classes first, with a vaguer sentence.
        if cls is SinkFunction and (args or kwargs):
            got = args[0] if args else next(iter(kwargs.values()))
            raise _no_java_class("SinkFunction", got, "functions.SinkFunction (with `invoke`)")
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write `value`."""


def _no_java_class(kind: str, got: object, instead: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError.of(
        f"{kind}({got!r}), a wrapped Java class,",
        f"write it in Python by subclassing penstock.datastream.{instead}",
    )
