"""What becomes of a window's contents when it fires: the results of the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.common.parts import in_parts
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import MergingWindowAssigner
from penstock.errors import InvalidArgumentError, UnsupportedFeatureError
from penstock.runtime.aggregates import BuiltInAggregate
from penstock.runtime.operators.base import OperatorHost, close_function, opened
from penstock.runtime.runtime_context import StatesByDescriptor
from penstock.state.keyed_state import KeyedState, Place
from penstock.state.namespaces import NamespaceScope
from penstock.state.windows import window_bytes

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_AT_ONCE = 1024

Contents = Iterable[tuple[Any, Any]]
"""Keys with what their window holds: elements, an accumulator, or a reduced value."""


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The window at hand. One object serves all of a task."""

    def __init__(self, host: OperatorHost, scope: NamespaceScope, merging: bool) -> None:
        assert host.keyed_state is not None
        self._merging = merging
        place = host.keyed_state.place(scope, "window/")
        self._host = host
        self._scope = scope
        self._window_states = ScopedStates(host.keyed_state, place)
        self._global_states = ScopedStates(host.keyed_state, None)
        self._current: Any = None

    def enter(self, window: Any) -> None:
        if window is not self._current:  # it mostly is, for one key after the other
            self._current = window
            self._scope.namespace = window_bytes(window)

    def window(self) -> Any:
        return self._current

    def current_processing_time(self) -> int:
        return self._host.clock()

    def current_watermark(self) -> int:
        return self._host.time.watermark

    def window_state(self) -> ScopedStates:
        if self._merging:
            raise UnsupportedFeatureError.of(
                "state of windows that merge (sessions)",
                "use context.global_state(), or compute what you need by aggregate()",
            )
        return self._window_states

    def global_state(self) -> ScopedStates:
        return self._global_states

    def output(self, tag: OutputTag, value: Any) -> None:
        if tag.__class__ is not OutputTag:
            raise InvalidArgumentError.of("the tag of context.output", "an OutputTag", tag)
        self._host.emit_side(tag, value)


class ScopedStates(StatesByDescriptor):
    """State of a key, or of a key and window."""

    def __init__(self, keyed_state: KeyedState, place: Place | None) -> None:
        self._keyed_state = keyed_state
        self._place = place

    def _found(self, descriptor: Any) -> Any:
        return self._keyed_state.get(descriptor, self._place)


class Evaluation:
    """The opened functions of a window operator."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        self._host = host
        self._function = windowing.function
        self._inputs = _inputs_of(windowing)
        self._context: WindowContext | None = None
        self._merging = isinstance(windowing.assigner, MergingWindowAssigner)
        self._call = self._opened(windowing.function, host)
        self.results: Callable[[Any, Contents], Iterator[Any]] = (
            self._bare_results if self._call is None else self._function_results
        )
        """The results of one window for each of some keys, to be emitted as they are drawn."""
        self.results_of_inputs = self.results
        """The same of what the function gets, which built-in aggregates have been evaluated to."""
        if isinstance(windowing.combine, BuiltInAggregate) and windowing.evictor is None:
            self._inputs = _as_they_are
            self.results = _at_once(windowing.combine, self.results)

    def _opened(self, function: Any, host: OperatorHost) -> Callable[..., Any] | None:
        if function is None:
            return None
        processing = isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction)
        call = opened(function, host, "process" if processing else "apply")
        whole = isinstance(function, AllWindowFunction | ProcessAllWindowFunction)
        if processing:
            assert host.keyed_state is not None
            self._context = context = WindowContext(host, NamespaceScope(host.scope), self._merging)

            def process(key: Any, window: Any, inputs: Iterable[Any]) -> Any:
                context.enter(window)
                return call(context, inputs) if whole else call(key, context, inputs)

            return process
        if whole:
            return lambda key, window, inputs: call(window, inputs)
        return call

    def _bare_results(self, window: Any, contents: Contents) -> Iterator[Any]:
        scope, time, inputs = self._host.scope, window.max_timestamp(), self._inputs
        for scope.key, held in contents:
            scope.timestamp = time
            results = inputs(held)
            if results is not None:
                yield from results

    def _function_results(self, window: Any, contents: Contents) -> Iterator[Any]:
        scope, time, inputs = self._host.scope, window.max_timestamp(), self._inputs
        call, emit_side = self._call, self._host.emit_side
        assert call is not None
        for key, held in contents:
            scope.key = key
            scope.timestamp = time
            given = inputs(held)
            produced = None if given is None else call(key, window, given)
            if produced is not None:
                for result in produced:
                    if result.__class__ is tuple and result and result[0].__class__ is OutputTag:
                        emit_side(result[0], result[1])
                    else:
                        yield result

    @property
    def clears(self) -> bool:
        """Whether the function wants to hear when a window is over."""
        function = type(self._function)
        return self._context is not None and function.clear not in (
            ProcessWindowFunction.clear,
            ProcessAllWindowFunction.clear,
        )

    def clear(self, window: Any) -> None:
        """The current key's window is over."""
        if self.clears:
            assert self._context is not None
            self._context.enter(window)
            self._function.clear(self._context)

    def close(self) -> None:
        close_function(self._function)


def _at_once(
    combine: BuiltInAggregate, results: Callable[[Any, Contents], Iterator[Any]]
) -> Callable[[Any, Contents], Iterator[Any]]:
    """The same results, for which accumulators are evaluated many at a time."""

    def evaluated(contents: Contents) -> Iterator[tuple[Any, Any]]:
        for part in in_parts(contents, _AT_ONCE):
            keys, accumulators = zip(*part, strict=True)
            yield from zip(keys, zip(combine.get_results(accumulators), strict=True), strict=True)

    return lambda window, contents: results(window, evaluated(contents))


def _inputs_of(windowing: Windowing) -> Callable[[Any], Iterable[Any] | None]:
    """From what a window holds to what its function gets.

    As in Flink, a window whose AggregateFunction has no result (None) gives nothing.
    """
    combine = windowing.combine
    if windowing.evictor is not None or combine is None:
        return _as_they_are
    if isinstance(combine, AggregateFunction):
        get_result = combine.get_result

        def result(accumulator: Any) -> Iterable[Any] | None:
            found = get_result(accumulator)
            return None if found is None else (found,)

        return result
    return lambda value: (value,)


def _as_they_are(elements: Any) -> Any:
    return elements
