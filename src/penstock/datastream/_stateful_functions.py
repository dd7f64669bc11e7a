"""Functions of a value and a state, for `map_with_state` and its like. They run on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    MapFunction,
    RuntimeContext,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import InvalidArgumentError

_STATE = "_state"


class _WithState(Function):
    """Gives the function the key's state, None at first, and keeps the state that it returns."""

    _method: str

    def __init__(
        self,
        function: Callable[[Any, Any], tuple[Any, Any]],
        state_type: TypeInformation | None = None,
    ) -> None:
        self._function = function
        self._state_type = state_type

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor(_STATE, self._state_type))

    def _apply(self, value: Any) -> Any:
        answer = self._function(value, self._state.value())
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InvalidArgumentError.of(
                f"what the function of {self._method} returns", "(result, new state)", answer
            )
        result, state = answer
        self._state.update(state)
        return result


class MapWithState(_WithState, MapFunction):
    """The result is emitted."""

    _method = "map_with_state"

    def map(self, value: Any) -> Any:
        return self._apply(value)


class FlatMapWithState(_WithState, FlatMapFunction):
    """Each item of the result is emitted."""

    _method = "flat_map_with_state"

    def flat_map(self, value: Any) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self._apply(value)
        return results


class FilterWithState(_WithState, FilterFunction):
    """The value is emitted if the result is true."""

    _method = "filter_with_state"

    def filter(self, value: Any) -> bool:
        return bool(self._apply(value))
