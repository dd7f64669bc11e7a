"""Checks of what users hand to the fluent API, at once and with a hint, and refusals.

Knows functions and types; must not know streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.common.typeinfo import TypeInformation, type_info_of
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.connectors.base import Sink
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    Function,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputSelector,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
    WindowFunction,
)
from penstock.datastream.window import Evictor, Trigger, WindowAssigner
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError, short_repr
from penstock.runtime.fields import getter, tuple_getter
from penstock.runtime.operators.timestamps import AssignTime

# Where a function of each class belongs, for who gave it to another method.
_HOME: dict[type, str] = {
    MapFunction: "map",
    FlatMapFunction: "flat_map",
    FilterFunction: "filter",
    ReduceFunction: "key_by(...).reduce",
    KeyedProcessFunction: "key_by(...).process",
    CoMapFunction: "connect(...).map",
    CoFlatMapFunction: "connect(...).flat_map",
    CoProcessFunction: "connect(...).process",
    KeyedCoProcessFunction: "connect(...).key_by(...).process",
    BroadcastProcessFunction: "connect(other.broadcast(...)).process",
    KeyedBroadcastProcessFunction: "key_by(...).connect(other.broadcast(...)).process",
    ProcessFunction: "process",
    AggregateFunction: "window(...).aggregate",
    WindowFunction: "key_by(...).window(...).apply",
    ProcessWindowFunction: "key_by(...).window(...).process",
    AllWindowFunction: "window_all(...).apply",
    ProcessAllWindowFunction: "window_all(...).process",
    JoinFunction: "join(...).where(...).equal_to(...).window(...).apply",
    FlatJoinFunction: "join(...).where(...).equal_to(...).window(...).apply",
    CoGroupFunction: "co_group(...).where(...).equal_to(...).window(...).apply",
    WindowAssigner: "window",
    Trigger: "window(...).trigger",
    Evictor: "window(...).evictor",
    AsyncFunction: "AsyncDataStream.unordered_wait",
    ProcessJoinFunction: "key_by(...).interval_join(other).between(...).process",
    SinkFunction: "add_sink",
    Sink: "sink_to",
    KeySelector: "key_by",
    OutputSelector: "split",
    Partitioner: "partition_custom",
}


def function_or_callable(method: str, kind: type[Function], func: Any) -> Any:
    """`func` if it is a function of that kind or any callable that is no function of another."""
    return one_of_kinds_or_callable(method, (kind,), func)


def one_of_kinds_or_callable(method: str, kinds: tuple[type[Function], ...], func: Any) -> Any:
    """The same for several kinds."""
    if isinstance(func, kinds) or (callable(func) and not _is_ours(func)):
        return func
    raise _misfit(method, " or ".join(["a callable", *map(_one, kinds)]), func)


def plain_callable(method: str, func: Any) -> Any:
    """`func` if it can be called and is no function class of ours."""
    if callable(func) and not _is_ours(func):
        return func
    raise _misfit(method, "a callable", func)


def instance_of(method: str, kinds: tuple[type, ...], func: Any) -> Any:
    """`func` if it is of one of the kinds."""
    if isinstance(func, kinds):
        return func
    raise _misfit(method, " or ".join(map(_one, kinds)), func)


def _one(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def time_assigner(strategy: Any, aligned: bool = False) -> AssignTime:
    """What a WatermarkStrategy asks for; `aligned` says whether that may be alignment."""
    if not isinstance(strategy, WatermarkStrategy):
        raise InvalidArgumentError.of("watermark_strategy", "a WatermarkStrategy", strategy)
    if strategy.alignment is not None and not aligned:
        raise UnsupportedFeatureError.of(
            "watermark alignment anywhere but at a source written in Python",
            "give the strategy to from_source; only a reader of splits can let one wait",
        )
    return AssignTime(strategy)


def _is_ours(func: Any) -> bool:
    cls = func if isinstance(func, type) else type(func)
    return issubclass(cls, (*_HOME, Function))


def _misfit(method: str, wanted: str, func: Any) -> InvalidArgumentError:
    if isinstance(func, type) and _is_ours(func):
        return InvalidArgumentError(
            f"{method} needs {wanted}, got the class {func.__name__} itself; "
            f"pass an instance: {func.__name__}{'.of' if hasattr(func, 'of') else ''}(...)"
        )
    got = f"{type(func).__name__} {short_repr(func)}"
    for kind, home in _HOME.items():
        if isinstance(func, kind):
            got = f"{type(func).__name__}, which is {_one(kind)} and belongs in {home}(...)"
            break
    return InvalidArgumentError(f"{method} needs {wanted}, got {got}")


def selector_of(method: str, selector: Any) -> Callable[[Any], Any]:
    """The callable for a key given as function, KeySelector, position, name, or several such."""
    if isinstance(selector, int | str) and not isinstance(selector, bool):
        return getter(selector)
    if isinstance(selector, list | tuple):
        if not selector:
            raise InvalidArgumentError(f"{method} needs at least one field, got none")
        return tuple_getter([selector_of(method, part) for part in selector])
    if isinstance(selector, KeySelector):
        return _without_open(selector).get_key
    if callable(selector) and not _is_ours(selector):
        function: Callable[[Any], Any] = selector
        return function
    raise _misfit(
        method, "a callable, a KeySelector, a position, a name or a list of these", selector
    )


def partition_function(partitioner: Any) -> Callable[[Any, int], int]:
    """The callable of key and number of partitions."""
    if isinstance(partitioner, Partitioner):
        return _without_open(partitioner).partition
    function: Callable[[Any, int], int] = function_or_callable(
        "partition_custom", Partitioner, partitioner
    )
    return function


F = TypeVar("F", bound=Function)


def _without_open(function: F) -> F:
    """Exchanges call the bound method only, so there would be nobody to open the function."""
    if type(function).open is not Function.open:
        raise UnsupportedFeatureError.of(
            f"open() in {type(function).__name__}, which chooses where records go,",
            "prepare what it needs in the constructor",
        )
    return function


def declared_type(type_info: Any) -> TypeInformation | None:
    """The type information, or None where nothing was declared."""
    return None if type_info is None else type_info_of(type_info)


def non_empty(what: str, text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise InvalidArgumentError.of(what, "a non-empty string", text)
    return text
