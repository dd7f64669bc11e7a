"""What a window join runs: records marked by their stream, and functions that part them again.

They run on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from penstock.datastream._basic_functions import WrappingFunction
from penstock.datastream.functions import Function, RuntimeContext, WindowFunction

if TYPE_CHECKING:
    from typing_extensions import Self


class _Marked(tuple[Any]):
    """A record on its way into a common window.

    A tuple, so that it cannot change if the record cannot: such records travel together, others
    have to be pickled one by one.
    """

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return tuple.__new__(cls, (value,))

    value = property(itemgetter(0))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.value,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(other.value == self.value)

    def __ne__(self, other: object) -> bool:  # a tuple has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class First(_Marked):
    """A record of the stream that `join` or `co_group` was called on."""

    __slots__ = ()


class Second(_Marked):
    """A record of the other stream."""

    __slots__ = ()


@dataclass(frozen=True)
class KeyOfEither:
    """The key of a marked record, by the selector of its stream."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, marked: First | Second) -> Any:
        if marked.__class__ is First:
            return self.first(marked.value)
        return self.second(marked.value)


class _OfBoth(WindowFunction[Any, Any, Any, Any], WrappingFunction):
    """Around a user's function of two streams, or a plain callable."""

    def __init__(self, function: Any, method: str) -> None:
        self._function = function
        self._method = method

    @property
    def user_function(self) -> Any:
        return self._function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def _callable(self) -> Callable[[Any, Any], Any]:
        if isinstance(self._function, Function):
            bound: Callable[[Any, Any], Any] = getattr(self._function, self._method)
            return bound
        plain: Callable[[Any, Any], Any] = self._function
        return plain


def _parted(inputs: Iterable[First | Second]) -> tuple[list[Any], list[Any]]:
    first: list[Any] = []
    second: list[Any] = []
    for marked in inputs:
        (first if marked.__class__ is First else second).append(marked.value)
    return first, second


class JoinPairs(_OfBoth):
    """One result for each pair."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "join")

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        join = self._callable()
        firsts, seconds = _parted(inputs)
        for first in firsts:
            for second in seconds:
                yield join(first, second)


class FlatJoinPairs(JoinPairs):
    """Several results for each pair, or none."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        for results in super().apply(key, window, inputs):
            if results is not None:
                yield from results


class CoGroup(_OfBoth):
    """Results for all records at once."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, "co_group")

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        results: Iterable[Any] | None = self._callable()(*_parted(inputs))
        return () if results is None else results
