"""WindowedStream and AllWindowedStream: how a stream is cut into windows, and what becomes of them.

Settings are gathered here and checked as they are given; the last call (`reduce`, `process`, …)
adds one node with all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock import options
from penstock.common.time import Duration, Time, to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.datastream._rolling_aggregates import RollingAggregates
from penstock.datastream._stream_arguments import (
    declared_type,
    function_or_callable,
    instance_of,
    one_of_kinds_or_callable,
)
from penstock.datastream._window_functions import CalledAllWindowFunction, CalledWindowFunction
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    Evictor,
    GlobalWindows,
    MergingWindowAssigner,
    PurgingTrigger,
    Trigger,
    WindowAssigner,
)
from penstock.errors import InvalidArgumentError
from penstock.refusals import refusing
from penstock.runtime.fields import Field, rolling_function
from penstock.runtime.operators.windows import Windowing

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock.datastream._data_stream import DataStream, TypeLike
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

S = TypeVar("S", bound="_Windowed")

__all__ = ["AllWindowedStream", "WindowedStream"]


_NOTHING_COMPUTED = dict.fromkeys(
    ("execute_and_collect", "filter", "flat_map", "key_by", "map", "print", "sink_to", "union"),
    "say first what is computed over the windows: reduce, aggregate, apply or process",
)


class _Windowed(RollingAggregates):
    """What windows per key and windows over everything have in common."""

    _function: type[Function]
    _process_function: type[Function]
    _all_windows: bool
    _parallelism: int | None

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._assigner = instance_of("window", (WindowAssigner,), window_assigner)
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._lateness = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        return self._stream.get_type()

    # When windows fire, and with which elements

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Fire windows by this trigger, instead of the assigner's own."""
        self._trigger = instance_of("trigger", (Trigger,), trigger)
        _check_merging(self._assigner, trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Take elements out of a window when it fires.

        Then windows keep all their elements, also for `reduce` and `aggregate`, which compute
        their result anew at each firing.
        """
        self._evictor = instance_of("evictor", (Evictor,), evictor)
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """How long after its end a window still takes elements, each of which fires it again."""
        self._lateness = to_millis(time_ms, "the allowed lateness")
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Where elements go whose windows are all gone; otherwise they are dropped and counted."""
        if not isinstance(output_tag, OutputTag):
            raise InvalidArgumentError.of(
                "the side output of late data", "an OutputTag", output_tag
            )
        self._late_tag = output_tag
        return self

    # What is computed

    def apply(self, window_function: Any, output_type: TypeLike = None) -> DataStream:
        """All elements of a window at once."""
        function = one_of_kinds_or_callable("apply", (self._function,), window_function)
        return self._applied("Apply", function, self._called(function), output_type)

    def process(self, process_window_function: Any, output_type: TypeLike = None) -> DataStream:
        """All elements of a window at once, with state, clocks and side outputs."""
        function = instance_of("process", (self._process_function,), process_window_function)
        return self._applied("Process", function, function, output_type)

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Any = None,
        output_type: TypeLike = None,
    ) -> DataStream:
        """Combine elements as they come; a window keeps one value.

        A window function gets that one value, with the window and the key.
        """
        combine = function_or_callable("reduce", ReduceFunction, reduce_function)
        kept = self._stream._type
        if window_function is None and output_type is None:
            output_type = kept
        return self._combined("reduce", combine, window_function, kept, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeLike = None,
        output_type: TypeLike = None,
    ) -> DataStream:
        """Fold elements as they come; a window keeps one accumulator.

        A window function gets its result, with the window and the key.
        """
        combine = instance_of("aggregate", (AggregateFunction,), aggregate_function)
        kept = declared_type(accumulator_type)
        return self._combined("aggregate", combine, window_function, kept, output_type)

    def _rolling(self, name: str, kind: str, field: Field) -> DataStream:
        kept = self._stream._type
        combine = rolling_function(kind, field)
        return self._computed([name], kept, combine=combine, kept_type=kept)

    def _applied(self, step: str, given: Any, function: Any, output_type: TypeLike) -> DataStream:
        """`given` is what the user wrote, `function` what is called by windows."""
        return self._computed([_label(given, step)], output_type, function=function)

    def _combined(
        self,
        method: str,
        combine: Any,
        function: Any,
        kept_type: TypeInformation | None,
        output_type: TypeLike,
    ) -> DataStream:
        labels = [_label(combine, method.capitalize())]
        if function is not None:
            kinds = (self._function, self._process_function)
            one_of_kinds_or_callable(f"the window function of {method}", kinds, function)
            labels.append(_label(function, "Apply"))
            function = self._called(function)
        return self._computed(
            labels, output_type, combine=combine, function=function, kept_type=kept_type
        )

    @abstractmethod
    def _called(self, function: Any) -> Any:
        """The function, or a window function that calls it."""

    def _computed(
        self,
        labels: list[str],
        output_type: TypeLike,
        combine: Any = None,
        function: Any = None,
        kept_type: TypeInformation | None = None,
    ) -> DataStream:
        """The stream of the windows' results."""
        if combine is None or self._evictor is not None:
            kept_type = self._stream._type
        trigger = self._trigger
        if trigger is None:
            trigger = self._assigner.get_default_trigger(self._stream._env)
        _check_merging(self._assigner, trigger)
        windowing = Windowing(
            assigner=self._assigner,
            trigger=trigger,
            evictor=self._evictor,
            allowed_lateness=self._lateness,
            late_tag=self._late_tag,
            combine=combine,
            function=function,
            element_type=kept_type,
            all_windows=self._all_windows,
            slices=self._stream._env._configuration.get(options.WINDOW_SLICES),
        )
        return self._stream._then(
            _name(windowing, labels), windowing, output_type, fixed_parallelism=self._parallelism
        )


@refusing(_NOTHING_COMPUTED)
class WindowedStream(_Windowed):
    """Windows of each key."""

    _function = WindowFunction
    _process_function = ProcessWindowFunction
    _all_windows = False
    _parallelism = None

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream, window_assigner)

    def _called(self, function: Any) -> Any:
        return function if isinstance(function, Function) else CalledWindowFunction(function)


@refusing(_NOTHING_COMPUTED)
class AllWindowedStream(_Windowed):
    """Windows over all records, in one subtask."""

    _function = AllWindowFunction
    _process_function = ProcessAllWindowFunction
    _all_windows = True
    _parallelism = 1

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(_only_key), window_assigner)

    def _called(self, function: Any) -> Any:
        return function if isinstance(function, Function) else CalledAllWindowFunction(function)


def _only_key(value: Any) -> int:
    """Windows are kept by key, so all records have the same one."""
    return 0


# Count windows


def count_windowed(
    kind: Callable[[Any, WindowAssigner[Any, Any]], S], stream: DataStream, size: int, slide: int
) -> S:
    """`kind` of windows by count, over `stream`; without a slide they do not overlap."""
    semantics = stream._env._configuration.get(options.COUNT_WINDOW_SEMANTICS)
    if semantics == "java":
        windowed = kind(stream, GlobalWindows())
        if slide == 0:
            return windowed.trigger(PurgingTrigger(CountTrigger(size)))
        return windowed.evictor(CountEvictor(size)).trigger(CountTrigger(slide))
    if slide == 0:
        return kind(stream, CountTumblingWindowAssigner(size))
    return kind(stream, CountSlidingWindowAssigner(size, slide))


# Checks


def _check_merging(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any]) -> None:
    if not isinstance(assigner, MergingWindowAssigner):
        return
    if not trigger.can_merge():
        raise InvalidArgumentError(
            f"{assigner!r} merges windows, and {trigger!r} cannot follow that; use a trigger whose "
            "can_merge() is true, and which has an on_merge"
        )
    if type(trigger).on_merge is Trigger.on_merge:
        raise InvalidArgumentError(
            f"{trigger!r} says that it can merge and has no on_merge; write one, in which it "
            "merges its state and sets its timers for the merged window"
        )


# Names


def _name(windowing: Windowing, labels: list[str]) -> str:
    """As Flink shows it: `Window(TumblingEventTimeWindows(60000), EventTimeTrigger, Sum)`."""
    parts = [repr(windowing.assigner), repr(windowing.trigger)]
    if windowing.evictor is not None:
        parts.append(repr(windowing.evictor))
    return f"Window({', '.join([*parts, *labels])})".replace("()", "")


def _label(function: Any, step: str) -> str:
    """A function's own name; a lambda has none, so it is called what it is used for."""
    name: str = (
        type(function).__name__
        if isinstance(function, Function)
        else getattr(function, "__name__", type(function).__name__)
    )
    return step if name == "<lambda>" else name
