"""The contents of a key's window in the general operator: elements, or one combined value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.common.typeinfo import Types
from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from penstock.datastream.window import Evictor, TimestampedValue
from penstock.runtime.operators.base import OperatorHost, open_function, opened
from penstock.runtime.operators.windows.trigger_context import EvictorContext, move
from penstock.state.namespaces import NamespaceScope
from penstock.state.windows import window_bytes

if TYPE_CHECKING:
    from penstock.runtime.operators.windows import Windowing

_NAME = "contents"


class Contents:
    """Kept in state of the current key, under the window that was entered last."""

    def __init__(self, windowing: Windowing, host: OperatorHost) -> None:
        assert host.keyed_state is not None
        self._scope = NamespaceScope(host.scope)
        place = host.keyed_state.place(self._scope, "_windows/")
        self._state = host.keyed_state.get(self._descriptor(windowing, host), place)

    def _descriptor(self, windowing: Windowing, host: OperatorHost) -> Any:
        combine, kept = windowing.combine, windowing.contents_type
        if combine is None:
            return ListStateDescriptor(_NAME, kept)
        if isinstance(combine, AggregateFunction):
            open_function(combine, host)
            return AggregatingStateDescriptor(_NAME, combine, kept)
        call = opened(combine, host, "reduce")
        return ReducingStateDescriptor(_NAME, _Reducing(call), kept)

    def enter(self, window: Any) -> None:
        self._scope.namespace = window_bytes(window)

    def add(self, value: Any, timestamp: int) -> None:
        self._state.add(value)

    def clear(self) -> None:
        self._state.clear()

    def merge(self, windows: list[Any]) -> None:
        """Take over the contents of other windows."""
        move(self._state, self._scope, [window_bytes(window) for window in windows])

    def evaluate(self, window: Any, use: Callable[[Any], None]) -> None:
        """Give what there is to `use`; an empty window is not evaluated."""
        state = self._state
        if isinstance(state, ListState):
            held = state.get()
            empty = not held
        else:
            held = state.below.value()  # the accumulator: what is to be emitted is made of it later
            empty = held is None
        if not empty:
            use(held)


class _Reducing(ReduceFunction):
    """A function that has been opened already, for the state to call."""

    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        self._call = call

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._call(value1, value2)


class EvictableContents(Contents):
    """All elements with their timestamps, of which an evictor removes some around each firing."""

    def __init__(
        self, windowing: Windowing, host: OperatorHost, evictor: Evictor[Any, Any]
    ) -> None:
        self._evictor = evictor
        self._context = EvictorContext(host)
        self._combined = _combining(windowing.combine, host)
        super().__init__(windowing, host)

    def _descriptor(self, windowing: Windowing, host: OperatorHost) -> Any:
        return ListStateDescriptor(_NAME, Types.PICKLED_BYTE_ARRAY())

    def add(self, value: Any, timestamp: int) -> None:
        self._state.add(TimestampedValue(value, timestamp))

    def evaluate(self, window: Any, use: Callable[[Any], None]) -> None:
        elements: list[TimestampedValue] = list(self._state.get())
        if not elements:
            return
        before = len(elements)
        elements = _kept(elements, self._evictor.evict_before, window, self._context)
        inputs = self._combined([element.value for element in elements])
        if inputs is not None:
            use(inputs)
        elements = _kept(elements, self._evictor.evict_after, window, self._context)
        if len(elements) != before:
            self._state.update(elements)


def _kept(
    elements: list[TimestampedValue], evict: Callable[..., Any], window: Any, context: Any
) -> list[TimestampedValue]:
    """An evictor changes the list, or gives the one to go on with."""
    kept = evict(elements, len(elements), window, context)
    return elements if kept is None else list(kept)


def _combining(combine: Any, host: OperatorHost) -> Callable[[list[Any]], Iterable[Any] | None]:
    """What a window function gets of the elements: themselves, or what they combine to.

    None if an AggregateFunction has no result.
    """
    if combine is None:
        return _themselves
    if isinstance(combine, AggregateFunction):
        add = opened(combine, host, "add")

        def aggregated(elements: list[Any]) -> Iterable[Any] | None:
            if not elements:
                return ()
            accumulator = combine.create_accumulator()
            for element in elements:
                accumulator = add(element, accumulator)
            result = combine.get_result(accumulator)
            return None if result is None else (result,)

        return aggregated
    call = opened(combine, host, "reduce")
    return lambda elements: (reduce(call, elements),) if elements else ()


def _themselves(elements: list[Any]) -> list[Any]:
    return elements
